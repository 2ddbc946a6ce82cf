"""EMBEDDING_LOOKUP kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType, UnsupportedError
from luciole.ir.ops.embedding_lookup import EmbeddingLookup
from luciole.ir.quantization import Affine
from luciole.kernels.arrays.coordinates import within
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.registry import ANY, reference
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import look_up

QUANTIZED = (TensorType.INT8, TensorType.UINT8, TensorType.INT4)


@reference(EmbeddingLookup, *ANY, TensorType.INT4)
def embedding_lookup(op: EmbeddingLookup, lookup: Array, value: Array) -> Array:
    """Copy the rows, quantized ones as scale (q - zero point)."""
    rows = within(lookup, len(value), "axis 0 of value")
    affordable(op, (len(lookup), *value.shape[1:]))
    if op.infer_dtype() == op.value.dtype:
        return np.asarray(value[rows])
    if op.value.dtype not in QUANTIZED:
        raise UnsupportedError(f"rows of {op.value.dtype.name} do not become FLOAT32")
    affine = Affine.of(op.value, "value", only_read=True).entries(rows, value.shape)
    return affine.decode(value[rows]).astype(np.float32)


@portable(EmbeddingLookup, *MOVED)
def in_c(op: EmbeddingLookup, context: PortableContext) -> list[CCall]:
    """Copy the rows, zeros where no row has the number."""
    del context
    if op.infer_dtype() != op.value.dtype:
        raise UnsupportedError("quantized rows to real numbers have no C form")
    return [look_up(op.value, op.lookup, op.results[0], 0)]
