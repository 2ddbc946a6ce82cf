"""Weights as codes: of learned levels, and of integers with a scale."""

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


@dataclass
class Stepped:
    """Weights as integers from -most to most: codes [n, o], the scale of each output [o], or of
    each ``block`` of its inputs [n / block, o], and the float weights that they stand for [n, o];
    of each group where there are several.
    """

    code: NDArray[np.intp]
    scale: NDArray[np.float32]
    most: int
    target: Matrix
    block: int | None = None

    def values(self) -> Matrix:
        """Compute the weights that the codes stand for: [n, o]."""
        scale = self.scale[..., None, :]
        if self.block is not None:
            scale = np.repeat(self.scale, self.block, axis=0)
        return np.asarray(self.code * scale, np.float32)

    def nearest(self, target: Matrix, input: int) -> tuple[Matrix, NDArray[np.intp]]:
        """Find, for numbers of each output [..., o] and one of the inputs, the nearest value and
        its code.
        """
        scale = self.scale if self.block is None else self.scale[input // self.block]
        code = np.clip(np.rint(target / scale), -self.most, self.most)
        return np.asarray(code * scale, np.float32), code.astype(np.intp)
