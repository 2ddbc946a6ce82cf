"""The cell of basic recurrent layers: one step, for every operator that has such cells."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from luciole.ir import Array
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.recurrent.operands import Arrays, Weights
from luciole.schema.enums import ActivationFunctionType


class Cell:
    """The parameters of one layer. Operands are named as those of UNIDIRECTIONAL_SEQUENCE_RNN."""

    def __init__(
        self, activation: ActivationFunctionType, arrays: Arrays, weights: Mapping[str, Weights]
    ) -> None:
        self.activation, self.bias = activation, arrays["bias"]
        self.weights, self.recurrent = weights["weights"], weights["recurrent_weights"]
        self.auxiliary = weights.get("aux_weights")

    def step(self, x: Array, hidden: Array, other: Array | None = None) -> Array:
        """Compute the next output [batch, units]."""
        y = self.weights(x) + self.recurrent(hidden) + self.bias
        if self.auxiliary is not None and other is not None:
            y += self.auxiliary(other)
        return activate(y, self.activation)

    def run(self, steps: Array, hidden: Array, others: Array | None = None) -> Array:
        """Compute the outputs [time, batch, units] of steps [time, batch, inputs], one after the
        other; the state is overwritten with the last step's.
        """
        result = np.empty((*steps.shape[:2], hidden.shape[1]), np.float32)
        last = hidden
        for t, now in enumerate(steps):
            result[t] = self.step(now, last, None if others is None else others[t])
            last = result[t]
        hidden[...] = last
        return result
