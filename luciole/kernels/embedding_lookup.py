"""EMBEDDING_LOOKUP kernels: rows of integers are decoded one by one, as they are looked up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, TensorType, UnsupportedError
from luciole.ir.blockwise import Blockwise
from luciole.ir.ops.embedding_lookup import TABLES, EmbeddingLookup
from luciole.ir.quantization import Affine
from luciole.kernels import jit
from luciole.kernels.arrays.coordinates import within
from luciole.kernels.core.contract import Built, Context, NativeStep
from luciole.kernels.core.limits import affordable
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import ANY, native, reference
from luciole.kernels.elements.plain_integers import KINDS
from luciole.kernels.gather import are_wrong, as_they_come, watched
from luciole.kernels.jit import floats, longs
from luciole.kernels.jit.record import Record
from luciole.kernels.jit.vector.conversions import Kind, integers_at
from luciole.kernels.portable.calls import CCall, Field, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import look_up
from luciole.kernels.portable.packed import with_packed_weights

PACKED = (TensorType.INT4, TensorType.INT2)
"""Types of rows that kernels find unpacked."""


@reference(EmbeddingLookup, *ANY, *PACKED)
def embedding_lookup(op: EmbeddingLookup, lookup: Array, value: Array) -> Array:
    """Copy the rows, quantized ones as scale (q - zero point)."""
    rows = within(lookup, len(value), "axis 0 of value")
    affordable(op, (len(lookup), *value.shape[1:]))
    if op.infer_dtype() == op.value.dtype:
        return np.asarray(value[rows])
    decoded = _format(op).entries(rows, value.shape).decode(value[rows])
    return np.asarray(decoded, np.float32)


def _format(op: EmbeddingLookup) -> Affine | Blockwise:
    """Read the scales of rows of integers. Raises LucioleError where there are none."""
    if op.value.dtype not in TABLES:
        raise UnsupportedError(f"rows of {op.value.dtype.name} do not become FLOAT32")
    return Blockwise.given(op.value) or Affine.of(op.value, "value", only_read=True)


@dataclass(frozen=True)
class _Scales:
    """The scales of rows, each of ``blocks`` of ``size`` integers; from one row's to the next it is
    ``apart``, 0 where all have the same.
    """

    scale: NDArray[np.float32]
    blocks: int
    size: int

    @property
    def apart(self) -> int:
        return 0 if self.scale.size == 1 else self.blocks

    @classmethod
    def of(cls, op: EmbeddingLookup, table: Array) -> _Scales:
        """Read the scales of a table. Raises UnsupportedError for zero points, and for scales of
        columns.
        """
        format = _format(op)
        by_row = isinstance(format, Blockwise) or format.scale.size == 1 or format.axis == 0
        if not (format.is_symmetric and by_row and table.size):
            raise UnsupportedError("rows have zero points, or scales along another axis")
        blocks = max(format.scale.size // len(table), 1)
        return cls(format.scale, blocks, table.size // len(table) // blocks)


class LookupRecord(Record):
    """Rows of integers, in blocks with a scale each, numbers of those that are looked up, and a
    word that tells whether one named none.
    """

    y: int
    lookup: int
    codes: int
    scales: int
    count: int
    rows: int
    blocks: int
    size: int
    apart: int
    wrong: int


@native(EmbeddingLookup, *ANY, *PACKED)
def build(op: EmbeddingLookup, context: Context) -> Built:
    """Copy rows as GATHER does, and decode those of integers that become real numbers."""
    lookup, table = context.pair
    if are_wrong(op.lookup, lookup, len(table)):
        return None
    if op.infer_dtype() == op.value.dtype:
        fits = op.value.dtype not in PACKED
        return as_they_come(table, lookup, context.results[0], 0, 0) if fits else None
    scales = accepted(_Scales.of, op, table)
    if isinstance(scales, Declined):
        return scales
    kind = Kind.UINT8 if op.value.dtype == TensorType.UINT8 else Kind.INT8
    return _decoded(lookup, table, scales, context.results[0], int(kind))


def _decoded(lookup: Array, table: Array, scales: _Scales, y: Array, kind: int) -> NativeStep:
    memory = Memory()
    wrong, check = watched(memory, lookup, 0, len(table))
    record = LookupRecord(
        y=reach(y, 4 * lookup.size * scales.blocks * scales.size),
        lookup=reach(lookup, lookup.nbytes),
        codes=reach(table, table.nbytes),
        scales=memory.keep(scales.scale, scales.apart * len(table) or scales.blocks),
        count=lookup.size,
        rows=len(table),
        blocks=scales.blocks,
        size=scales.size,
        apart=scales.apart,
        wrong=wrong,
    )
    return replace(memory.step(_decoding(kind).address, record), check=check, remembers=True)


@cache
def _decoding(kind: int) -> jit.Kernel:
    """Make the kernel for rows of a kind of integers."""
    numbers = int(KINDS[TensorType.INT32])

    @jit.kernel
    def decoded_rows(r: LookupRecord) -> None:
        lookup, codes = integers_at(r.lookup, numbers), integers_at(r.codes, kind)
        y, scales, to = floats(r.y), floats(r.scales), 0
        for i in range(r.count):
            row = lookup[i]
            if row < 0 or row >= r.rows:
                longs(r.wrong)[0] = 1
                row = 0
            place = row * r.blocks * r.size
            for block in range(r.blocks):
                scale = scales[row * r.apart + block]
                for k in range(r.size):
                    y[to + k] = np.float32(codes[place + k]) * scale
                to += r.size
                place += r.size

    return decoded_rows


@portable(EmbeddingLookup, *MOVED, *PACKED)
def in_c(op: EmbeddingLookup, context: PortableContext) -> list[CCall]:
    """Copy the rows, or decode those of integers; zeros where no row has the number."""
    made, dtype = op.infer_dtype(), op.value.dtype
    if made == dtype and dtype in MOVED:
        return [look_up(op.value, op.lookup, op.results[0], 0)]
    if made == dtype or dtype not in (TensorType.INT8, *PACKED):
        raise UnsupportedError(f"rows of {dtype.name} to {made.name} have no C form")
    table = context.constant(op.value)
    scales = _Scales.of(op, table)
    fields: dict[str, Field] = {"rows": len(table), "count": op.lookup.dims[0]}
    fields |= {"blocks": scales.blocks, "size": scales.size, "apart": scales.apart}
    fields |= {"weights": table.reshape(len(table), -1), "scales": scales.scale}
    call = CCall("luc_embedding", fields, (op.lookup,), op.results)
    return [with_packed_weights(call, table, context, most=0)]
