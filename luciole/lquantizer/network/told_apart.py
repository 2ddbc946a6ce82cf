"""Find how far integers of a tensor need to reach: as far as those that read it tell numbers apart,
and far enough to stand for its infinities.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from luciole.ir import Op, TensorType, Value
from luciole.ir.analysis.endless import Signs
from luciole.ir.quant import Like
from luciole.ir.value import Use
from luciole.lquantizer.formats.affine import Range

ALL: Range = (-np.inf, np.inf)
NOTHING: Range = (0.0, 0.0)
Reach = Callable[[Value], Range]
"""The least and the largest number of a tensor, infinite where it holds infinities."""


def takes_infinity(op: Op) -> bool:
    """Return whether integers far enough from others stand for infinities in an operator's
    operands: it moves or picks elements, adds, saturates, or compares within rows.
    """
    quant = op.quant
    if quant is None:
        return False
    ends = quant.saturation or quant.contrast or quant.terms
    return bool(ends) or isinstance(quant.result, Like)


def told_apart(use: Use, dtype: TensorType, own: Range, ends: Reach, reach: Reach) -> Range:
    """Find the least and the largest number that an operator on integers of a type tells from all
    beyond, in an operand that reaches as far as its ``own`` range. ``ends`` says what integers of
    its result reach, ``reach`` what another operand does.
    """
    op, quant = use.op, use.op.quant
    if quant is None:
        return ALL
    if quant.saturation is not None:
        return quant.saturation.reach(dtype)
    if quant.contrast is not None:
        return own[0], np.inf
    if not quant.terms:
        return ALL
    beside = _signed(reach(op.required(1 - use.slot)), quant.terms[1 - use.slot])
    return _signed(_left(ends(op.output), beside), quant.terms[use.slot])


def _left(total: Range, beside: Range) -> Range:
    """Return the range of a term, beyond which the sum is out of its range whatever the other term
    is.
    """
    return total[0] - beside[1], total[1] - beside[0]


def _signed(limits: Range, sign: int) -> Range:
    return limits if sign > 0 else (-limits[1], -limits[0])


def fitted(limits: Range, endless: Signs, distinct: Range) -> Range:
    """Cut limits to the range that is told apart, and widen them to its end where infinities
    lie.
    """
    low, high = max(limits[0], distinct[0]), min(limits[1], distinct[1])
    if -1 in endless and distinct[0] > -np.inf:
        low = min(distinct[0], high)
    if 1 in endless and distinct[1] < np.inf:
        high = max(distinct[1], low)
    return low, high


def hull(ranges: list[Range]) -> Range:
    """Return the range that holds all ranges."""
    return min(low for low, _ in ranges), max(high for _, high in ranges)
