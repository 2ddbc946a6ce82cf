"""Convolutions with 8 bit weights under float inputs on their way to compiled kernels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.kernels import dot_tiles
from luciole.kernels.byte_layer import ZERO, ByteLayer, folded
from luciole.kernels.float_layer import ACTIVATIONS, TANH, by_lanes, starts
from luciole.kernels.jit import Kernel
from luciole.kernels.registry import NativeStep
from luciole.kernels.sequence import Part
from luciole.schema.enums import ActivationFunctionType

MOST_PRODUCTS = (2**31 - 1) // 127**2
"""As many of -127 to 127 fit into a sum of int32 for certain."""


@dataclass(kw_only=True)
class HybridLayer(ByteLayer):
    """One layer on its way to a step. ``scales`` are those of the weights: one, or one for each
    output of the only group.
    """

    zero: int = field(default=ZERO, init=False)
    activation: ActivationFunctionType
    scales: NDArray[np.float32]

    def convolution(self, weights: Array, bias: Array | None) -> NativeStep:
        """Windows over groups of channels. ``weights`` are [groups, o, kernel height, kernel width,
        depth].
        """
        factors = self.memory.scratch(len(self.x))
        groups, outputs = weights.shape[:2]

        def kernel(pixels: int, vectors: int) -> Kernel:
            return dot_tiles.float_windows(pixels, vectors, int(self.activation == TANH))

        def blocks(lanes: int) -> list[Array]:
            sums = folded(weights, ZERO).astype(np.int32)
            scales = np.broadcast_to(self.scales, (groups, outputs))
            return [by_lanes(a, lanes) for a in (sums, scales, starts(bias, groups, outputs))]

        limits = self.memory.keep(np.array(ACTIVATIONS[self.activation], np.float32))
        return self.windows(self._quantizing(factors), weights, kernel, blocks, limits, factors)

    def _quantizing(self, factors: int) -> Part:
        """Quantize images, and keep the scale of each."""
        largest = self.memory.scratch(len(self.x))
        record = np.array([self.x.ctypes.data, *self.lines(), factors, largest], np.int64)
        return Part(dot_tiles.quantize.address, record, 0)
