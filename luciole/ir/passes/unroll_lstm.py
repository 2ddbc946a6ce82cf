"""Spell an LSTM over a known number of steps out as FULLY_CONNECTED and element-wise operators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from luciole.ir.analysis.weights import is_layer
from luciole.ir.dtypes import Array
from luciole.ir.errors import ShapeError
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.activations import APPLIED, FUSED, Logistic
from luciole.ir.ops.elementwise_binary import Add, Maximum, Minimum, Mul, Sub
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.pack import Pack
from luciole.ir.ops.split import Split
from luciole.ir.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLSTM
from luciole.ir.ops.unpack import Unpack
from luciole.ir.recurrent import GATES, NORMS
from luciole.ir.value import Value
from luciole.schema.enums import TensorType

MOST_STEPS = 1024
"""Longest sequence that is spelled out: every step takes about 15 operators."""

_STATES = ("output_state", "cell_state")


def unroll_lstm(graph: Graph) -> bool:
    """Replace every float LSTM with constant weights and a known number of steps by its steps.

    The states are not kept from run to run: every run starts from zeros, as a model does whose
    variables are reset before each run. Each step is one FULLY_CONNECTED of its input and, but for
    the first, one of the output before, for all gates at once and with the same constants as every
    other step. Sums are grouped otherwise than in the operator, so results differ by rounding.

    What ``not_unrolled`` gives a reason for stays as it is. The weights, states and other tensors
    that nothing uses any more are left to ``remove_dead``.
    """
    changed = False
    for op in list(graph.ops):
        if isinstance(op, UnidirectionalSequenceLSTM) and not_unrolled(op) is None:
            _unroll(graph, op)
            changed = True
    return changed


def whole_lstms(graph: Graph) -> list[str]:
    """Say, in a sentence each, which LSTMs of a graph the pass leaves as they are, and that there
    are none at all.
    """
    found = [op for op in graph.ops if isinstance(op, UnidirectionalSequenceLSTM)]
    if not found:
        return ["no LSTM to unroll: the model has no UNIDIRECTIONAL_SEQUENCE_LSTM"]
    reasons = {op: not_unrolled(op) for op in found}
    return [f"{op} is not unrolled: {why}" for op, why in reasons.items() if why is not None]


def not_unrolled(op: UnidirectionalSequenceLSTM) -> str | None:
    """Why an LSTM stays as it is, None when it can be spelled out."""
    try:
        op.result_shapes()
    except ShapeError as error:
        return str(error)
    steps = op.input.shape[0 if op.time_major else 1]
    if steps is None:
        return "its number of steps is unknown"
    if not 1 <= steps <= MOST_STEPS:
        return f"it has {steps} steps, 1 to {MOST_STEPS} are spelled out"
    if op.activation not in APPLIED:
        return f"its activation {op.activation.name} has no operator"
    return _about_parameters(op) or _about_states(op)


def _about_parameters(op: UnidirectionalSequenceLSTM) -> str | None:
    for name, value in op.named_operands():
        if value is None or name in _STATES:
            continue
        if name in NORMS:
            return "its gates are normalized"
        if value.dtype != TensorType.FLOAT32:
            return f"{name} is {value.dtype.name}, FLOAT32 is needed"
        if name != "input" and value.data is None:
            return f"{name} is not constant"
    return None


def _about_states(op: UnidirectionalSequenceLSTM) -> str | None:
    for name, value in ((n, v) for n, v in op.named_operands() if n in _STATES):
        if value is None or not value.is_variable:
            return f"{name} is not a variable"
        raw = value.buffer.data if value.buffer is not None else None
        if raw is not None and raw.any():
            return f"{name} does not start at zero"
        if len(value.users) > 1 or value.is_input or value.is_output:
            return f"{name} is used elsewhere too"
    return None


def _unroll(graph: Graph, op: UnidirectionalSequenceLSTM) -> None:
    """Put the steps in front of the operator, then let their outputs take its result's place."""
    axis = 0 if op.time_major else 1
    writer = _Writer(graph, op)
    step = _Step(writer, op, _parameters(writer, op))
    inputs = writer.add_all("inputs", Unpack(op.input, num=op.input.shape[axis] or 0, axis=axis))
    outputs: list[Value] = []
    cell: Value | None = None
    for t, x in enumerate(inputs):
        writer.place = f"{t}/"
        hidden, cell = step.run(x, outputs[-1] if outputs else None, cell)
        outputs.append(hidden)
    writer.place = ""
    result = writer.add("outputs", Pack(tuple(outputs), values_count=len(outputs), axis=axis))
    name = op.name
    op.output.replace_with(result)
    graph.remove(op)
    result.name = name


class _Writer:
    """Adds operators before an LSTM. Layers and constants are named after its own result,
    ``lstm/step/3/from_input``, and what is between them shortly, ``step/3/cell``: a file has a name
    for each step. Both begin as no other tensor does.
    """

    def __init__(self, graph: Graph, op: UnidirectionalSequenceLSTM) -> None:
        self.graph, self.op, self.place = graph, op, ""
        self.stem, self.short = self._free(f"{op.name}/step"), self._free("step")

    def _free(self, stem: str) -> str:
        while any(value.name.startswith(f"{stem}/") for value in self.graph.values):
            stem += "_"
        return stem

    def constant(self, what: str, array: Array) -> Value:
        return self.graph.add_constant(f"{self.stem}/{what}", np.ascontiguousarray(array))

    def add(self, what: str, op: Op) -> Value:
        stem = self.stem if is_layer(op) else self.short
        return self.graph.insert_before(self.op, op, f"{stem}/{self.place}{what}").output

    def add_all(self, what: str, op: Op) -> tuple[Value, ...]:
        """Add an operator with several results, which are numbered."""
        names = [f"{self.short}/{self.place}{what}/{i}" for i in range(len(op.result_shapes()))]
        self.graph.insert_before(self.op, op, *names)
        return op.results


