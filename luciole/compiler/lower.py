"""From a graph to calls of C functions, in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from luciole.interpreter.microscaling import InBlocks
from luciole.interpreter.settle import settle
from luciole.ir import Array, Graph, GraphError, Op, UnsupportedError, Value
from luciole.kernels.portable.calls import SCALAR, CCall, PortableContext, Vectors, portable_calls

MEMORY_LIMIT = 4 << 30
"""Bytes of constants that a network may ask for."""


@dataclass(eq=False)
class Network:
    """Calls between inputs and outputs; ``outputs`` stand for those of the graph, ``originals``."""

    inputs: list[Value]
    outputs: list[Value]
    calls: list[CCall]
    constants: dict[Value, Array]
    originals: Mapping[Value, Value]

    def maker(self, value: Value) -> CCall | None:
        """Find the call that computes a tensor."""
        return next((call for call in self.calls if value in call.writes), None)

    def readers(self, value: Value) -> list[CCall]:
        """Find the calls that read a tensor."""
        return [call for call in self.calls if value in call.reads]

    def replace(self, old: CCall, *new: CCall) -> None:
        """Put calls in the place of another one."""
        place = self.calls.index(old)
        self.calls[place : place + 1] = new

    def remove_unread(self) -> None:
        """Remove calls of which nothing is read."""
        needed = set(self.outputs)
        kept = []
        for call in reversed(self.calls):
            if needed & set(call.writes):
                kept.append(call)
                needed |= set(call.reads)
        self.calls = kept[::-1]


def lower(graph: Graph, vectors: Vectors = SCALAR) -> Network:
    """Turn a graph into calls, for a machine whose registers hold ``vectors``.

    Raises UnsupportedError that lists what has no C form, GraphError for extents that only a run
    settles, and what ``settle`` raises.
    """
    shapes = {value: tuple(value.dims) for value in graph.inputs}
    settled = settle(graph, shapes, MEMORY_LIMIT)
    _refuse_open(settled.ops)
    hosts = _hosts(settled.ops)
    work = [op for op in settled.ops if not op.reshapes]
    calls = _all_calls(work, PortableContext(settled.constants, vectors))
    return Network(
        list(settled.graph.inputs),
        [hosts.get(v, v) for v in settled.graph.outputs],
        [replace(call, reads=tuple(hosts.get(v, v) for v in call.reads)) for call in calls],
        dict(settled.constants),
        {copy: value for value, copy in settled.values.items()},
    )


def _refuse_open(ops: Sequence[Op]) -> None:
    """Refuse what depends on more than inputs of settled extents. Raises UnsupportedError."""
    for op in ops:
        if isinstance(op, InBlocks):
            raise UnsupportedError(f"{op.x.name!r} is in blocks that share scales: no C form")
        for value in (*op.operands, *op.results):
            if value is not None and (value.is_variable or None in value.shape):
                why = "is a variable" if value.is_variable else "has extents that only a run tells"
                raise UnsupportedError(f"{op}: {value.name!r} {why}, which C forms do not take")


def _hosts(ops: Sequence[Op]) -> dict[Value, Value]:
    """Find, for results that are their operand's elements in another shape, the operand."""
    hosts: dict[Value, Value] = {}
    for op in ops:
        if op.reshapes:
            x = op.operands[0]
            if x is None:
                raise GraphError(f"{op} has no operand")
            hosts[op.results[0]] = hosts.get(x, x)
    return hosts


def _all_calls(ops: Iterable[Op], context: PortableContext) -> list[CCall]:
    """Make the calls of all operators. Raises one UnsupportedError that lists all without."""
    calls, reasons, kinds = [], [], []
    for op in ops:
        try:
            calls += [replace(call, source=op) for call in portable_calls(op, context)]
        except UnsupportedError as error:
            reasons.append(str(error))
            kinds.append(op.kind)
    if reasons:
        listed = ", ".join(f"{kind} ({kinds.count(kind)}x)" for kind in dict.fromkeys(kinds))
        raise UnsupportedError(f"cannot compile {listed}: {reasons[0]}", sorted(set(kinds)))
    return calls
