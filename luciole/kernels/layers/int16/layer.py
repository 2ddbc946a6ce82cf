"""Build compiled convolutions and matrix products of 16 bit integers under weights of 8 or 16 bits.

Weights are widened to 16 bits, so that a machine multiplies two pairs at a time for each lane and
adds both products. A sum of 32 bits holds those of inputs up to 2^15 in magnitude where the
weights' own magnitudes add up to less than 2^16, which is seen when a model is planned; elsewhere
pieces of sums that do are added up in 64 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, TensorType
from luciole.ir.analysis.fixed_point import (
    FRACTION,
    quantize_multiplier,
    reduced_multiplier,
)
from luciole.kernels.core.contract import Built
from luciole.kernels.core.reasons import Declined
from luciole.kernels.jit import LANES, Kernel
from luciole.kernels.layers.floats.layer import by_lanes
from luciole.kernels.layers.int8.byte_layer import ByteLayer, Side, Work, steps_of_pieces
from luciole.kernels.layers.int8.channel_rows import ROW, ChannelRows
from luciole.kernels.layers.int8.layer import Outputs, by_sixteen
from luciole.kernels.layers.int8.phases import Phase
from luciole.kernels.layers.int8.rescale import Rescaling
from luciole.kernels.layers.int16 import pair_tiles
from luciole.kernels.layers.int16.pair_tiles import Scaling

Longs = NDArray[np.int64]

ITEM = 2
"""Bytes of an input, and of a weight."""

LARGEST = 2**15
"""The largest magnitude of an input."""

MOST_WEIGHTS = 2**31 // LARGEST - 1
"""Largest sum of magnitudes of weights for which sums of their products are int32."""

MOST_EXACT = 2**53
"""Sums below it are exact in double precision."""

MOST_WIDE = 2**46
"""Sums below it, times multipliers of 15 bits, are far from the limits of int64."""

MOST_STEPS = 2**30
"""Results below it, times 2^32, are as well."""

RAISED = 2**31
"""Number that, added to a sum, leaves it without a sign."""

UPPER = 32
"""Bits that the lower half of a product has."""


@dataclass(frozen=True)
class ShortOutputs(Outputs):
    """Outputs of sums that begin at int64, and how they are scaled."""

    scaling: Scaling

    @classmethod
    def chosen(
        cls, weights: Array, bias: Array | None, to: Rescaling, scaling: Scaling
    ) -> ShortOutputs | Declined:
        """Make the outputs of centred ``weights`` [groups, o, ...], scaled as is asked for, or by a
        more general way that gives the same; Declined where there is none.
        """
        shape = weights.shape[:2]
        begin = np.zeros(shape, np.int64)
        if bias is not None:
            begin = begin + bias.reshape(shape).astype(np.int64)
        factors = np.broadcast_to(to.factors, shape[0] * shape[1]).reshape(shape)
        made, sums = cls(begin, factors, to, scaling), LARGEST * magnitudes(weights)
        most = sums.astype(np.float64) + np.abs(begin.astype(np.float64))
        fits = made._once_scaled(sums, most) if scaling == Scaling.ONCE else made._other(most)
        if fits is None:
            return Declined("sums of products, or what they are scaled to, may be too large")
        return fits

    def _once_scaled(self, sums: Longs, most: NDArray[np.float64]) -> ShortOutputs:
        """Choose a way to scale sums of products of up to ``sums`` in magnitude, and of up to
        ``most`` with where they begin: that is added to scaled sums where these are int32.
        """
        _, total = reduced_multiplier(*quantize_multiplier(self.factors))
        if sums.max(initial=0) >= 2**31 - 1 or most.max(initial=0) >= MOST_WIDE:
            return replace(self, scaling=Scaling.LONG)
        if (total >= FRACTION).all() and (most * self.factors).max(initial=0) < MOST_STEPS:
            return self
        return replace(self, scaling=Scaling.SHIFTED)

    def _other(self, most: NDArray[np.float64]) -> ShortOutputs | None:
        """Choose a way to scale sums of up to ``most`` in magnitude by the other two; None where
        there is none.
        """
        is_exact = self.scaling == Scaling.EXACT
        if most.max(initial=0) < 2**31 - 1 and self.fits(most, exact=is_exact):
            is_lifted = not is_exact and self.lifted
            return replace(self, scaling=Scaling.LIFTED) if is_lifted else self
        small = most.max(initial=0) < MOST_EXACT
        if is_exact and small and (most * self.factors).max(initial=0) < 2**31 - 1:
            return replace(self, scaling=Scaling.LONG_EXACT)
        return None

    def of_channels(self, channels: Longs) -> ShortOutputs:
        """Select some outputs of the only group, in some order."""
        begin, factors = self.begin[:, channels], self.factors[:, channels]
        return replace(self, begin=begin, factors=factors)

    def read(self, lanes: int) -> dict[str, Array]:
        """Return the operands that the kernels of the scaling read."""
        if self.scaling == Scaling.ONCE:
            return self._once(lanes)
        if self.scaling == Scaling.SHIFTED:
            return self._shifted(lanes)
        if self.scaling == Scaling.EXACT:
            return self.exact(lanes)
        if self.scaling in (Scaling.TWICE, Scaling.LIFTED):
            return self.fixed(lanes, lifted=self.scaling == Scaling.LIFTED)
        begin = by_lanes(self.begin, lanes)
        factors = self.factors if self.scaling == Scaling.LONG_EXACT else None
        constants = self._longs(lanes) if factors is None else by_lanes(factors, lanes)
        return {"starts": begin, "constants": constants}

    def _once(self, lanes: int) -> dict[str, Array]:
        """Return the operands of ``jit.shorts.rescaled_once``: a step of the result is made 2^32,
        unless it is more than that.
        """
        reduced, total = reduced_multiplier(*quantize_multiplier(self.factors))
        up, down = np.maximum(UPPER - total, 0), np.maximum(total - UPPER, 0)
        multiplier = reduced << up
        addend = (np.int64(1) << (total - 1 + up)) + (self.begin - RAISED) * multiplier
        packed = by_sixteen([multiplier, addend], [down], lanes)
        return {"starts": self._raised(lanes), "constants": packed}

    def _raised(self, lanes: int) -> Array:
        """Begin all sums at the number that takes their sign."""
        return by_lanes(np.full(self.begin.shape, -RAISED, np.int32), lanes)

    def _shifted(self, lanes: int) -> dict[str, Array]:
        """Return the operands of ``jit.shorts.rescaled_by_shifts``."""
        reduced, total = reduced_multiplier(*quantize_multiplier(self.factors))
        half = np.int64(1) << (total - 1)
        addend = half + (self.begin - RAISED) * reduced + np.int64(-(2**63))  # wraps around
        off = np.uint64(2**63) >> total.astype(np.uint64)
        packed = by_sixteen([reduced, addend, total], [off.view(np.int64)], lanes)
        return {"starts": self._raised(lanes), "constants": packed}

    def _longs(self, lanes: int) -> Array:
        """Return the operands of ``jit.shorts.rescaled_longs``: for each 16 outputs multipliers,
        halves of steps, and shifts.
        """
        reduced, total = reduced_multiplier(*quantize_multiplier(self.factors))
        numbers = [reduced, np.int64(1) << (total - 1), total]
        groups = len(reduced)
        each = [by_lanes(array, lanes).reshape(groups, -1, LANES) for array in numbers]
        packed = np.stack(each, 2)
        return packed.reshape(groups, packed.shape[1] * LANES // lanes, -1)


def way_of_convolution(to: Rescaling, bias_type: TensorType | None) -> Scaling:
    """Return how a convolution's sums are scaled, see ``Rescaling.convolved``."""
    return Scaling.ONCE if to.is_wide(bias_type) else Scaling.TWICE


