"""Spell an LSTM over a known number of steps out as FULLY_CONNECTED and element-wise operators."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from luciole.ir.analysis.weights import is_layer
from luciole.ir.dtypes import Array
from luciole.ir.errors import ShapeError
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.activations import APPLIED, FUSED, Logistic
from luciole.ir.ops.control_flow import While
from luciole.ir.ops.elementwise_binary import Add, Maximum, Minimum, Mul, Sub
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.pack import Pack
from luciole.ir.ops.split import Split
from luciole.ir.ops.split_v import SplitV
from luciole.ir.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLSTM
from luciole.ir.ops.unpack import Unpack
from luciole.ir.recurrent import GATES, NORMS
from luciole.ir.rewriting.passes import graph_pass
from luciole.ir.value import Value
from luciole.schema.enums import ActivationFunctionType, TensorType

MOST_STEPS = 1024
"""Longest sequence that is spelled out: every step takes about 15 operators."""

LOOPS = "recurrent layers of a Keras file are unrolled by `luciole import --unroll`"
"""What to do about a WHILE."""

_STATES = ("output_state", "cell_state")
CANDIDATE = "cell"
"""The gate that is not opened by a LOGISTIC, but by the operator's activation."""


@graph_pass(on_request=True)
def unroll_unidirseqlstm(graph: Graph) -> bool:
    """UNIDIRECTIONAL_SEQUENCE_LSTM -> FULLY_CONNECTED, LOGISTIC, TANH, ... for each of its steps.

    The LSTM is one of floats, constant weights and a known number of steps. The states are not kept
    from run to run: every run starts from zeros, as a model does whose variables are reset before
    each run. One FULLY_CONNECTED takes all inputs; each step but the first has one of the output
    before. Both are for all gates at once, and all steps have the same constants. Sums are grouped
    otherwise than in the operator, so results differ by rounding.

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
    """Return a sentence for each LSTM of a graph that the pass leaves as it is, or one where there
    are no LSTMs at all.
    """
    layers = [op for op in graph.ops if isinstance(op, UnidirectionalSequenceLSTM)]
    if not layers:
        loop = next((f"; of {op}: {LOOPS}" for op in graph.ops if isinstance(op, While)), "")
        return [f"no LSTM to unroll: the model has no UNIDIRECTIONAL_SEQUENCE_LSTM{loop}"]
    reasons = {op: not_unrolled(op) for op in layers}
    return [f"{op} is not unrolled: {why}" for op, why in reasons.items() if why is not None]


def not_unrolled(op: UnidirectionalSequenceLSTM) -> str | None:
    """Return the reason why an LSTM stays as it is, None when it can be spelled out."""
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
    shared = _parameters(writer, op)
    step = _Step(writer, op, shared)
    layer = FullyConnected(op.input, shared.weights, shared.bias, keep_num_dims=True)
    sums = writer.add("inputs", layer)
    each = Unpack(sums, num=op.input.shape[axis] or 0, axis=axis)
    outputs: list[Value] = []
    cell: Value | None = None
    for t, x in enumerate(writer.add_all("x", each)):
        writer.place = str(t)
        hidden, cell = step.run(t, x, outputs[-1] if outputs else None, cell)
        outputs.append(hidden)
    writer.place = ""
    result = writer.add("y", Pack(tuple(outputs), values_count=len(outputs), axis=axis))
    name = op.name
    op.output.replace_with(result)
    graph.remove(op)
    result.name = name


class _Writer:
    """Adds operators before an LSTM. Layers and constants are named after its own result,
    ``lstm/step/3``, and what is between them shortly, ``t3/cell``: a file has a name for each step.
    Both begin as no other tensor does.
    """

    def __init__(self, graph: Graph, op: UnidirectionalSequenceLSTM) -> None:
        self.graph, self.op, self.place = graph, op, ""
        self.stem, self.short = self._free(f"{op.name}/step"), self._free("t")

    def _free(self, stem: str) -> str:
        names = [value.name for value in self.graph.values]
        while any(re.match(rf"{re.escape(stem)}\d*/", name) for name in names):
            stem += "_"
        return stem

    def constant(self, what: str, array: Array) -> Value:
        return self.graph.add_constant(f"{self.stem}/{what}", np.ascontiguousarray(array))

    def add(self, what: str, op: Op) -> Value:
        layer = "/".join(filter(None, (self.stem, self.place, what)))
        name = layer if is_layer(op) else self._name(what)
        return self.graph.insert_before(self.op, op, name).output

    def _name(self, what: str) -> str:
        return f"{self.short}{self.place}/{what}"

    def add_all(self, what: str, op: Op) -> tuple[Value, ...]:
        """Add an operator with several results, which are numbered."""
        names = [self._name(f"{what}{i}") for i in range(len(op.result_shapes()))]
        self.graph.insert_before(self.op, op, *names)
        return op.results


Limits = tuple[Value, Value] | None
"""The lowest and the highest value that passes, None for no limit."""


@dataclass(frozen=True)
class _Parameters:
    """The constants that all steps share. Gates follow each other in the rows of the weights, the
    candidate behind those that open by 0 to 1.
    """

    gates: tuple[str, ...]
    split_axis: Value
    split_sizes: Value
    """Rows of what opens, and of the candidate."""
    weights: Value
    bias: Value
    recurrent: Value
    peepholes: dict[str, Value]
    one: Value | None
    """For the input gate that is 1 - forget gate; None where it has weights of its own."""
    cell_limits: Limits
    projection_limits: Limits


def _parameters(writer: _Writer, op: UnidirectionalSequenceLSTM) -> _Parameters:
    arrays = {n: v.data for n, v in op.given_operands().items() if v.data is not None}
    coupled = op.input_to_input_weights is None
    gates = (*(g for g in GATES[coupled:] if g != CANDIDATE), CANDIDATE)

    def joined(what: str, pattern: str) -> Value:
        parts = [_matrix(arrays[pattern.format(gate)]) for gate in gates]
        return writer.constant(what, np.concatenate(parts))

    cells = len(arrays[f"{CANDIDATE}_gate_bias"])
    peepholes = {g: name for g in gates if (name := f"cell_to_{g}_weights") in arrays}
    return _Parameters(
        gates,
        writer.constant("split_axis", np.array(1, np.int32)),
        writer.constant("split_sizes", np.array([(len(gates) - 1) * cells, cells], np.int32)),
        joined("input_weights", "input_to_{}_weights"),
        writer.constant("bias", np.concatenate([arrays[f"{gate}_gate_bias"] for gate in gates])),
        joined("recurrent_weights", "recurrent_to_{}_weights"),
        {gate: writer.constant(name, arrays[name]) for gate, name in peepholes.items()},
        writer.constant("one", np.array(1, np.float32)) if coupled else None,
        _limits(writer, "cell_clip", op.cell_clip),
        _limits(writer, "proj_clip", op.proj_clip),
    )


def _matrix(weights: Array) -> Array:
    """Return weights [cells, n], of which a file may hold the diagonal alone."""
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

    def run(
        self, number: int, x: Value, hidden: Value | None, cell: Value | None
    ) -> tuple[Value, Value]:
        """Compute the next output [batch, outputs] and cell state [batch, cells]."""
        gates = self._gates(x, hidden)
        limits = self.shared.cell_limits if self._may_leave(number) else None
        new = self._clipped("cell", self._cell(gates, cell), limits)
        read = Mul(self._open("output", gates, new), self._activated("seen", new))
        return self._projected(self.add("read", read)), new

    def _may_leave(self, number: int) -> bool:
        """Return whether a cell state may leave its limits: each step adds at most 1 where the
        candidate is a TANH.
        """
        within = self.op.activation == ActivationFunctionType.TANH
        return not (within and number + 1 <= self.op.cell_clip)

    def _cell(self, gates: dict[str, Value], cell: Value | None) -> Value:
        """Compute the new cell state: forget gate * cell state + input gate * candidate."""
        one, candidate = self.shared.one, self._activated("new", gates[CANDIDATE])
        if one is None:
            written = Mul(self._open("input", gates, cell), candidate)
            forget = None if cell is None else self._open("forget", gates, cell)
        else:
            forget = self._open("forget", gates, cell)
            written = Mul(self.add("input", Sub(one, forget)), candidate)
        new = self.add("written", written)
        if cell is None or forget is None:
            return new
        return self.add("cell", Add(self.add("kept", Mul(forget, cell)), new))

    def _gates(self, x: Value, hidden: Value | None) -> dict[str, Value]:
        """Compute every gate before its activation; without peepholes, all but the candidate as far
        as they are open.
        """
        shared, total = self.shared, x
        if hidden is not None:
            recurrent = self.add("", FullyConnected(hidden, shared.recurrent))
            total = self.add("sum", Add(x, recurrent))
        if shared.peepholes:
            split = Split(shared.split_axis, total, num_splits=len(shared.gates))
            return dict(zip(shared.gates, self.writer.add_all("gate", split), strict=True))
        halves = SplitV(total, shared.split_sizes, shared.split_axis, num_splits=2)
        opening, candidate = self.writer.add_all("part", halves)
        opened = self.add("open", Logistic(opening))
        split = Split(shared.split_axis, opened, num_splits=len(shared.gates) - 1)
        gates = self.writer.add_all("gate", split)
        return dict(zip(shared.gates, (*gates, candidate), strict=True))

    def _open(self, gate: str, gates: dict[str, Value], cell: Value | None) -> Value:
        """Compute how far a gate is open, 0 to 1."""
        value, peepholes = gates[gate], self.shared.peepholes
        if not peepholes:
            return value
        if gate in peepholes and cell is not None:
            seen = self.add(f"{gate}/peephole", Mul(cell, peepholes[gate]))
            value = self.add(f"{gate}/sum", Add(value, seen))
        return self.add(gate, Logistic(value))

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
