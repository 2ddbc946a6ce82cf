"""From which operator to which a tensor's contents are needed, and which tensors share a place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.rules import product
from luciole.ir.value import Value, impossible


class Lifetime(NamedTuple):
    """Numbers of the first and the last operator between which contents must last, both
    included.
    """

    first: int
    last: int


def shared_places(ops: Sequence[Op]) -> dict[Value, Value]:
    """Find results that are their operand's elements under another shape, and the tensor in whose
    place they stand.

    Not where somebody else may write the operand after the operator ran: a variable, or an input of
    the graph that would also be its output. Nor where contents or size are not settled.
    """
    places: dict[Value, Value] = {}
    for op in ops:
        operand = op.operands[0] if op.reshapes else None
        if operand is None or operand.is_constant or operand.is_variable:
            continue
        place, result = places.get(operand, operand), op.results[0]
        same_size = product(operand.shape) == product(result.shape) is not None
        fits = same_size and impossible(result.dims) is None
        if fits and not (place.is_input and result.is_output):
            places[result] = place
    return places


def lifetimes(
    graph: Graph, ops: Sequence[Op], shared: Mapping[Value, Value], keep: bool = False
) -> dict[Value, Lifetime]:
    """Find the lifetime of every tensor with a place of its own and of settled size.

    Inputs, outputs and variables last for good, and everything does with ``keep``.
    """
    end = len(ops)
    lives = {v: Lifetime(-1, end) for v in graph.inputs}
    lives |= {v: Lifetime(-1, end) for v in graph.values if v.is_variable}
    for number, op in enumerate(ops):
        for value in op.operands:
            place = None if value is None else shared.get(value, value)
            if place in lives:
                lives[place] = Lifetime(lives[place].first, max(lives[place].last, number))
        for value in op.results:
            if value not in shared and None not in value.shape:
                lives[value] = Lifetime(-1 if keep else number, end if keep else number)
    for value in graph.outputs:
        place = shared.get(value, value)
        if place in lives:
            lives[place] = Lifetime(lives[place].first, end)
    return lives
