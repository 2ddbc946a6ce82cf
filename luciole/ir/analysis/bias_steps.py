"""The steps of a layer's bias under integers, and what a file says of a layer where its weights are
codes of levels: only luciole reads such a file, so that scales which follow from others are left
out of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.levelsdecode import LevelsDecode
from luciole.ir.quantization import Affine, add_points, affine_of, without_points
from luciole.ir.value import Value
from luciole.schema.enums import TensorType
from luciole.schema.tables import QuantizationParameters

_WIDE = (TensorType.INT32, TensorType.INT64)
"""Types of biases."""


def steps_of_bias(op: Op, slots: Sequence[Value | None]) -> NDArray[np.float32] | None:
    """Compute the scale of a layer's bias, one or [outputs], with other operands in its ``slots``:
    its input's scale times its weights'. None where these are no integers, and where an input has
    several scales or weights have some of another axis than that of outputs, for which no kernel
    has steps.
    """
    quant = op.quantized_as
    named = dict(zip((name for name, _ in op.named_operands()), slots, strict=True))
    of_input = _scales(named.get(quant.input), None)
    of_weights = _scales(named.get(quant.weight or ""), quant.axis)
    return None if of_input is None or of_weights is None else of_input * of_weights


def _scales(value: Value | None, axis: int | None) -> NDArray[np.float32] | None:
    """Read the one scale of a tensor of integers, or those along an ``axis``; None for others."""
    affine = None if value is None else affine_of(value)
    if value is None or affine is None or affine.scale.size == 1:
        return None if affine is None else affine.scale
    count = len(value.dims)
    fits = axis is not None and -count <= axis < count and affine.axis == axis % count
    return affine.scale if fits and value.dims[affine.axis] == affine.scale.size else None


def shortened(graph: Graph) -> dict[Value, QuantizationParameters | None]:
    """Find the tensors of which a file says less, because ``complete`` finds the rest: biases of
    layers that read decoded levels, whose scales are products, and zero points of these levels.
    """
    short: dict[Value, QuantizationParameters | None] = {}
    for bias, own in _biases(graph):
        if bias.quantization == own:
            short[bias] = None
    for value in _decoded(graph):
        table = without_points(value)
        if table is not None:
            short[value] = table
    return short


def complete(graph: Graph) -> None:
    """Give tensors the quantization that a file leaves out."""
    for value in _decoded(graph):
        add_points(value)
    for bias, own in _biases(graph):
        if bias.quantization is None:
            bias.quantization = own


def _decoded(graph: Graph) -> Iterator[Value]:
    """Yield the decoded levels that are integers with scales."""
    for op in graph.ops:
        if isinstance(op, LevelsDecode):
            yield from (v for v in op.results if affine_of(v) is not None)


def _biases(graph: Graph) -> Iterator[tuple[Value, QuantizationParameters]]:
    """Yield the constant biases of layers that read decoded levels, with the quantization that
    kernels take them to have.
    """
    for value in _decoded(graph):
        for op, _ in value.users:
            bias = None if op.quant is None else op.given_operands().get(op.quant.bias or "")
            if bias is None or bias.dtype not in _WIDE or len(bias.users) > 1:
                continue
            steps = steps_of_bias(op, op.operands)
            if bias.is_constant and steps is not None:
                zeros = np.zeros(len(steps), np.int64)
                yield bias, Affine.channels(steps, zeros, 0, bias.dtype).table()
