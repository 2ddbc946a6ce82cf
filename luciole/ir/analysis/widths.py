"""Count how many bits an operator's weights and inputs have."""

from __future__ import annotations

from typing import NamedTuple

from luciole.ir import Op, Value
from luciole.ir.analysis.decoded import decoded
from luciole.ir.analysis.weights import coded_weight, weight_constant
from luciole.ir.dtypes import element_bits
from luciole.ir.ops.bcq_fully_connected import BCQFullyConnected
from luciole.ir.ops.lq_fully_connected import LQLayer
from luciole.ir.ops.minifloat import minifloat_of


class Bits(NamedTuple):
    """Bits of a weight, and of an element of the input (None: not a number)."""

    weights: int
    input: int | None


def bits_of(op: Op) -> Bits | None:
    """Read the widths of an operator with weights, None for every other one."""
    if isinstance(op, LQLayer):
        kw, kx = op.weights_scales.shape[-1:], op.input_scales.shape[:1]
        return Bits(kw[0] or 0, kx[0]) if kw and kx else None
    if isinstance(op, BCQFullyConnected):
        clusters = op.weights_clusters.data
        known = clusters is not None and clusters.ndim == 2 and clusters.size
        return Bits(int(clusters[:, 0].max()), _input_bits(op)) if known else None  # type: ignore[index]  # known
    weights = weight_constant(op) or coded_weight(op)
    width = None if weights is None else _width(weights)
    return None if width is None else Bits(width, _input_bits(op))


def _input_bits(op: Op) -> int | None:
    first = op.operands[0] if op.operands else None
    return None if first is None else _width(first)


def _width(value: Value) -> int | None:
    """Count the bits of a tensor's elements; of a float one as many as it was read from or rounded
    to.
    """
    codes, numbers = decoded(value), minifloat_of(value)
    if codes is not None:
        return codes.format.bits
    return element_bits(value.dtype) if numbers is None else numbers.bits
