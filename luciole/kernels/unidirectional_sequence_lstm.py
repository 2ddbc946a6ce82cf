"""UNIDIRECTIONAL_SEQUENCE_LSTM kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.unidirectional_sequence_lstm import GATES, UnidirectionalSequenceLSTM
from luciole.kernels import loops, lstm_steps
from luciole.kernels.activation import activate
from luciole.kernels.activations import logistic
from luciole.kernels.maps import bits
from luciole.kernels.registry import Context, NativeStep, native, reference
from luciole.schema.enums import ActivationFunctionType

Arrays = dict[str, Array]
"""Operands by name; absent ones are left out."""

EPSILON = np.float32(1e-8)
"""Added to the variance in layer normalization, as TFLite's MeanStddevNormalization does."""


@dataclass(frozen=True)
class Gate:
    """The parameters of one gate, or of the candidate for the cell ("cell gate")."""

    weights: Array
    recurrent: Array
    bias: Array
    peephole: Array | None
    norm: Array | None

    def __call__(self, x: Array, hidden: Array, cell: Array) -> Array:
        """The gate [batch, cells] before its activation, of x [batch, inputs] and the states."""
        diagonal = self.recurrent.ndim == 1
        y: Array = x @ self.weights.T
        y += hidden * self.recurrent if diagonal else hidden @ self.recurrent.T
        if self.peephole is not None:
            y += cell * self.peephole
        if self.norm is not None:
            y = _normalized(y) * self.norm
        y += self.bias
        return y


def _normalized(x: Array) -> Array:
    """Rows with mean 0 and variance 1."""
    centred = x - x.mean(axis=1, keepdims=True)
    variance = np.square(centred).mean(axis=1, keepdims=True)
    return np.asarray(centred / np.sqrt(variance + EPSILON))


def _gate(given: Arrays, name: str) -> Gate:
    return Gate(
        given[f"input_to_{name}_weights"],
        given[f"recurrent_to_{name}_weights"],
        given[f"{name}_gate_bias"],
        given.get(f"cell_to_{name}_weights"),
        given.get(f"{name}_layer_norm_coefficients"),
    )


class Memory:
    """All gates of one operator, and one step of time."""

    def __init__(self, op: UnidirectionalSequenceLSTM, given: Arrays) -> None:
        self.op = op
        self.input = _gate(given, "input") if "input_to_input_weights" in given else None
        self.forget, self.candidate = _gate(given, "forget"), _gate(given, "cell")
        self.output = _gate(given, "output")
        self.projection = given.get("projection_weights")
        self.projection_bias = given.get("projection_bias")

    def step(self, x: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
        """The next output [batch, outputs] and cell state [batch, cells]."""
        forget = logistic(self.forget(x, hidden, cell))
        write = 1 - forget if self.input is None else logistic(self.input(x, hidden, cell))
        candidate = activate(self.candidate(x, hidden, cell), self.op.activation)
        cell = _clipped(forget * cell + write * candidate, self.op.cell_clip)
        read = logistic(self.output(x, hidden, cell)) * activate(cell, self.op.activation)
        return self._projected(read), cell

    def _projected(self, y: Array) -> Array:
        if self.projection is None:
            return y
        y = y @ self.projection.T
        y = y if self.projection_bias is None else y + self.projection_bias
        return _clipped(y, self.op.proj_clip)


def _clipped(x: Array, limit: float) -> Array:
    return np.clip(x, -x.dtype.type(limit), x.dtype.type(limit)) if limit > 0 else x


@reference(UnidirectionalSequenceLSTM, TensorType.FLOAT32)
def lstm(op: UnidirectionalSequenceLSTM, *operands: Array | None) -> Array:
    """One step after the other; the two state operands are overwritten with the last step's."""
    names = [field.name for field in op.operand_fields()]
    given = {n: a for n, a in zip(names, operands, strict=True) if a is not None}
    x, hidden, cell = given["input"], given["output_state"], given["cell_state"]
    memory = Memory(op, given)
    steps = x if op.time_major else x.swapaxes(0, 1)
    result = np.empty((*steps.shape[:2], hidden.shape[1]), x.dtype)
    with np.errstate(all="ignore"):
        for t, now in enumerate(steps):
            result[t], cell = memory.step(now, hidden, cell)
            hidden = result[t]
    given["output_state"][...], given["cell_state"][...] = hidden, cell
    return result if op.time_major else np.ascontiguousarray(result.swapaxes(0, 1))


PLAIN = tuple(
    [f"{kind}_to_{gate}_weights" for kind in ("input", "recurrent") for gate in GATES]
    + [f"{gate}_gate_bias" for gate in GATES]
)
STATES = ("output_state", "cell_state")


@native(UnidirectionalSequenceLSTM, TensorType.FLOAT32)
def build(op: UnidirectionalSequenceLSTM, context: Context) -> NativeStep | None:
    """With an input gate and TANH, constant weights, and nothing else that may be added."""
    names = [field.name for field in op.operand_fields()]
    given = {n: a for n, a in zip(names, context.operands, strict=False) if a is not None}
    values = dict(zip(names, op.operands, strict=False))
    constant = all(value is None or value.is_constant for n, value in values.items() if n in PLAIN)
    plain = given.keys() == {"input", *STATES, *PLAIN}
    matrices = all(given[n].ndim == 2 for n in PLAIN[:8]) if plain else False
    if not (constant and matrices) or op.activation != ActivationFunctionType.TANH:
        return None
    return _step(op, given, context.results[0])


def _step(op: UnidirectionalSequenceLSTM, given: Arrays, y: Array) -> NativeStep:
    """Input and recurrent weights side by side: both meet their numbers in one loop."""
    both = [np.hstack([given[i], given[r]]) for i, r in zip(PLAIN[:4], PLAIN[4:8], strict=True)]
    weights = lstm_steps.packed(both)
    biases = lstm_steps.packed([given[n][:, None] for n in PLAIN[8:]])
    x, (hidden, cell) = given["input"], (given[n] for n in STATES)
    places = [a.ctypes.data for a in (y, x, hidden, cell, weights, biases)]
    time, batch = (0, 1) if op.time_major else (1, 0)
    steps = [array.strides[axis] for array in (x, y) for axis in (time, batch)]
    sizes = [x.shape[time], x.shape[2], hidden.shape[1]]
    limit = op.cell_clip if op.cell_clip > 0 else np.inf
    record = [*places, 0, x.shape[batch], *sizes, *steps, bits(limit)]
    return loops.step(
        lstm_steps.kernel(), record, 6, weights.size * x.shape[time], (weights, biases)
    )
