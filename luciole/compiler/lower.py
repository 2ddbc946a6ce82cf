"""From a graph to calls of C functions, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from luciole.compiler.variables import Variables, variables_of
from luciole.interpreter.microscaling import InBlocks
from luciole.interpreter.settle import Settled, settle
from luciole.ir import Array, Graph, GraphError, LucioleError, Op, UnsupportedError, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.rnn import RNN, UnidirectionalSequenceRNN
from luciole.ir.ops.svdf import SVDF
from luciole.ir.ops.unidirectional_sequence_lstm import LSTMLayer
from luciole.ir.quantization import zero_code
from luciole.ir.value import element_count
from luciole.kernels.portable.calls import (
    SCALAR,
    Called,
    CCall,
    PortableContext,
    Vectors,
    portable_calls,
)

MEMORY_LIMIT = 4 << 30
"""Bytes of constants that a network may ask for."""


@dataclass(eq=False)
class Network:
    """Calls between inputs and outputs; ``outputs`` stand for those of the graph, ``originals``.
    ``states`` last from run to run, and begin as they are here.
    """

    inputs: list[Value]
    outputs: list[Value]
    calls: list[CCall]
    constants: dict[Value, Array]
    originals: Mapping[Value, Value]
    states: Mapping[Value, Array] = field(default_factory=dict)

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
        needed = {*self.outputs, *self.states}
        kept = []
        for call in reversed(self.calls):
            if call.control is not None or needed & set(call.writes):
                kept.append(call)
                needed |= set(call.reads)
        self.calls = kept[::-1]


def lower(graph: Graph, vectors: Vectors = SCALAR, *, packs_weights: bool = True) -> Network:
    """Turn a graph into calls, for a machine whose registers hold ``vectors``; weights of few
    levels become codes where it ``packs_weights``.

    Raises UnsupportedError that lists what has no C form, GraphError for extents that only a run
    settles, and what ``settle`` raises.
    """
    settled = _settled(graph)
    for op in settled.ops:
        if open_ := _odd_operand(op):
            raise UnsupportedError(open_)
    hosts = _hosts(settled.ops)
    variables = variables_of(settled, MEMORY_LIMIT)
    graphs = _Graphs(variables, vectors, packs_weights)
    by_handle = variables.by_handle(settled.ops)
    calls, refused = _calls_of(settled, graphs.context(settled, by_handle))
    if refused:
        kinds = [op.kind for op in refused]
        listed = ", ".join(f"{kind} ({kinds.count(kind)}x)" for kind in dict.fromkeys(kinds))
        reason = next(iter(refused.values()))
        raise UnsupportedError(f"cannot compile {listed}: {reason}", sorted(set(kinds)))
    return Network(
        list(settled.graph.inputs),
        [hosts.get(v, v) for v in settled.graph.outputs],
        [replace(call, reads=tuple(hosts.get(v, v) for v in call.reads)) for call in calls],
        dict(settled.constants) | graphs.constants,
        {copy: value for value, copy in settled.values.items()},
        {v: _beginning(v) for v in settled.graph.values if v.is_variable and v.users}
        | variables.begins,
    )


@dataclass
class _Graphs:
    """Graphs that operators call, made calls of in the place of these; ``constants`` are all of
    theirs, ``named`` the variables that all graphs share.
    """

    named: Variables
    vectors: Vectors = SCALAR
    packs_weights: bool = True
    constants: dict[Value, Array] = field(default_factory=dict)

    def context(self, settled: Settled, variables: Mapping[Value, Value]) -> PortableContext:
        """Make the context of a graph's operators."""
        constants, packs_weights = settled.constants, self.packs_weights
        return PortableContext(constants, self.vectors, variables, packs_weights, self.called)

    def called(self, graph: Graph, operands: Sequence[Value]) -> Called:
        """Make the calls of a graph on these tensors. Raises UnsupportedError where an operator has
        no C form, and for states in it.
        """
        shapes = {x: operand.dims for x, operand in zip(graph.inputs, operands, strict=True)}
        settled = settle(graph, shapes, MEMORY_LIMIT, simulates=False)
        for op in settled.ops:
            if why := _odd_operand(op) or _state_in(op):
                raise UnsupportedError(f"graph {graph.name!r}: {why}")
        self.constants |= settled.constants
        by_handle = self.named.by_handle(settled.ops, is_called=True)
        calls, refused = _calls_of(settled, self.context(settled, by_handle))
        if refused:
            raise UnsupportedError(f"graph {graph.name!r}: {next(iter(refused.values()))}")
        own = dict(zip(settled.graph.inputs, operands, strict=True))
        hosts = own | {v: own.get(x, x) for v, x in _hosts(settled.ops).items()}
        read = [replace(call, reads=tuple(hosts.get(v, v) for v in call.reads)) for call in calls]
        return Called(read, [hosts.get(v, v) for v in settled.graph.outputs])


