"""Loops that run when the network does: a WHILE whose body reads the next element of sequences and
writes the next one of outputs. Where the number of steps is known once shapes are, the interpreter
compiles it as one step (``luciole/ir/passes/scans.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.operators.control_flow import joined
from luciole.importers.onnx.operators.shape import extents, with_axes
from luciole.ir import Graph, TensorType, Value
from luciole.ir.ops.comparisons import Less
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.control_flow import While
from luciole.ir.ops.dynamic_update_slice import DynamicUpdateSlice
from luciole.ir.ops.elementwise_binary import Add, Maximum
from luciole.ir.ops.fill import Fill
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.logical import LogicalAnd
from luciole.ir.ops.range import Range

MOST_NUMBERS = 1 << 16
"""Turns whose numbers are held in a list."""


@dataclass(frozen=True)
class Turn:
    """What the graph of a step is given, and later what it makes: the number of the turn, INT32;
    an element of each sequence; states; and values that stay as they are.
    """

    number: Value
    elements: Sequence[Value]
    states: Sequence[Value]
    held: Sequence[Value]


@dataclass(frozen=True)
class Made:
    """What a step makes: the next states, outputs, and whether to go on, None for always."""

    states: Sequence[Value]
    outputs: Sequence[Value]
    going: Value | None = None


Step = Callable[[Building, Turn], Made]
"""Adds a step to the graph that it is given."""


@dataclass(frozen=True)
class Looped:
    """What a loop works on: there are as many steps as the first sequence has elements, without one
    ``count``, an INT32 [], and fewer where a step says so. ``going`` tells of a first one.
    """

    sequences: Sequence[Value]
    states: Sequence[Value]
    held: Sequence[Value] = ()
    count: Value | None = None
    going: Value | None = None

    def extent(self, k: Building) -> int | Value:
        """Return how many steps there may be, at least one where that is known only in each run: no
        row is written into an empty list. Raises RefusedError where nothing bounds them.
        """
        if self.sequences:
            return _extent(k, self.sequences[0], 0)
        if self.count is None:
            raise RefusedError("nothing bounds the number of steps whose results it collects")
        if self.count.data is not None:
            return int(self.count.data)
        return k.reshape(k.add(Maximum(self.count, k.like(self.count, 1))), (1,))

    @property
    def is_counted_late(self) -> bool:
        """Whether the number of steps is known only when the network runs."""
        return not self.sequences and self.count is not None and self.count.data is None


@dataclass
class _Carried:
    """Operands of a WHILE, and beside each what its body reads and what it hands on instead."""

    k: Building
    body: Building
    operands: list[Value] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)

    def add(self, what: str, *values: Value) -> list[Value]:
        """Carry values; returns the inputs of the body, which hands them on as they are until it is
        told otherwise.
        """
        names = [self.body.name(f"{self.k.prefix}/{what}") for _ in values]
        added = [
            self.body.graph.add_input(name, value.shape, value.dtype)
            for name, value in zip(names, values, strict=True)
        ]
        self.operands += values
        self.inputs += added
        self.outputs += added
        return added

    def hand_on(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
        """Hand on values in the place of inputs. Raises RefusedError for other shapes or types."""
        for old, new in zip(inputs, outputs, strict=True):
            if (old.shape, old.dtype) != (new.shape, new.dtype):
                raise RefusedError("a step makes another shape or element type of its state")
            self.outputs[self.inputs.index(old)] = new

    def of(self, k: Building, value: Value) -> Value:
        """Find a value's place in another graph that has the same inputs: a copy of a constant, and
        its own input for an operand.
        """
        if value.data is not None:
            return k.held(value.data, dtype=value.dtype)
        return k.graph.inputs[self.operands.index(value)]

    def finished(self) -> list[Value]:
        """List the outputs of the body. LiteRT would write those that are another place's input, or
        stand twice, over each other: they are copied.
        """
        finished: list[Value] = []
        for own, value in zip(self.inputs, self.outputs, strict=True):
            is_moved = value.is_input and value is not own
            twice = any(value is other for other in finished)
            finished.append(self.body.copy(value) if is_moved or twice else value)
        return finished


def repeated(k: Building, loop: Looped, step: Step) -> tuple[list[Value], list[Value]]:
    """Add a WHILE; returns the last states, and for each output those of all steps [steps, ...].

    Raises RefusedError where a step changes the shape or element type of a state, where nothing
    ends the loop, and for outputs of steps without a bound or whose extents are not known.
    """
    carried = _Carried(k, _called(k, "body"))
    body, operands = carried.body, carried.operands
    (number,) = carried.add("step", k.constant(np.int32(0)))
    sequences = carried.add("sequence", *loop.sequences)
    states = carried.add("state", *loop.states)
    held = carried.add("held", *loop.held)
    elements = [body.add(Gather(sequence, number, axis=0)) for sequence in sequences]
    made = step(body, Turn(number, elements, states, held))
    _number_by_elements(carried, loop, made)
    carried.hand_on(states, made.states)
    lists = [carried.add("outputs", _room(k, loop, made, output))[0] for output in made.outputs]
    written = [_written(body, *pair, number) for pair in zip(lists, made.outputs, strict=True)]
    carried.hand_on(lists, written)
    going = _going(carried, loop, made)
    carried.hand_on([number], [body.add(Add(number, body.constant(np.int32(1))))])
    condition = _condition(carried, loop, going)
    body.graph.outputs = carried.finished()
    op = While(tuple(operands), condition_graph=condition, body_graph=body.graph)
    last = dict(zip(carried.inputs, k.several(op), strict=True))
    ends = [last[value] for value in lists]
    if (going is not None or loop.is_counted_late) and ends:
        ends = _cut(k, ends, last[number])
    return [last[value] for value in states], ends


def zeros(k: Building, kind: Value, axes: Sequence[tuple[Value, int]]) -> Value:
    """Make zeros of a value's element type whose extents are those of some values' axes: a constant
    where all of them are known.
    """
    return _filled(k, kind, [_extent(k, value, axis) for value, axis in axes])


def _extent(k: Building, value: Value, axis: int) -> int | Value:
    """Return an extent: an INT32 [1] where it is known only when the network runs."""
    known = value.shape[axis]
    if known is not None:
        return known
    return k.cast(extents(k, value, axis, axis + 1), TensorType.INT32)


def _filled(k: Building, kind: Value, dims: Sequence[int | Value]) -> Value:
    known = [n for n in dims if not isinstance(n, Value)]
    if len(known) == len(dims):
        return k.like(kind, k.filled(known, 0))
    parts = [n if isinstance(n, Value) else k.int32([n]) for n in dims]
    return k.add(Fill(joined(k, parts, 0), k.like(kind, 0)))


def _called(k: Building, what: str) -> Building:
    """Add a graph without inputs to the model; returns its builder."""
    inner = k.nodes.called(k, f"{k.prefix}/{what}", [])
    inner.prefix = k.prefix
    return inner


def _number_by_elements(carried: _Carried, loop: Looped, made: Made) -> None:
    """Read the number of the turn from a list, where it is more than a place and the number of
    turns is known: so it is an element as others are, and the loop is compiled as a scan.
    """
    count = None if loop.count is None else loop.count.data
    number, body = carried.inputs[0], carried.body.graph
    uses = [(op, slot) for op, slot in number.users if not isinstance(op, Gather) or slot != 1]
    conditional = made.going is not None or loop.going is not None
    if count is None or int(count) > MOST_NUMBERS or conditional or not uses:
        return
    numbers = carried.k.constant(np.arange(int(count), dtype=np.int32))
    (numbers,) = carried.add("numbers", numbers)
    name = carried.body.name(f"{carried.k.prefix}/number")
    element = body.insert_before(body.ops[0], Gather(numbers, number, axis=0), name).results[0]
    for op, slot in uses:
        operands = list(op.operands)
        operands[slot] = element
        op.set_operands(operands)


def _room(k: Building, loop: Looped, made: Made, output: Value) -> Value:
    """Make the list that an output of all steps is written into. Raises RefusedError where extents
    are not known, which are those of a state where the output is one.
    """
    rest: list[int | Value] = list(k.dims(output)) if None not in output.shape else []
    if None in output.shape:
        places = [n for n, state in enumerate(made.states) if state is output]
        if not places:
            k.dims(output)
        state = loop.states[places[0]]
        rest = [_extent(k, state, axis) for axis in range(len(state.shape))]
    return _filled(k, output, [loop.extent(k), *rest])


def _written(k: Building, whole: Value, output: Value, number: Value) -> Value:
    """Write an output into its list, at the number of the turn."""
    begin = k.reshape(number, (1,))
    if len(whole.shape) > 1:
        rest = k.constant(np.zeros(len(whole.shape) - 1, np.int32))
        begin = k.add(Concatenation((begin, rest), axis=0))
    return k.add(DynamicUpdateSlice(whole, with_axes(k, output, [0]), begin))


def _going(carried: _Carried, loop: Looped, made: Made) -> Value | None:
    """Carry whether there is another turn; None where that is no question."""
    if made.going is None and loop.going is None:
        return None
    first = carried.k.constant(np.bool_(True)) if loop.going is None else loop.going
    going = carried.add("going", carried.k.reshape(first, ()))
    carried.hand_on(going, going if made.going is None else [made.going])
    return going[0]


def _condition(carried: _Carried, loop: Looped, going: Value | None) -> Graph:
    """Make the graph that asks for another turn. Raises RefusedError where nothing ends a loop."""
    if loop.count is not None and loop.is_counted_late:
        carried.add("count", loop.count)
    k = _called(carried.k, "condition")
    for value in carried.inputs:
        k.graph.add_input(k.name(value.name), value.shape, value.dtype)
    asked, number = [], k.graph.inputs[0]
    if loop.sequences:
        count = k.cast(extents(k, k.graph.inputs[1], 0, 1), TensorType.INT32)
        asked.append(k.add(Less(number, k.reshape(count, ()))))
    elif loop.count is not None:
        asked.append(k.add(Less(number, carried.of(k, loop.count))))
    if going is not None:
        asked.append(k.graph.inputs[carried.inputs.index(going)])
    if not asked:
        raise RefusedError("nothing ends it")
    k.graph.outputs = [k.joined(LogicalAnd, asked)]
    return k.graph


def _cut(k: Building, lists: Sequence[Value], count: Value) -> list[Value]:
    """Leave the steps out of lists that were not taken."""
    first, one = (k.constant(np.int32(n)) for n in range(2))
    taken = k.add(Range(first, count, one))
    return [k.add(Gather(whole, taken, axis=0)) for whole in lists]
