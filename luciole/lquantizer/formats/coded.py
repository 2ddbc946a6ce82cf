"""Weights as codes of learned levels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.ir import codes

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
        """The weights that the codes stand for: [n, o]."""
        table = self.basis @ codes.sign_codes(self.basis.shape[1]).T + self.offset[:, None]
        return np.take_along_axis(table.T, self.code, axis=0).astype(np.float32)
