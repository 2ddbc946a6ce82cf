"""The C form of layers of floats with weights of bytes, see ``c/hybrid.h``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from luciole.ir import Array, TensorType, UnsupportedError, Value
from luciole.ir.value import element_count
from luciole.kernels.portable.calls import CCall, Field, PortableContext
from luciole.kernels.portable.floats import activated, as_limits
from luciole.kernels.portable.images import cut_off
from luciole.kernels.portable.packed import BLOCK, with_packed_weights
from luciole.schema.enums import ActivationFunctionType as Activation

BY_BYTES = tuple(
    (TensorType.FLOAT32, weights, *bias)
    for weights in (TensorType.INT8, TensorType.INT4)
    for bias in ((), (TensorType.FLOAT32,))
)
"""Element types of input, weights and bias (or none)."""

MOST_SUMMED = 2**31 // (255 * 128)
"""Products of steps and weights whose sum fits into 32 bits."""


def hybrid_calls(
    x: Value,
    y: Value,
    windows: Mapping[str, Field],
    numbers: int,
    activation: Activation,
    context: PortableContext,
    *,
    weights: Array,
    scales: Array,
    bias: Array | None,
    asymmetric: bool,
    together: bool,
) -> list[CCall]:
    """Call the layer of images x, of ``numbers`` each, and weights [outputs, height, width, depth],
    as codes where they have few levels. Raises UnsupportedError where sums may leave 32 bits.
    """
    outputs, *taps = weights.shape
    if element_count(tuple(taps)) >= MOST_SUMMED:
        raise UnsupportedError("its sums may leave 32 bits")
    within, behind = as_limits(activation)
    fields: dict[str, Field] = {**windows, "depth": taps[-1], **cut_off(within)}
    fields |= {"asymmetric": int(asymmetric), "together": int(together), "bias": bias}
    fields |= {"weights": weights, "scales": np.broadcast_to(scales, outputs)}

    def layer(result: Value) -> CCall:
        call = CCall("luc_hybrid", fields, (x,), (result,), 8 * -(-numbers // 4))
        most = BLOCK if element_count(y.dims) > 2 * outputs else 0
        return with_packed_weights(call, weights, context, most=most)

    return activated(behind, y, layer)
