"""Build compiled convolutions with 8 bit weights under float inputs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.core.reasons import Declined
from luciole.kernels.jit import Kernel
from luciole.kernels.layers.floats.layer import ACTIVATIONS, TANH, by_lanes, starts
from luciole.kernels.layers.geometry.pixel_tiles import Clamp
from luciole.kernels.layers.geometry.sequence import First
from luciole.kernels.layers.int8 import dot_tiles, hybrid_tiles
from luciole.kernels.layers.int8.byte_layer import ZERO, ByteLayer, Work, folded
from luciole.kernels.layers.int8.byte_records import ImageGrid, QuantizeRecord
from luciole.kernels.layers.int8.channel_rows import ChannelRows, Longs
from luciole.schema.enums import ActivationFunctionType

WIDE_SUMS = Declined("sums of products may leave 32 bits")


def may_overflow(products: int, *, asymmetric: bool) -> bool:
    """Return whether a sum of ``products`` products may not fit into int32."""
    return products * (255 if asymmetric else 127) * 128 >= 2**31


@dataclass(kw_only=True)
class HybridLayer(ByteLayer):
    """Builder of one layer's step. ``scales`` are those of the weights: one, or one for each
    output.

    ``asymmetric``: inputs are quantized with a zero point. ``in_turn``: sums are scaled by weights'
    and inputs' scales one after the other, not by their product.
    """

    zero: int = field(default=ZERO, init=False)
    activation: ActivationFunctionType
    scales: NDArray[np.float32]
    asymmetric: bool = False
    in_turn: bool = False

    def convolution(self, weights: Array, bias: Array | None) -> NativeStep:
        """Compute windows over groups of channels. ``weights`` are [groups, o, kernel height,
        kernel width, depth].
        """
        first, grids = self._quantizing()
        return self.step(first, [self.work(weights, bias, grids)])

    def work(self, weights: Array, bias: Array | None, grids: int) -> Work:
        """Describe the windows of ``convolution`` over images on known grids."""
        groups, outputs = weights.shape[:2]
        tanh, in_turn = int(self.activation == TANH), int(self.in_turn)
        small = self.small(weights)

        def kernel(pixels: int, vectors: int) -> Kernel:
            return dot_tiles.float_windows(pixels, vectors, tanh, in_turn, small)

        def blocks(lanes: int) -> dict[str, Array]:
            operands = self._of_outputs(weights, starts(bias, groups, outputs))
            return {name: by_lanes(array, lanes) for name, array in operands.items()}

        return self.windows(weights, kernel, blocks, self._limits(), grids)

    def _of_outputs(self, weights: Array, begin: Array) -> dict[str, Array]:
        """Return the count of a sum for each step of the zero byte, scales, and addends that come
        last: [groups, o].
        """
        groups, outputs = weights.shape[:2]
        scales = np.broadcast_to(self.scales, groups * outputs).reshape(groups, outputs)
        zero_sums = folded(weights, 1).astype(np.int32)
        return {"zero_sums": zero_sums, "scales": scales, "starts": begin}

    def _limits(self) -> int:
        low, high = ACTIVATIONS[self.activation]
        return self.memory.record(Clamp(low=low, high=high))

    def _quantizing(self) -> tuple[First, int]:
        """Quantize images, and where the grid of each will be."""
        grids, lines = self.memory.room_for(ImageGrid, len(self.x)), self.lines()
        kernel = hybrid_tiles.quantize_with_zero if self.asymmetric else hybrid_tiles.quantize
        _, _, width, channels = self.x.shape
        whole = self.pixel == channels
        record = QuantizeRecord(
            **lines.fields(),
            grids=grids,
            border=lines.to - self.copies,
            pieces=1 if whole else width,
            piece=lines.length if whole else channels,
            to_piece=lines.length if whole else self.pixel,
        )
        return First(kernel.address, record), grids


@dataclass(kw_only=True)
class HybridDepthwise(HybridLayer, ChannelRows):
    """Builder of the step of one layer with weights for each channel."""

    asymmetric: bool = field(default=True, init=False)
    in_turn: bool = field(default=True, init=False)

    def depthwise(self, weights: Array, bias: Array | None) -> NativeStep:
        """Compute windows over each channel. ``weights`` are [channels, taps]."""
        first, grids = self._quantizing()
        tanh = int(self.activation == TANH)
        operands = self._of_outputs(weights[None], starts(bias, 1, len(weights)))

        def kernel(count: int, pieces: int, rest: int) -> Kernel:
            return hybrid_tiles.float_channels(count, pieces, rest, tanh)

        def blocks(channels: Longs) -> dict[str, Array]:
            return {name: array[0, channels] for name, array in operands.items()}

        return self.rows_of_channels(first, weights, kernel, blocks, self._limits(), grids)
