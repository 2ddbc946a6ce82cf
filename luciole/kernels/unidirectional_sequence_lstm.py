"""UNIDIRECTIONAL_SEQUENCE_LSTM kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLSTM
from luciole.kernels.activation import activate
from luciole.kernels.activations import logistic
from luciole.kernels.registry import reference

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
