"""Loops over the elements of a sequence: a WHILE whose body reads the next element and writes the
next output, which the interpreter compiles as one step (``luciole/ir/passes/scans.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.operators.control_flow import joined
from luciole.importers.onnx.operators.shape import extents, with_axes
from luciole.ir import TensorType, Value
from luciole.ir.ops.comparisons import Less
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.control_flow import While
from luciole.ir.ops.dynamic_update_slice import DynamicUpdateSlice
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fill import Fill
from luciole.ir.ops.gather import Gather

Step = Callable[[Building, Value, Sequence[Value]], Sequence[Value]]
"""Adds a step to the graph that it is given: from an element and states to the next states, of
which the first is the output as well.
"""


def repeated(
    k: Building, sequence: Value, states: Sequence[Value], step: Step
) -> tuple[Value, list[Value]]:
    """Add a WHILE over a sequence [time, ...]; returns the outputs [time, ...] of all steps and the
    last states. Raises RefusedError where a step changes the shape or element type of a state.
    """
    outputs = zeros(k, states[0], [(sequence, 0), *((states[0], n) for n in range(2))])
    operands = (k.constant(np.int32(0)), outputs, sequence, *states)
    condition, body = _called(k, "condition", operands), _called(k, "body", operands)
    number, _, elements, *_ = condition.graph.inputs
    count = condition.cast(extents(condition, elements, 0, 1), TensorType.INT32)
    condition.graph.outputs = [condition.add(Less(number, condition.reshape(count, ())))]
    body.graph.outputs = _body(body, step)
    _check_states(states, body.graph.outputs[3:])
    loop = While(operands, condition_graph=condition.graph, body_graph=body.graph)
    _, whole, _, *last = k.several(loop)
    return whole, last


def zeros(k: Building, kind: Value, axes: Sequence[tuple[Value, int]]) -> Value:
    """Make zeros of a value's element type whose extents are those of some values' axes: a constant
    where all of them are known.
    """
    dims = [value.shape[axis] for value, axis in axes]
    known = [n for n in dims if n is not None]
    if len(known) == len(dims):
        return k.like(kind, k.filled(known, 0))
    parts = [k.cast(extents(k, value, axis, axis + 1), TensorType.INT32) for value, axis in axes]
    return k.add(Fill(joined(k, parts, 0), k.like(kind, 0)))


def _called(k: Building, what: str, operands: Sequence[Value]) -> Building:
    """Add a graph with inputs like the operands to the model; returns its builder."""
    names = ("step", "outputs", "sequence", *(["state"] * (len(operands) - 3)))
    hints = (f"{k.prefix}/{name}" for name in names)
    inner = k.nodes.called(k, f"{k.prefix}/{what}", zip(hints, operands, strict=True))
    inner.prefix = k.prefix
    return inner


def _body(k: Building, step: Step) -> list[Value]:
    """Add one turn: a step on the next element, whose output is kept, and a counter."""
    number, outputs, sequence, *states = k.graph.inputs
    element = k.add(Gather(sequence, number, axis=0))
    new = step(k, element, states)
    rest = k.constant(np.zeros(len(outputs.shape) - 1, np.int32))
    begin = k.add(Concatenation((k.reshape(number, (1,)), rest), axis=0))
    row = with_axes(k, new[0], [0])
    written = k.add(DynamicUpdateSlice(outputs, row, begin))
    return [k.add(Add(number, k.constant(np.int32(1)))), written, sequence, *new]


def _check_states(before: Sequence[Value], after: Sequence[Value]) -> None:
    for old, new in zip(before, after, strict=True):
        if (old.shape, old.dtype) != (new.shape, new.dtype):
            raise RefusedError("a step makes another shape or element type of its state")
