"""Weights as codes of learned levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.ir.number_format import LearnedLevels

Matrix = NDArray[np.float32]


@dataclass
class Coded:
    """Weights as codes: code numbers [n, o], bases [o, K], offsets [o], and the float weights that
    they stand for [n, o].
    """

    code: NDArray[np.intp]
    basis: NDArray[np.float64]
    offset: NDArray[np.float64]
    target: Matrix

    def values(self) -> Matrix:
        """Decode the weights that the codes stand for: [n, o]."""
        rows = LearnedLevels(self.basis, self.offset).decode(self.code.T)
        return np.ascontiguousarray(rows.T, np.float32)
