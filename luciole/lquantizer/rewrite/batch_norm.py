"""A layer's batch normalization, and how it is folded into weights and bias."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array

EPSILON = 1e-3
"""Keras's, which a file does not keep."""

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class BatchNorm:
    """A batch normalization behind a layer without bias: scale, shift, long-run mean and variance
    of what the layer gives, [o] each.
    """

    gamma: Floats
    beta: Floats
    mean: Floats
    variance: Floats
    epsilon: float = EPSILON

    @property
    def deviation(self) -> Floats:
        """The long-run standard deviation [o], epsilon in it."""
        return np.asarray(np.sqrt(self.variance + np.float32(self.epsilon)), np.float32)

    def fold(self, weights: Array, bias: Array | float = 0.0) -> tuple[Floats, Floats]:
        """Fold it into weights [o, n] and bias [o]: gamma w / sigma, gamma (b - mu) / sigma + beta
        (Jacob et al. 2018, section 3.2).
        """
        factor = self.gamma / self.deviation
        shift = factor * (bias - self.mean) + self.beta
        return np.asarray(weights * factor[:, None], np.float32), np.asarray(shift, np.float32)


@dataclass(frozen=True)
class Normalized:
    """A layer's weights [o, n] before its batch normalization was folded, and that."""

    weights: Floats
    norm: BatchNorm