def _state_in(op: Op) -> str:
    """Explain that a called operator has a state without a name; empty for none."""
    has_state = any(value is not None and value.is_variable for value in op.operands)
    return f"{op} has a state, which C forms have in the main graph alone" if has_state else ""


def _beginning(value: Value) -> Array:
    """Return the first contents of a state: those in the file, else zeros (its zero point where it
    is quantized). Raises UnsupportedError for another number of bytes.
    """
    dtype, raw = NUMPY[value.dtype], value.buffer.data if value.buffer is not None else None
    if raw is None or not raw.size:
        return np.full(value.dims, zero_code(value), dtype)
    if raw.nbytes != element_count(value.dims) * np.dtype(dtype).itemsize:
        raise UnsupportedError(f"variable {value.name!r} begins with {raw.nbytes} bytes")
    return np.frombuffer(raw.tobytes(), dtype).reshape(value.dims)


def refusals(graph: Graph) -> dict[Op, str]:
    """Find the operators of a graph that have no C form, and why; operators are those that are left
    when all that is constant is computed. Raises what ``settle`` raises.
    """
    settled = _settled(graph)
    odd = {op: why for op in settled.ops if (why := _odd_operand(op))}
    rest = replace(settled, ops=[op for op in settled.ops if op not in odd])
    variables = variables_of(settled, MEMORY_LIMIT)
    context = _Graphs(variables).context(settled, variables.by_handle(settled.ops))
    _, refused = _calls_of(rest, context)
    return {op: (odd | refused)[op] for op in settled.ops if op in odd or op in refused}


def _settled(graph: Graph) -> Settled:
    """Settle a graph whose open extents count as 1. Raises LucioleError, naming inputs that have
    such, where an operator does not take them.
    """
    shapes = {value: tuple(value.dims) for value in graph.inputs}
    try:
        return settle(graph, shapes, MEMORY_LIMIT, simulates=False)
    except LucioleError as error:
        opened = [repr(value.name) for value in graph.inputs if None in value.shape]
        if not opened:
            raise
        hint = "luciole import --shape NAME=... settles them"
        raise GraphError(
            f"{error} (open extents of {', '.join(opened)} count as 1 in C: {hint})"
        ) from None


def _odd_operand(op: Op) -> str:
    """Explain which of an operator's tensors depends on more than inputs of settled extents; empty
    for none.
    """
    if isinstance(op, InBlocks):
        return f"{op.x.name!r} is in blocks that share scales: no C form"
    for value in (*op.operands, *op.results):
        if value is not None and None in value.shape:
            why = "has extents that only a run tells"
            return f"{op}: {value.name!r} {why}, which C forms do not take"
        if value is not None and value.is_variable and not _is_alone(op, value):
            return f"{op}: {value.name!r} is a variable that others use"
    return ""


def _is_alone(op: Op, value: Value) -> bool:
    """Return whether a variable is the state of one layer and nothing else."""
    users = len(value.users) == 1 and not value.is_input and not value.is_output
    return users and isinstance(op, LSTMLayer | SVDF | RNN | UnidirectionalSequenceRNN)


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


def _calls_of(settled: Settled, context: PortableContext) -> tuple[list[CCall], dict[Op, str]]:
    """Make the calls of all operators that do more than reshape; why some have none."""
    calls, refused = list[CCall](), dict[Op, str]()
    for op in settled.ops:
        if op.reshapes:
            continue
        try:
            made = portable_calls(op, context)
            calls += [replace(call, source=call.source or op) for call in made]
        except UnsupportedError as error:
            refused[op] = str(error)
    return calls, refused
