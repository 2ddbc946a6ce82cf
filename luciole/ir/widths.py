"""How many bits an operator's weights and inputs have."""

from __future__ import annotations

from typing import NamedTuple

from luciole.ir import Op, Value
from luciole.ir.dtypes import element_bits
from luciole.ir.op import INDEX
from luciole.ir.ops.bcq_fully_connected import BCQFullyConnected
from luciole.ir.ops.lq_fully_connected import LQLayer


class Bits(NamedTuple):
    """Bits of a weight, and of an element of the input (None: not a number)."""

    weights: int
    input: int | None


def bits_of(op: Op) -> Bits | None:
    """The widths of an operator with weights, None for every other one."""
    if isinstance(op, LQLayer):
        kw, kx = op.weights_scales.shape[-1:], op.input_scales.shape[:1]
        return Bits(kw[0] or 0, kx[0]) if kw and kx else None
    if isinstance(op, BCQFullyConnected):
        clusters = op.weights_clusters.data
        known = clusters is not None and clusters.ndim == 2 and clusters.size
        return Bits(int(clusters[:, 0].max()), _input_bits(op)) if known else None  # type: ignore[index]  # known
    weights = weights_of(op)
    width = None if weights is None else element_bits(weights.dtype)
    return None if width is None else Bits(width, _input_bits(op))


def weights_of(op: Op) -> Value | None:
    """The constant that an operator's weights are in: the declared one, else the largest matrix."""
    if op.quant is not None:
        slots = dict(op.named_operands())
        declared = slots.get(op.quant.weight)
        return declared if declared is not None and declared.is_constant else None
    matrices = [
        v
        for v in op.operands
        if v is not None and v.is_constant and len(v.dims) >= 2 and v.dtype not in INDEX
    ]
    return max(matrices, key=lambda v: len(v.buffer or ()), default=None)


def _input_bits(op: Op) -> int | None:
    first = op.operands[0] if op.operands else None
    return None if first is None else element_bits(first.dtype)
