"""Find loops over the elements of a sequence: a WHILE that does a known number of steps, each of
which reads the next elements of some lists and writes the next elements of others.

That is how TensorFlow's converter writes recurrent layers. The name is that of ``jax.lax.scan``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from luciole.ir.graph import Graph
from luciole.ir.ops.comparisons import Less
from luciole.ir.ops.control_flow import While
from luciole.ir.ops.dynamic_update_slice import DynamicUpdateSlice
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.logical import LogicalAnd
from luciole.ir.passes.canonical.fuse_list_writes import fuse_list_writes
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.rewriting.patterns import first_of, follows, made_by
from luciole.ir.value import Value


@dataclass(frozen=True)
class Scan:
    """One step of a loop as a graph without counters.

    Numbers are places among the operands and results of the WHILE. The inputs of ``body`` are
    ``held`` ones, which stay as they are; ``states``, of which each step makes the next; and an
    element of each of ``read``. Its outputs are the next states, and an element of each of
    ``written``. Counters end at ``counts``, a number for each.
    """

    body: Graph
    steps: int
    held: Sequence[int]
    states: Sequence[int]
    read: Sequence[int]
    written: Sequence[int]
    counts: dict[int, int]


def scan_of(op: While) -> Scan | None:
    """Take a loop apart, None where it is no scan or a list is shorter than the loop is long."""
    starts = _counters(op)
    steps = None if not starts else _steps(op.condition_graph, starts)
    if steps is None or len(op.inputs) != len(op.body_graph.outputs):
        return None
    body, _ = op.body_graph.clone()
    fuse_list_writes(body)
    remove_dead(body)
    loop = _Body(body, [place for place, start in starts.items() if start == 0])
    reads, writes = loop.reads(), loop.writes()
    lists = [place for place, _ in reads] + list(writes)
    if any(_length(op.inputs[place]) < steps for place in lists):
        return None
    handed = [n for n, value in enumerate(body.inputs) if body.outputs[n] is value]
    states = [n for n in range(len(body.inputs)) if n not in {*handed, *writes, *starts}]
    readers = {op for _, op in reads}
    held = [n for n in handed if any(user not in readers for user, _ in body.inputs[n].users)]
    if not loop.separate(held, states, reads, writes):
        return None
    counts = {place: start + steps for place, start in starts.items()}
    return Scan(body, steps, held, states, [place for place, _ in reads], list(writes), counts)


def _counters(op: While) -> dict[int, int]:
    """Find the operands to which the body adds 1 and nothing else, and where they begin."""
    starts = {}
    for place, (operand, argument, result) in enumerate(
        zip(op.inputs, op.body_graph.inputs, op.body_graph.outputs, strict=False)
    ):
        start = operand.data if follows(result, argument) else None
        if start is not None and start.shape == () and start.dtype.kind == "i":
            starts[place] = int(start)
    return starts


def _steps(condition: Graph, starts: dict[int, int]) -> int | None:
    """Count the steps while all counters are less than constants, None for another condition."""
    (result,) = condition.outputs if len(condition.outputs) == 1 else (None,)
    least, left = None, [result]
    while left:
        value = left.pop()
        both = None if value is None else made_by(value, LogicalAnd)
        less = None if value is None else made_by(value, Less)
        if both is not None:
            left += [both.x, both.y]
        elif less is not None and less.x in condition.inputs and less.y.data is not None:
            start = starts.get(condition.inputs.index(less.x))
            if start is None or less.y.data.size != 1:
                return None
            steps = max(int(less.y.data.item()) - start, 0)
            least = steps if least is None else min(least, steps)
        else:
            return None
    return least


def _length(value: Value) -> int:
    return (value.shape[0] or 0) if value.shape else 0  # which no list without a rank has


class _Body:
    """A copy of the body, in which lists and counters are looked for."""

    def __init__(self, body: Graph, counters: Sequence[int]) -> None:
        self._body = body
        self._counters = [body.inputs[place] for place in counters]

    def reads(self) -> list[tuple[int, Gather]]:
        """Find where elements are read: places of the lists, which are handed on as they are."""
        gathers = []
        for op in self._body.ops:
            if isinstance(op, Gather) and op.indices in self._counters and self._handed(op.params):
                gathers.append((self._body.inputs.index(op.params), op))
        return [(place, op) for place, op in gathers if op.axis == 0 and op.batch_dims == 0]

    def _handed(self, value: Value) -> bool:
        inputs, outputs = self._body.inputs, self._body.outputs
        return value in inputs and outputs[inputs.index(value)] is value

    def writes(self) -> dict[int, DynamicUpdateSlice]:
        """Find lists whose element is written and that nothing else in the body looks at."""
        updates = {}
        for place, (argument, result) in enumerate(
            zip(self._body.inputs, self._body.outputs, strict=True)
        ):
            update = made_by(result, DynamicUpdateSlice)
            if update is None or update.input is not argument or len(argument.users) != 1:
                continue
            one = update.update.shape == (1, *argument.shape[1:])
            if one and first_of(update.start_indices, 0) in self._counters:
                updates[place] = update
        return updates

    def separate(
        self,
        held: Sequence[int],
        states: Sequence[int],
        reads: Sequence[tuple[int, Gather]],
        writes: dict[int, DynamicUpdateSlice],
    ) -> bool:
        """Make elements that are read inputs, and those that are written outputs; False where the
        body uses its counters, or a list that it writes, for anything else.
        """
        body = self._body
        inputs = [body.inputs[place] for place in (*held, *states)]
        gone = [value for value in body.inputs if value not in inputs]
        outputs = [body.outputs[place] for place in states]
        elements = []
        for _, gather in reads:
            value = gather.output
            elements.append(body.add_input(f"{value.name}/read", value.shape, value.dtype))
            value.replace_with(elements[-1])
        body.outputs = [*outputs, *(update.update for update in writes.values())]
        body.inputs = [*inputs, *elements, *gone]
        remove_dead(body)
        if any(value.users or value.is_output for value in gone):
            return False
        body.inputs = [*inputs, *elements]
        return True