Limits = tuple[Value, Value] | None
"""The lowest and the highest value that passes, None for no limit."""


@dataclass(frozen=True)
class _Parameters:
    """The constants that all steps share. Gates follow each other in the rows of the weights."""

    gates: tuple[str, ...]
    split_axis: Value
    weights: Value
    bias: Value
    recurrent: Value
    peepholes: dict[str, Value]
    one: Value | None
    """For the input gate that is 1 - forget gate; None where it has weights of its own."""
    cell_limits: Limits
    projection_limits: Limits


def _parameters(writer: _Writer, op: UnidirectionalSequenceLSTM) -> _Parameters:
    given = {n: v.data for n, v in op.given_operands().items() if v.data is not None}
    coupled = op.input_to_input_weights is None
    gates = GATES[1:] if coupled else GATES

    def joined(what: str, pattern: str) -> Value:
        parts = [_matrix(given[pattern.format(gate)]) for gate in gates]
        return writer.constant(what, np.concatenate(parts))

    peepholes = {g: name for g in gates if (name := f"cell_to_{g}_weights") in given}
    return _Parameters(
        gates,
        writer.constant("split_axis", np.array(1, np.int32)),
        joined("input_weights", "input_to_{}_weights"),
        writer.constant("bias", np.concatenate([given[f"{gate}_gate_bias"] for gate in gates])),
        joined("recurrent_weights", "recurrent_to_{}_weights"),
        {gate: writer.constant(name, given[name]) for gate, name in peepholes.items()},
        writer.constant("one", np.array(1, np.float32)) if coupled else None,
        _limits(writer, "cell_clip", op.cell_clip),
        _limits(writer, "proj_clip", op.proj_clip),
    )


def _matrix(weights: Array) -> Array:
    """Weights [cells, n], of which a file may hold the diagonal alone."""
    return np.diag(weights) if weights.ndim == 1 else weights


def _limits(writer: _Writer, what: str, clip: float) -> Limits:
    if not clip > 0:
        return None
    lowest, highest = (np.array(sign * clip, np.float32) for sign in (-1, 1))
    return writer.constant(f"{what}/low", lowest), writer.constant(f"{what}/high", highest)


class _Step:
    """Writes one step of time; ``luciole/kernels/unidirectional_sequence_lstm.py`` is the model.

    The first step has no output and no cell state before it: what they would add is 0, left out.
    """

    def __init__(
        self, writer: _Writer, op: UnidirectionalSequenceLSTM, shared: _Parameters
    ) -> None:
        self.add, self.op, self.shared, self.writer = writer.add, op, shared, writer

    def run(self, x: Value, hidden: Value | None, cell: Value | None) -> tuple[Value, Value]:
        """Compute the next output [batch, outputs] and cell state [batch, cells]."""
        gates = self._gates(x, hidden)
        new = self._clipped("cell", self._cell(gates, cell), self.shared.cell_limits)
        read = Mul(self._open("output", gates, new), self._activated("cell_activated", new))
        return self._projected(self.add("read", read)), new

    def _cell(self, gates: dict[str, Value], cell: Value | None) -> Value:
        """Compute the new cell state: forget gate * cell state + input gate * candidate."""
        one, candidate = self.shared.one, self._activated("candidate", gates["cell"])
        if one is None:
            written = Mul(self._open("input", gates, cell), candidate)
            forget = None if cell is None else self._open("forget", gates, cell)
        else:
            forget = self._open("forget", gates, cell)
            written = Mul(self.add("input_gate", Sub(one, forget)), candidate)
        new = self.add("written", written)
        if cell is None or forget is None:
            return new
        return self.add("cell", Add(self.add("kept", Mul(forget, cell)), new))

    def _gates(self, x: Value, hidden: Value | None) -> dict[str, Value]:
        """Compute every gate before its activation and peephole."""
        shared = self.shared
        total = self.add("from_input", FullyConnected(x, shared.weights, shared.bias))
        if hidden is not None:
            recurrent = self.add("from_output", FullyConnected(hidden, shared.recurrent))
            total = self.add("sum", Add(total, recurrent))
        split = Split(shared.split_axis, total, num_splits=len(shared.gates))
        return dict(zip(shared.gates, self.writer.add_all("gates", split), strict=True))

    def _open(self, gate: str, gates: dict[str, Value], cell: Value | None) -> Value:
        """Compute how far a gate is open, 0 to 1."""
        value, peephole = gates[gate], self.shared.peepholes.get(gate)
        if peephole is not None and cell is not None:
            seen = self.add(f"{gate}_gate/peephole", Mul(cell, peephole))
            value = self.add(f"{gate}_gate/sum", Add(value, seen))
        return self.add(f"{gate}_gate", Logistic(value))

    def _activated(self, what: str, value: Value) -> Value:
        activation = FUSED.get(self.op.activation)
        return value if activation is None else self.add(what, activation(value))

    def _clipped(self, what: str, value: Value, limits: Limits) -> Value:
        if limits is None:
            return value
        lowest, highest = limits
        raised = self.add(f"{what}/raised", Maximum(value, lowest))
        return self.add(f"{what}/clipped", Minimum(raised, highest))

    def _projected(self, value: Value) -> Value:
        weights, limits = self.op.projection_weights, self.shared.projection_limits
        if weights is None:
            return value
        projected = FullyConnected(value, weights, self.op.projection_bias)
        return self._clipped("projected", self.add("projected", projected), limits)
