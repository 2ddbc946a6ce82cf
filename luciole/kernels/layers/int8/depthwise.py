"""Build compiled convolutions of 8 bit integers with weights for each channel."""

from __future__ import annotations

from dataclasses import dataclass

from luciole.ir import Array
from luciole.kernels.core.registry import NativeStep
from luciole.kernels.layers.int8 import dot_tiles
from luciole.kernels.layers.int8.channel_rows import ROW, ChannelRows, Longs
from luciole.kernels.layers.int8.layer import IntegerLayer


@dataclass(kw_only=True)
class DepthwiseLayer(IntegerLayer, ChannelRows):
    """Builder of one layer's step."""

    def depthwise(self, weights: Array, bias: Array | None) -> NativeStep | None:
        """Compute windows over each channel. ``weights`` are [channels, taps]."""
        outputs, centred = self.outputs(weights[None], bias, exact=False)
        if outputs is None:
            return None
        found = outputs

        def blocks(channels: Longs) -> dict[str, Array]:
            return found.of_channels(channels).fixed(ROW)

        return self.rows_of_channels(
            self.copying(), centred[0], dot_tiles.channels, blocks, self.limits()
        )
