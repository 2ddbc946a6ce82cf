"""Operators on the elements of two tensors, stretched to a common shape."""

from __future__ import annotations

import math

from luciole.exporters.onnx.building import Building
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.rules import elementwise, rule
from luciole.ir import Op, TensorType
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.add_n import AddN
from luciole.ir.ops.comparisons import (
    Comparison,
    NotEqual,
)
from luciole.ir.ops.elementwise_binary import (
    Atan2,
    Binary,
    FloorDiv,
    FloorMod,
    Maximum,
    Minimum,
    RightShift,
    SquaredDifference,
)
from luciole.ir.ops.select import Select, SelectV2
from luciole.ir.ops.stablehlo_elementwise import (
    StablehloAnd,
    StablehloMaximum,
    StablehloMinimum,
)

_EXTREMES: dict[type[Op], tuple[str, str, bool]] = {
    Maximum: ("Max", "Greater", True),
    Minimum: ("Min", "Less", True),
    StablehloMaximum: ("Max", "Less", False),
    StablehloMinimum: ("Min", "Greater", False),
}
"""Their nodes, and the comparison that lets x be taken, or y."""


@elementwise(*_EXTREMES)
def extreme(k: Building, op: Binary, x: Term, y: Term) -> Term:
    """Compare floats and take one: ONNX's own nodes give NaN where one of them is."""
    node, comparison, takes_x = _EXTREMES[type(op)]
    if NUMPY[op.x.dtype].kind != "f":
        return k.add(node, x, y)
    return k.add("Where", k.add(comparison, x, y), *((x, y) if takes_x else (y, x)))


@elementwise(AddN)
def add_n(k: Building, op: AddN, *terms: Term) -> Term:
    return k.add("Sum", *terms)


@elementwise(NotEqual)
def not_equal(k: Building, op: Comparison, x: Term, y: Term) -> Term:
    return k.add("Not", k.add("Equal", x, y))


@elementwise(StablehloAnd)
def both(k: Building, op: StablehloAnd, x: Term, y: Term) -> Term:
    return k.add("And" if op.x.dtype == TensorType.BOOL else "BitwiseAnd", x, y)


@elementwise(SquaredDifference)
def squared_difference(k: Building, op: SquaredDifference, x: Term, y: Term) -> Term:
    difference = k.add("Sub", x, y)
    return k.add("Mul", difference, difference)


@elementwise(FloorDiv)
def floor_div(k: Building, op: FloorDiv, x: Term, y: Term) -> Term:
    """Floor the quotient, of floats in double precision as kernels do; that of integers is cut
    toward zero, so its remainder is left out.
    """
    if NUMPY[op.x.dtype].kind == "f":
        x, y = (k.cast(term, TensorType.FLOAT64) for term in (x, y))
        return k.cast(k.add("Floor", k.add("Div", x, y)), op.x.dtype)
    return k.add("Div", k.add("Sub", x, k.add("Mod", x, y)), y)


@elementwise(FloorMod)
def floor_mod(k: Building, op: FloorMod, x: Term, y: Term) -> Term:
    """Take the remainder that has the divisor's sign: ONNX's of integers, C's of floats moved."""
    if NUMPY[op.x.dtype].kind != "f":
        return k.add("Mod", x, y)
    zero = k.number(0, op.x.dtype)
    rest = k.add("Mod", x, y, fmod=1)
    signs = k.add("Xor", k.add("Less", rest, zero), k.add("Less", y, zero))
    some = k.add("Not", k.add("Equal", rest, zero))
    return k.add("Where", k.add("And", some, signs), k.add("Add", rest, y), rest)


@elementwise(RightShift)
def right_shift(k: Building, op: RightShift, x: Term, y: Term) -> Term:
    """Shift as integers of 64 bits that are divided, rounding down: BitShift takes no sign."""
    wide, places = (k.cast(term, TensorType.INT64) for term in (x, y))
    power = k.add("Pow", k.number(2, TensorType.INT64), places)
    whole = k.add("Sub", wide, k.add("Mod", wide, power))
    return k.cast(k.add("Div", whole, power), op.x.dtype)


@elementwise(Atan2)
def atan2(k: Building, op: Atan2, y: Term, x: Term) -> Term:
    """Take the angle of both lengths, then the quadrant from both signs; of equal lengths, infinite
    ones too, it is an eighth of a turn, and of none it is 0.
    """
    zero, one = k.number(0, op.x.dtype), k.number(1, op.x.dtype)
    high, wide = k.add("Abs", y), k.add("Abs", x)
    alike = k.add("Where", k.add("Equal", wide, zero), zero, one)
    ratio = k.add("Where", k.add("Equal", high, wide), alike, k.add("Div", high, wide))
    angle = k.add("Atan", ratio)
    mirrored = k.add("Sub", k.number(math.pi, op.x.dtype), angle)
    whole = k.add("Where", _is_below(k, x, zero), mirrored, angle)
    return k.add("Where", _is_below(k, y, zero), k.add("Neg", whole), whole)


def _is_below(k: Building, x: Term, zero: Term) -> Term:
    """Return where numbers have a minus: -0 has one, too."""
    return k.add("Or", k.add("Less", x, zero), k.add("Less", k.add("Reciprocal", x), zero))


@elementwise(SelectV2)
def select(k: Building, op: SelectV2, condition: Term, t: Term, e: Term) -> Term:
    return k.add("Where", condition, t, e)


@rule(Select)
def select_rows(k: Building, op: Select) -> Term:
    """Align the condition with the first axes."""
    condition, rank, condition_rank = k.of(op.condition), len(op.t.shape), len(op.condition.shape)
    if condition_rank < rank:
        shape = (*op.condition.shape, *[1] * (rank - condition_rank))
        condition = k.unsqueeze(condition, range(condition_rank, rank), shape)
    return k.add("Where", condition, k.of(op.t), k.of(op.e))
