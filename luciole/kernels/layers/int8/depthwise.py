"""Build compiled convolutions of 8 bit integers with weights for each channel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from luciole.ir import Array
from luciole.kernels.core.contract import Built
from luciole.kernels.core.reasons import Declined
from luciole.kernels.jit import Kernel
from luciole.kernels.layers.int8 import dot_tiles
from luciole.kernels.layers.int8.byte_layer import ZERO
from luciole.kernels.layers.int8.channel_rows import ROW, ChannelRows, Longs
from luciole.kernels.layers.int8.layer import IntegerLayer


@dataclass(kw_only=True)
class DepthwiseLayer(IntegerLayer, ChannelRows):
    """Builder of one layer's step."""

    def depthwise(self, weights: Array, bias: Array | None) -> Built:
        """Compute windows over each channel. ``weights`` are [channels, taps]."""
        outputs = self.outputs(weights[None], bias, exact=False)
        if isinstance(outputs, Declined):
            return outputs
        of_sums, lifted = outputs, outputs.lifted
        taps, again = _in_bytes(weights.astype(np.int64) - self.zeros(weights[None])[0])

        def kernel(count: int, pieces: int, last: int) -> Kernel:
            return dot_tiles.channels(count, pieces, last, int(lifted))

        def blocks(channels: Longs) -> dict[str, Array]:
            return of_sums.of_channels(channels).fixed(ROW, lifted=lifted)

        return self.rows_of_channels(
            self.copying(self.turned), taps, kernel, blocks, self.limits(), again=again
        )


def _in_bytes(weights: Longs) -> tuple[Array, Longs]:
    """Split weights [channels, taps] into int8: the rest of one that does not fit is a tap of its
    own, behind all. Returns the taps, and the numbers of those that come again.
    """
    parts: list[Array] = []
    numbers, again = np.arange(weights.shape[1]), []
    while weights.shape[1]:
        parts.append(np.clip(weights, -ZERO, ZERO - 1))
        weights = weights - parts[-1]
        left = np.flatnonzero(weights.any(0))
        weights, numbers = weights[:, left], numbers[left]
        again.append(numbers)
    return np.concatenate(parts, 1).astype(np.int8), np.concatenate(again)
