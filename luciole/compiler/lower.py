"""From a graph to calls of C functions, in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from luciole.interpreter.microscaling import InBlocks
from luciole.interpreter.settle import settle
from luciole.ir import Array, Graph, GraphError, Op, UnsupportedError, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.rnn import RNN, UnidirectionalSequenceRNN
from luciole.ir.ops.svdf import SVDF
from luciole.ir.ops.unidirectional_sequence_lstm import LSTMLayer
from luciole.ir.quantization import zero_code
from luciole.ir.value import element_count
from luciole.kernels.portable.calls import SCALAR, CCall, PortableContext, Vectors, portable_calls

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
    settled = settle(graph, shapes, MEMORY_LIMIT, simulates=False)
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
        {v: _beginning(v) for v in settled.graph.values if v.is_variable and v.users},
    )


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


def _refuse_open(ops: Sequence[Op]) -> None:
    """Refuse operators that depend on more than inputs of settled extents. Raises
    UnsupportedError.
    """
    for op in ops:
        if isinstance(op, InBlocks):
            raise UnsupportedError(f"{op.x.name!r} is in blocks that share scales: no C form")
        for value in (*op.operands, *op.results):
            if value is not None and None in value.shape:
                why = "has extents that only a run tells"
                raise UnsupportedError(f"{op}: {value.name!r} {why}, which C forms do not take")
            if value is not None and value.is_variable and not _is_alone(op, value):
                raise UnsupportedError(f"{op}: {value.name!r} is a variable that others use")


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