def magnitudes(weights: Array) -> Longs:
    """Add up the magnitudes of each output's weights [groups, o, ...]."""
    sums = np.abs(weights.astype(np.int64)).reshape(*weights.shape[:2], -1).sum(-1)
    return np.asarray(sums, np.int64)


@dataclass(kw_only=True)
class ShortLayer(ByteLayer):
    """Builder of one layer's step; ``x`` is given as bytes, of which a step has four."""

    zero: int = field(default=0, init=False)
    to: Rescaling
    scaling: Scaling
    """How sums are scaled where none are special."""

    @classmethod
    def of(
        cls, sides: tuple[Side, Side], x: Array, y: Array, to: Rescaling, scaling: Scaling
    ) -> Self:
        """Make the builder for int16 ``x`` [images, height, width, channels]."""
        return cls(*sides, x.view(np.uint8), y, to=to, scaling=scaling)

    def convolution(self, weights: Array, bias: Array | None) -> Built:
        """Compute windows over groups of channels. ``weights`` are [groups, o, kernel height,
        kernel width, depth]. Declined where no compiled kernel can do it.
        """
        work = self._work(weights, bias)
        return work if isinstance(work, Declined) else self.step(self.copying(), [work])

    def in_phases(self, phases: Sequence[Phase], weights: Array, bias: Array | None) -> Built:
        """Compute parts of the result by windows of their own. ``weights`` are [1, o, kernel
        height, kernel width, depth].
        """
        zero, works = np.full((1, 1, 1, 1, 1), self.to.weights_zero), []
        for phase in phases:
            self.rows, self.columns = phase.rows, phase.columns
            work = self._work(phase.own(weights, zero), bias)
            if isinstance(work, Declined):
                return work
            works.append(work)
        return self.step(self.copying(), works)

    def _work(self, weights: Array, bias: Array | None) -> Work | Declined:
        wide = self._widened(weights)
        outputs = ShortOutputs.chosen(wide, bias, self.to, self.scaling)
        if isinstance(outputs, Declined):
            return outputs
        scaling = outputs.scaling
        self.piece_steps = self._steps_of_pieces(wide)
        if scaling in pair_tiles.LONGS and not self.piece_steps:
            return Declined("products of two weights may leave 32 bits")

        def kernel(pixels: int, vectors: int) -> Kernel:
            return pair_tiles.windows(pixels, vectors, scaling)

        limits = self._limits()
        return self.windows(wide.view(np.int8), kernel, outputs.read, limits)

    def _widened(self, weights: Array) -> Array:
        """Return weights less their zero point, as int16."""
        return np.ascontiguousarray(weights.astype(np.int64) - self.to.weights_zero, np.int16)

    def _steps_of_pieces(self, wide: Array) -> int:
        """Choose how many steps' products fit into int32, whatever inputs are."""
        runs = self.runs(wide.view(np.int8), None).view(np.int16)
        return steps_of_pieces(np.abs(runs.astype(np.int64)).sum(-1), MOST_WEIGHTS)

    def _limits(self) -> int:
        low, high = self.to.limits
        return self.memory.record(pair_tiles.Limits(low=low, high=high))


@dataclass(kw_only=True)
class ShortDepthwise(ShortLayer, ChannelRows):
    """Builder of the step of one layer with weights for each channel."""

    item: ClassVar[int] = ITEM

    def depthwise(self, weights: Array, bias: Array | None) -> Built:
        """Compute windows over each channel. ``weights`` are [channels, kernel height, kernel
        width].
        """
        wide = self._widened(weights)
        outputs = ShortOutputs.chosen(wide[None], bias, self.to, self.scaling)
        if isinstance(outputs, Declined):
            return outputs
        of_sums, scaling = outputs, outputs.scaling
        if of_sums.scaling in pair_tiles.LONGS:
            plain = ShortLayer(
                self.rows, self.columns, self.x, self.y, to=self.to, scaling=self.scaling
            )
            return plain.convolution(weights[:, None, :, :, None], bias)

        def kernel(count: int, pieces: int, last: int) -> Kernel:
            return pair_tiles.channels(count, pieces, last, scaling)

        def blocks(channels: Longs) -> dict[str, Array]:
            return of_sums.of_channels(channels).read(ROW // ITEM)

        taps = wide.reshape(len(wide), -1)
        return self.rows_of_channels(self.copying(), taps, kernel, blocks, self._limits())
