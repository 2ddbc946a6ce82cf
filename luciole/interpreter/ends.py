"""Find the arrays that hold a graph's inputs and outputs as long as its plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from luciole.interpreter.plan import Plan
from luciole.ir import Array, Graph, TensorType, Value
from luciole.ir.names import Way

_MOST_SHOWN = 3
"""Inputs and outputs that a text names."""


class Ends(NamedTuple):
    """Inputs and outputs by name with the arrays that hold them as long as the plan, and the
    function that runs it.
    """

    inputs: list[tuple[str, Array]]
    outputs: list[tuple[str, Array]]
    run: Callable[[], object]


def ends_by_name(
    plan: Plan, values: Sequence[Value], calls: Sequence[Way]
) -> dict[str | None, Ends]:
    """Prepare the ways to call a graph, by the name of each input (None where there is none); not
    where an output makes room for others, or has extents that a run decides on, and where an input
    is a constant, which nobody may set.
    """
    ends: dict[str | None, Ends] = {}
    for call in calls if not any(value.is_constant for value in values) else ():
        inputs = _held(plan, zip(call.inputs, values, strict=True))
        outputs = _held(plan, call.outputs)
        if len(inputs) == len(values) and len(outputs) == len(call.outputs):
            names: list[str | None] = [*call.inputs]
            for name in names or [None]:
                ends.setdefault(name, Ends(inputs, outputs, plan.call))
    return ends


def _held(plan: Plan, named: Iterable[tuple[str, Value]]) -> list[tuple[str, Array]]:
    """Pair names with the arrays that hold their tensors, where there are arrays."""
    pairs = ((name, _numbers(plan, value)) for name, value in named)
    return [(name, array) for name, array in pairs if array is not None]


def _numbers(plan: Plan, value: Value) -> Array | None:
    """Return the array that holds a tensor, None for texts: those must be counted."""
    return None if value.dtype == TensorType.STRING else plan.array(value)


def lasting_arrays(plan: Plan, graph: Graph) -> dict[int, Array]:
    """Return the arrays of inputs and outputs by number: they stay the same as long as the plan."""
    numbers = {value: number for number, value in enumerate(graph.values)}
    ends = [v for v in (*graph.inputs, *graph.outputs) if not v.is_constant]
    arrays = {numbers[v]: _numbers(plan, v) for v in ends}
    return {number: array for number, array in arrays.items() if array is not None}


def ends_text(values: Sequence[Value]) -> str:
    """Write inputs or outputs, the first few of them."""
    shown = [repr(value) for value in values[:_MOST_SHOWN]]
    return ", ".join([*shown, "..."] if len(values) > _MOST_SHOWN else shown)
