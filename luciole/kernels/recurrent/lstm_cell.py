"""The cell of long short-term memory: one step, for every operator that has such cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from luciole.ir import Array, UnsupportedError
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.arrays.logistic import logistic
from luciole.kernels.recurrent.operands import Arrays, Weights
from luciole.schema.enums import ActivationFunctionType

EPSILON = np.float32(1e-8)
"""Added to the variance in layer normalization, as TFLite's MeanStddevNormalization does."""


@dataclass(frozen=True)
class Settings:
    """The attributes that all such operators have."""

    activation: ActivationFunctionType
    cell_clip: float
    proj_clip: float


@dataclass(frozen=True)
class Gate:
    """The parameters of one gate, or of the candidate for the cell ("cell gate")."""

    weights: Weights
    recurrent: Weights
    bias: Array
    peephole: Array | None
    norm: Array | None
    auxiliary: Weights | None

    def __call__(self, x: Array, hidden: Array, cell: Array, other: Array | None) -> Array:
        """Compute the gate [batch, cells] before its activation, of x [batch, inputs], the states,
        and the auxiliary input.
        """
        y = self.sums(x, hidden, cell, other)
        if self.norm is not None:
            y = _normalized(y) * self.norm
        y += self.bias
        return y

    def sums(self, x: Array, hidden: Array, cell: Array, other: Array | None) -> Array:
        """Add up all products of the gate, before its normalization and its bias."""
        y = self.weights(x)
        if self.auxiliary is not None and other is not None:
            y += self.auxiliary(other)
        y += self.recurrent(hidden)
        if self.peephole is not None:
            y += cell * self.peephole
        return y


def _normalized(x: Array) -> Array:
    """Normalize rows to mean 0 and variance 1."""
    centred = x - x.mean(axis=1, keepdims=True)
    variance = np.square(centred).mean(axis=1, keepdims=True)
    return np.asarray(centred / np.sqrt(variance + EPSILON))


def _gate(arrays: Arrays, weights: Mapping[str, Weights], name: str) -> Gate:
    peephole = weights.get(f"cell_to_{name}_weights")
    recurrent = weights[f"recurrent_to_{name}_weights"]
    if recurrent.array.ndim == 1 and recurrent.scale is not None:
        raise UnsupportedError("diagonals of recurrent weights are float32 here, found int8")
    return Gate(
        weights[f"input_to_{name}_weights"],
        recurrent,
        arrays[f"{name}_gate_bias"],
        None if peephole is None else peephole.vector(),
        arrays.get(f"{name}_layer_norm_coefficients"),
        weights.get(f"auxillary_input_to_{name}_weights"),
    )


class Cell:
    """All gates of one layer. Operands are named as those of UNIDIRECTIONAL_SEQUENCE_LSTM."""

    def __init__(self, settings: Settings, arrays: Arrays, weights: Mapping[str, Weights]) -> None:
        self.settings = settings
        has_input_gate = "input_to_input_weights" in weights
        self.input = _gate(arrays, weights, "input") if has_input_gate else None
        self.forget, self.candidate, self.output = (
            _gate(arrays, weights, name) for name in ("forget", "cell", "output")
        )
        self.projection = weights.get("projection_weights")
        self.projection_bias = arrays.get("projection_bias")

    def step(
        self, x: Array, hidden: Array, cell: Array, other: Array | None = None
    ) -> tuple[Array, Array]:
        """Compute the next output [batch, outputs] and cell state [batch, cells]."""
        forget = logistic(self.forget(x, hidden, cell, other))
        write = 1 - forget if self.input is None else logistic(self.input(x, hidden, cell, other))
        candidate = activate(self.candidate(x, hidden, cell, other), self.settings.activation)
        cell = _clipped(forget * cell + write * candidate, self.settings.cell_clip)
        shown = activate(cell, self.settings.activation)
        return self._projected(logistic(self.output(x, hidden, cell, other)) * shown), cell

    def _projected(self, y: Array) -> Array:
        if self.projection is None:
            return y
        y = self.projection(y)
        y = y if self.projection_bias is None else y + self.projection_bias
        return _clipped(y, self.settings.proj_clip)


Step = Callable[[Array, Array, Array, "Array | None"], tuple[Array, Array]]
"""One step of a cell: the next output and cell state, of an input, the states before, and the
auxiliary input.
"""


def run(step: Step, steps: Array, hidden: Array, cell: Array, others: Array | None = None) -> Array:
    """Compute the outputs [time, batch, outputs] of steps [time, batch, inputs], one after the
    other; the states are overwritten with the last step's.
    """
    result = np.empty((*steps.shape[:2], hidden.shape[1]), hidden.dtype)
    last, memory = hidden, cell
    for t, now in enumerate(steps):
        result[t], memory = step(now, last, memory, None if others is None else others[t])
        last = result[t]
    hidden[...], cell[...] = last, memory
    return result


def _clipped(x: Array, limit: float) -> Array:
    return np.clip(x, -x.dtype.type(limit), x.dtype.type(limit)) if limit > 0 else x
