"""Cut a layer of learned levels into tiles whose counters stay in registers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.kernels.jit import LANES
from luciole.kernels.jit.processor import vector_registers
from luciole.kernels.jit.vector.bit_lookups import LOOKS_UP

MAX_COUNTERS = 20 if vector_registers() == 32 or LOOKS_UP else 4
"""Vectors of counters in one tile: with weights and an input word they fill the registers, of which
counting takes some where no instruction does it. Two counters of bytes are one register of AVX2.
"""

VECTORS = (4, 2) if LOOKS_UP else (4, 2, 1)
"""How many vectors of outputs a tile may have."""

MAX_PIXELS = 8
"""Pixels in one tile: each takes a register that holds its address."""


@dataclass(frozen=True)
class Tiling:
    """A layer's cut: ``passes`` over ``planes`` input planes each (together at least kx), and
    ``groups`` of ``vectors`` times 16 outputs. A pixel is a position of an image, or a row of a
    matrix.
    """

    planes: int
    passes: int
    weight_planes: int
    vectors: int
    groups: int
    most_pixels: int

    @classmethod
    def of(cls, kx: int, kw: int, outputs: int, pixels: int | None = None) -> Tiling:
        """Choose tiles that read as few words as possible for their counts.

        For a layer with at most ``pixels`` of them; where that is left open tiles are wide.
        """
        passes = -(-kx // max(1, MAX_COUNTERS // (kw * VECTORS[-1])))
        planes = -(-kx // passes)
        needed = -(-outputs // LANES)
        fitting = [v for v in VECTORS if v * planes * kw <= MAX_COUNTERS]

        def most(vectors: int) -> int:
            fits = max(1, min(MAX_PIXELS, MAX_COUNTERS // (planes * kw * vectors)))
            return fits if pixels is None else max(1, min(fits, pixels))

        def words(vectors: int) -> tuple[int, float]:
            waste = -(-needed // vectors) * vectors
            if pixels is None:
                return waste, 0
            counted = planes * kw * vectors * most(vectors)
            return waste, (kw * vectors + planes * most(vectors) / 2) / counted

        vectors = min(fitting, key=words)
        return cls(planes, passes, kw, vectors, -(-needed // vectors), most(vectors))

    @property
    def lanes(self) -> int:
        """Outputs in one group."""
        return self.vectors * LANES

    @property
    def all_planes(self) -> int:
        """Planes for which a word of the input has room."""
        return self.planes * self.passes

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The planes, weight planes, vectors and passes that a kernel is compiled for besides its
        pixels.
        """
        return self.planes, self.weight_planes, self.vectors, self.passes

    def filled(self, basis: Array) -> NDArray[np.float32]:
        """Fill an input's basis [kx] up with 0 for planes that nothing is written to."""
        padded = np.zeros(self.all_planes, np.float32)
        padded[: len(basis)] = basis
        return padded

    def by_group(self, array: Array) -> Array:
        """Lay [o, ...] out as [groups, ..., lanes], filled up with zeros."""
        padded = np.zeros((self.groups * self.lanes, *array.shape[1:]), array.dtype)
        padded[: len(array)] = array
        grouped = padded.reshape(self.groups, self.lanes, *array.shape[1:])
        return np.moveaxis(grouped, 1, -1)

    def factors(self, basis: Array, scales: Array) -> NDArray[np.float32]:
        """Compute the loss of a result by a differing bit of input plane i and weight plane j:
        [groups, i, j, lanes], for an input's basis [kx] and the weights' scales [o, kw].
        """
        products = -2 * scales[:, None, :].astype(np.float64) * self.filled(basis)[:, None]
        return self.by_group(products.astype(np.float32))
