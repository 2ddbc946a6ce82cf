"""Give a model other outputs, and make tensors its inputs."""

from __future__ import annotations

from collections.abc import Sequence

from luciole.ir.errors import GraphError
from luciole.ir.graph import Model
from luciole.ir.names import main_tensor
from luciole.ir.op import Op
from luciole.ir.surgery.part import part_of
from luciole.ir.surgery.regions import Ends, ends_of, needed_for, with_handles
from luciole.ir.surgery.state import refuse_split_state, set_up, writers
from luciole.ir.value import Value


def cut(model: Model, *, outputs: Sequence[str] = (), inputs: Sequence[str] = ()) -> Model:
    """Make a model with other ``outputs``, any tensors that are computed (its own unless some are
    named), in which the tensors of ``inputs`` are given by the caller, beside those of its own
    inputs that it still needs. Operators that no output needs go.

    Raises GraphError for a tensor that cannot be an end, and where a variable's state would be
    split, LucioleError for a tensor of no such name.
    """
    graph = model.graph
    last = [_output(model, name) for name in outputs] or list(graph.outputs)
    first = [_input(model, name) for name in inputs]
    ops = _needed(model, last, first)
    refuse_split_state(model, ops, alone=False)
    taken = ends_of(graph, ops).inputs
    for value in first:
        if value not in taken and value not in last:
            raise GraphError(f"tensor {value.name!r} is not needed for {_called(last)}")
    own = [v for v in graph.inputs if (v in taken or v in last) and v not in first]
    return part_of(model, ops, Ends([*own, *first], last), alone=False)


def _needed(model: Model, last: Sequence[Value], first: Sequence[Value]) -> set[Op]:
    """List the operators that outputs need, and those that write the states of some of them."""
    ops: set[Op] = set()
    behind, count = needed_for(last, first), -1
    while len(ops) > count:
        count = len(ops)
        behind |= writers(model.graph, behind)
        operands = [v for op in behind for v in op.operands if v is not None]
        behind |= needed_for(operands, first)
        ops = with_handles(behind) | set_up(model.graph, behind)
    return ops


def _output(model: Model, name: str) -> Value:
    value = main_tensor(model.graph, name)
    if value.producer is None:
        raise GraphError(f"tensor {name!r} is no output: no operator computes it")
    return value


def _input(model: Model, name: str) -> Value:
    value = main_tensor(model.graph, name)
    if value.is_constant or value.is_variable:
        held = "a constant" if value.is_constant else "a variable"
        raise GraphError(f"tensor {name!r} is no input: it is {held} of the model")
    return value


def _called(values: Sequence[Value]) -> str:
    return ", ".join(repr(value.name) for value in values)
