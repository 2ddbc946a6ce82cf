"""Watch what recurrent layers hold inside, where no operator gives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from luciole.interpreter.records import Records
from luciole.ir import Array, Model, Op, TensorType, Value
from luciole.ir.ops.unidirectional_sequence_lstm import LSTMLayer, UnidirectionalSequenceLSTM
from luciole.ir.recurrent import GATES
from luciole.kernels.recurrent.lstm_cell import Cell, Gate, Settings, run
from luciole.kernels.recurrent.operands import Arrays, named_weights
from luciole.lquantizer.calibration.seen import Seen
from luciole.lquantizer.calibration.watch import watched

CELL, HIDDEN = "cell_state", "hidden"
"""The cells, and the outputs before a projection."""


def inner_tensors(op: LSTMLayer) -> dict[str, Value]:
    """Name the tensors inside of a layer whose ranges its integers need: cells, and where there
    are, outputs before a projection and gates before they are normalized ("input", "forget",
    "cell", "output"). All but the cells are in no graph.
    """
    operands = op.given_operands()
    names = [HIDDEN] if "projection_weights" in operands else []
    names += [gate for gate in GATES if f"{gate}_layer_norm_coefficients" in operands]
    shape = op.cell_state.shape
    others = {name: Value(f"{op.name}/{name}", TensorType.FLOAT32, shape) for name in names}
    return {CELL: op.cell_state, **others}


def seen_inside(
    model: Model, layers: Sequence[LSTMLayer], records: Records, batch: int
) -> dict[str, Seen]:
    """Run layers over all records, step by step and from states of 0, and return the statistics of
    their ``inner_tensors``, by name.

    Raises QuantizeError where NaN or infinity appears.
    """
    inner = {op: inner_tensors(op) for op in layers}
    seen = {v.name: Seen() for tensors in inner.values() for v in tensors.values()}
    for numbers, inputs in watched(model, [op.input for op in layers], records, batch):
        for op, x in zip(layers, inputs, strict=True):
            for name, array in _held(op, x).items():
                seen[inner[op][name].name].add(array.reshape(len(numbers), -1))
    return seen


def _held(op: LSTMLayer, x: Array) -> dict[str, Array]:
    """Run a layer and return its inner tensors, by name: [sequences, times, cells]."""
    constants = {name: v.data for name, v in op.given_operands().items() if v.data is not None}
    cell = _WatchedCell(op, constants)
    steps = _steps(op, x)
    cells = len(constants["forget_gate_bias"])
    outputs = len(constants.get("projection_weights", constants["forget_gate_bias"]))
    sequences = steps.shape[1]
    states = (np.zeros((sequences, n), np.float32) for n in (outputs, cells))
    run(cell.step, steps, *states)
    return {name: np.stack(arrays, 1) for name, arrays in cell.held.items()}


def _steps(op: Op, x: Array) -> Array:
    """Bring a layer's inputs of some records to [times, sequences, inputs]."""
    if not isinstance(op, UnidirectionalSequenceLSTM):
        return x.reshape(1, -1, x.shape[-1])
    if not op.time_major:
        return x.reshape(-1, *x.shape[-2:]).swapaxes(0, 1)
    whole = x.reshape(-1, *x.shape[-3:])  # records, times, sequences of each, inputs
    return whole.swapaxes(0, 1).reshape(whole.shape[1], -1, x.shape[-1])


class _WatchedCell(Cell):
    """A cell that keeps its inner tensors, step by step."""

    def __init__(self, op: LSTMLayer, arrays: Arrays) -> None:
        settings = Settings(op.activation, op.cell_clip, op.proj_clip)
        super().__init__(settings, arrays, named_weights(op, arrays, asymmetric=False))
        self.held: dict[str, list[Array]] = {}

    def step(
        self, x: Array, hidden: Array, cell: Array, other: Array | None = None
    ) -> tuple[Array, Array]:
        """Compute the next output and cell state."""
        first = {"input": self.input, "forget": self.forget, "cell": self.candidate}
        self._keep_sums(first, x, hidden, cell)
        output, after = super().step(x, hidden, cell, other)
        self._keep_sums({"output": self.output}, x, hidden, after)
        self._keep(CELL, after)
        return output, after

    def _keep_sums(
        self, gates: Mapping[str, Gate | None], x: Array, hidden: Array, cell: Array
    ) -> None:
        for name, gate in gates.items():
            if gate is not None and gate.norm is not None:
                self._keep(name, gate.sums(x, hidden, cell, None))

    def _projected(self, y: Array) -> Array:
        if self.projection is not None:
            self._keep(HIDDEN, y)
        return super()._projected(y)

    def _keep(self, name: str, array: Array) -> None:
        self.held.setdefault(name, []).append(array)
