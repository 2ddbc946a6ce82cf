"""Adam with all of its state in plain variables, so that a checkpoint can hold it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from luciole.ir import Array
from luciole.lquantizer.training.layers import Trained
from luciole.lquantizer.training.tensorflow import Tensor, TensorFlow

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-9
"""The paper's, but for epsilon: gradients of single weights are as small as 1e-8."""


class Adam:
    """Kingma and Ba 2015, arXiv:1412.6980, algorithm 1, a learning rate for each variable."""

    def __init__(self, tf: TensorFlow, trained: Sequence[Trained]) -> None:
        self._tf = tf
        self.trained = list(trained)
        self.first = [tf.Variable(tf.zeros_like(t.variable)) for t in self.trained]
        self.second = [tf.Variable(tf.zeros_like(t.variable)) for t in self.trained]
        self._changes = [tf.Variable(tf.zeros_like(t.variable)) for t in self.trained]
        self._factors = {chooses: tf.Variable(1.0) for chooses in (False, True)}

    def slow_down(self, factor: float) -> None:
        """Multiply the rates of variables that choose codes by a factor, all others by its square
        root: weights that go over to another level all at once harm a network most.
        """
        self._factors[True].assign(factor)
        self._factors[False].assign(math.sqrt(factor))

    @property
    def variables(self) -> list[Tensor]:
        """The trained variables."""
        return [t.variable for t in self.trained]

    def apply(self, gradients: Sequence[Tensor], schedule: Tensor) -> None:
        """Take one step; ``schedule`` is the result of the function of this name."""
        for trained, first, second, change, gradient in zip(
            self.trained, self.first, self.second, self._changes, gradients, strict=True
        ):
            if gradient is None:
                continue
            slope = gradient * trained.unit
            change.assign(self._tf.zeros_like(change))
            self._tf.raw_ops.ResourceApplyAdam(
                var=change.handle,
                m=first.handle,
                v=second.handle,
                beta1_power=schedule[1],
                beta2_power=schedule[2],
                lr=schedule[0] * trained.rate * self._factors[trained.chooses_codes],
                beta1=BETA_1,
                beta2=BETA_2,
                epsilon=EPSILON,
                grad=self._balanced(slope) if trained.chooses_codes else slope,
            )
            moves = self._balanced(change) if trained.chooses_codes else change
            trained.variable.assign_add(moves * trained.unit)

    def _balanced(self, rows: Tensor) -> Tensor:
        """Divide the mean of each row's n numbers [o, n] by the root of n: inputs behind a RELU are
        above 0, so that means add up where the rest cancels, and move the weights of a row to the
        same level all at once (an autoencoder with one bit: 0.067 instead of 0.032 after an epoch;
        Yong et al. 2020, "Gradient Centralization", remove all of the mean).
        """
        common = self._tf.reduce_mean(rows, -1, keepdims=True)
        return rows - (1 - 1 / math.sqrt(rows.shape[-1])) * common

    def forget(self) -> None:
        """Begin anew where the variables are: no gradient was ever seen."""
        for moment in (*self.first, *self.second):
            moment.assign(self._tf.zeros_like(moment))

    def state(self) -> dict[str, Array]:
        """Copy variables and moments by name."""
        arrays = {}
        for trained, first, second in zip(self.trained, self.first, self.second, strict=True):
            parts = {"value": trained.variable, "first": first, "second": second}
            arrays.update({f"{k}:{trained.name}": v.numpy() for k, v in parts.items()})
        return arrays

    def values(self) -> dict[str, Array]:
        """Copy variables by name, as in ``state``."""
        return {f"value:{t.name}": t.variable.numpy() for t in self.trained}

    def restore_values(self, values: Mapping[str, Array]) -> None:
        """Restore the variables from a result of ``values``, and leave the moments."""
        for trained in self.trained:
            trained.variable.assign(values[f"value:{trained.name}"])

    def restore(self, state: Mapping[str, Array]) -> None:
        """Restore variables and moments from a result of ``state``."""
        for trained, first, second in zip(self.trained, self.first, self.second, strict=True):
            parts = {"value": trained.variable, "first": first, "second": second}
            for kind, variable in parts.items():
                variable.assign(state[f"{kind}:{trained.name}"])


def schedule(step: int, steps: int) -> Array:
    """Give, for step 0, 1, ..., the share of the learning rate, 1 falling to 0 along half a cosine,
    and the powers of Adam's two factors.
    """
    share = 0.5 * (1 + math.cos(math.pi * step / steps))
    return np.array([share, BETA_1 ** (step + 1), BETA_2 ** (step + 1)], np.float32)
