"""Build compiled convolutions and matrix products of 8 bit integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, TensorType
from luciole.ir.analysis.fixed_point import quantize_multiplier
from luciole.ir.dtypes import NUMPY
from luciole.kernels.core.contract import Built
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.jit import LANES, Kernel
from luciole.kernels.jit.processor import vector_registers
from luciole.kernels.jit.vector.fixed_point import ByteLimits
from luciole.kernels.layers.floats.layer import by_lanes
from luciole.kernels.layers.geometry.spans import Axis
from luciole.kernels.layers.int8 import dot_tiles
from luciole.kernels.layers.int8.byte_layer import FOUR, ZERO, Blocks, ByteLayer, Line, Work, folded
from luciole.kernels.layers.int8.phases import Phase
from luciole.kernels.layers.int8.rescale import Rescaling
from luciole.schema.enums import Padding

RESULT_STEPS = 8
"""Cost of the results of a pixel, in steps of four products."""

MOST_LINE, LEAST_LINE = 16, 8
"""Neighbours whose sums are kept in registers at a time."""

MOST_TAPS = 8
"""Taps of a line whose weights are kept there with them."""

Longs = NDArray[np.int64]


def signed_weights(weights: Array, zero: Longs) -> tuple[Array, Longs | None]:
    """Return weights less their zero points, which stretch to them, as int8, and the rest of each:
    None where they all fit, and the zero points of what is read as signed bytes where they do not.
    """
    centred, limits = weights.astype(np.int64) - zero, np.iinfo(np.int8)
    if limits.min <= centred.min(initial=0) and centred.max(initial=0) <= limits.max:
        return centred.astype(np.int8), None
    raised = ZERO + int(np.iinfo(weights.dtype).min)  # 0 where bytes are signed
    return (weights.astype(np.int64) - raised).astype(np.int8), zero - raised


def unsigned(dtype: TensorType) -> int:
    """Return the bits to flip so that stored bytes become unsigned."""
    return ZERO if dtype == TensorType.INT8 else 0


NO_CODE = Declined("a zero point is none of its tensor's integers")


@dataclass(frozen=True)
class Outputs:
    """Starts of sums of products and factors of results, [groups, o]."""

    begin: Longs
    factors: NDArray[np.float64]
    to: Rescaling

    @classmethod
    def of(
        cls, weights: Array, bias: Array | None, to: Rescaling, zero: int, *, exact: bool
    ) -> Outputs | Declined:
        """Make the outputs of signed ``weights`` [groups, o, ...]; Declined where sums may be too
        large, or steps too small or too large for the compiled kernels.
        """
        shape = weights.shape[:2]
        begin = folded(weights, zero)
        most = 255 * np.abs(weights.astype(np.int64)).reshape(*shape, -1).sum(-1)
        if bias is not None:
            begin = begin + bias.reshape(shape)
            most = most + np.abs(bias.reshape(shape).astype(np.int64))
        factors = np.broadcast_to(to.factors, shape[0] * shape[1]).reshape(shape)
        made = cls(begin, factors, to)
        if not made.fits(most, exact=exact):
            return Declined("sums of products, or what they are scaled to, may leave 32 bits")
        return made

    def of_channels(self, channels: Longs) -> Outputs:
        """Select some outputs of the only group, in some order."""
        return Outputs(self.begin[:, channels], self.factors[:, channels], self.to)

    def repeated(self, count: int) -> Outputs:
        """Repeat the outputs of the only group ``count`` times."""
        return Outputs(np.tile(self.begin, count), np.tile(self.factors, count), self.to)

    def fits(self, most: Longs | NDArray[np.float64], *, exact: bool) -> bool:
        """Return whether sums of up to ``most`` in magnitude, and their scaled values, stay within
        32 bits on the way that the compiled kernels go.
        """
        limits = np.iinfo(NUMPY[self.to.dtype])
        if most.max(initial=0) >= 2**31 or not limits.min <= self.to.result_zero <= limits.max:
            return False
        if exact:
            return bool((most * self.factors).max(initial=0) < 2**31 - 1)
        factor = accepted(quantize_multiplier, self.factors)
        if isinstance(factor, Declined):
            return False
        multiplier, shift = factor
        lifted = most * 2.0 ** np.maximum(shift, 0)
        upper = lifted * (multiplier / 2.0**31) + 1 + 2.0 ** (-shift - 1)
        largest = np.where((shift < 0) | (multiplier == 0), 2**31, 2**30)
        return bool(np.all(lifted < largest) and upper.max(initial=0) < 2**31)

    @property
    def lifted(self) -> bool:
        """Whether some sums count a step of the result or more."""
        return bool((quantize_multiplier(self.factors)[1] > 0).any())

    def exact(self, lanes: int) -> dict[str, Array]:
        """Return the operands of ``jit.fixed_point.scaled_exactly``: starts of sums, and
        factors.
        """
        starts = by_lanes(self.begin.astype(np.int32), lanes)
        return {"starts": starts, "constants": by_lanes(self.factors, lanes)}

    def fixed(self, lanes: int, *, lifted: bool) -> dict[str, Array]:
        """Return the operands of ``jit.fixed_point.rescaled``: starts of sums, and its constants,
        for a kernel with or without ``lifted`` sums: it is one for all outputs of a layer, on which
        some channels alone may not decide.
        """
        factor = quantize_multiplier(self.factors)
        packed, raised = fixed_constants(*factor, lanes, lifted=lifted)
        begin = self.begin if lifted else self.begin + raised
        return {"starts": by_lanes(begin.astype(np.int32), lanes), "constants": packed}


def fixed_constants(
    multiplier: Array, shift: Array, lanes: int, *, lifted: bool = False
) -> tuple[Longs, Longs]:
    """Return the constants of ``jit.fixed_point.rescaled`` for factors [groups, o], and the numbers
    that sums are raised by: 2^30 only where nothing is shifted down, as their upper bit is never
    set.
    """
    wide = multiplier.astype(np.int64)
    down = np.where(wide == 0, 1, -np.minimum(shift, 0)).astype(np.int64)
    raised = np.where(down == 0, 2**30, 2**31).astype(np.int64)
    half = np.where(down == 0, 0, (1 << np.maximum(down - 1, 0)) - 1).astype(np.int64)
    addend = 2**31 + (half << 32) - 2 * raised * wide
    shorts = [down, np.maximum(shift, 0).astype(np.int64), raised] if lifted else [down]
    return by_sixteen([2 * wide, addend], shorts, lanes), raised


def by_sixteen(longs: Sequence[Longs], shorts: Sequence[Longs], lanes: int) -> Longs:
    """Lay out numbers [groups, o] for each 16 outputs of a block: of each int64 the even ones, and
    of each the odd ones, then the lower halves of the others.
    """
    groups = len(longs[0])
    wide, narrow = (
        [by_lanes(array, lanes).reshape(groups, -1, LANES) for array in arrays]
        for arrays in (longs, shorts)
    )
    halves = [array[..., first::2] for array in wide for first in (0, 1)]
    halves += [array.astype(np.int32).view(np.int64) for array in narrow]
    packed = np.concatenate(halves, -1)
    return packed.reshape(groups, packed.shape[1] * LANES // lanes, -1)


@dataclass(kw_only=True)
class IntegerLayer(ByteLayer):
    """Builder of one layer's step, from bytes to bytes."""

    zero: int = field(default=0, init=False)
    to: Rescaling

    def __post_init__(self) -> None:
        """Find which bits of stored inputs are turned to make them unsigned; then as
        every layer.
        """
        self.turned = unsigned(self.to.dtype)
        self.zero = self.to.input_zero + self.turned
        super().__post_init__()

    def outputs(self, weights: Array, bias: Array | None, *, exact: bool) -> Outputs | Declined:
        """Return how sums become results, Declined where no compiled kernel can do it.
        ``weights`` are [groups, o, ...].
        """
        limits, zeros = np.iinfo(weights.dtype), self.to.weights_zeros
        if not (0 <= self.zero < 256 and limits.min <= zeros.min() <= zeros.max() <= limits.max):
            return NO_CODE
        centred = weights.astype(np.int64) - self.zeros(weights)
        return Outputs.of(centred, bias, self.to, self.zero, exact=exact)

    def zeros(self, weights: Array) -> Longs:
        """Return the zero points of weights [groups, o, ...], which stretch to them."""
        zeros, single = self.to.weights_zeros, [1] * (weights.ndim - 2)
        return zeros.reshape(*([1, 1] if zeros.size == 1 else weights.shape[:2]), *single)

    def convolution(self, weights: Array, bias: Array | None, *, exact: bool) -> Built:
        """Compute windows over groups of channels. ``weights`` are [groups, o, kernel height,
        kernel width, depth].
        """
        work = self._work(weights, bias, exact=exact)
        return work if isinstance(work, Declined) else self.step(self.copying(self.turned), [work])

    def in_phases(self, phases: Sequence[Phase], weights: Array, bias: Array | None) -> Built:
        """Compute parts of the result by windows of their own. ``weights`` are [1, o, kernel
        height, kernel width, depth].
        """
        zeros, works = self.zeros(weights), []
        for phase in phases:
            self.rows, self.columns = phase.rows, phase.columns
            work = self._work(phase.own(weights, zeros), bias, exact=False)
            if isinstance(work, Declined):
                return work
            works.append(work)
        return self.step(self.copying(self.turned), works)

    def _work(self, weights: Array, bias: Array | None, *, exact: bool) -> Work | Declined:
        outputs = self.outputs(weights, bias, exact=exact)
        if isinstance(outputs, Declined):
            return outputs
        centred, common = signed_weights(weights, self.zeros(weights))
        together = self._together(centred) if common is None else 1
        if together > 1:
            centred, outputs = self._joined(centred, together), outputs.repeated(together)
        lifted = not exact and outputs.lifted
        small = self.small(centred) if common is None else 0
        wide = 0 if common is None else 1 + (common.size > 1)
        sums = dot_tiles.Sums(int(exact), int(lifted), wide, small)

        def kernel(pixels: int, vectors: int) -> Kernel:
            return dot_tiles.integer_windows(pixels, vectors, sums)

        blocks: Blocks = outputs.exact if exact else partial(outputs.fixed, lifted=lifted)
        line = self._line(centred, sums) if common is None else None
        return self.windows(centred, kernel, blocks, self.limits(), line=line, common=common)

    def _line(self, weights: Array, sums: dot_tiles.Sums) -> Line | None:
        """Choose tiles of neighbours that share inputs, where outputs alone are too few to hide
        that they are read.
        """
        groups, outputs, _, width, depth = weights.shape
        columns = self.columns.padded
        few = groups == 1 and outputs <= LANES and vector_registers() > MOST_LINE
        steps = width * -(-depth // FOUR)
        filled = steps > -(-width * depth // FOUR)
        spread = columns.dilation > 1 or columns.places is not None
        if not few or filled or spread or not 1 < width <= MOST_TAPS:
            return None
        sizes = range(min(MOST_LINE, columns.outputs), LEAST_LINE - 1, -1)
        count = min(sizes, key=lambda n: -(-columns.outputs // n) * n, default=0)
        reads = (count - 1) * columns.stride + 2 * width
        if not count or reads >= count * width:
            return None
        taps = (width, columns.stride, depth)
        return Line(count, dot_tiles.integer_lines(count, taps, sums))

    def _together(self, weights: Array) -> int:
        """Choose how many neighbours of few outputs are quickest as one pixel of many."""
        groups, outputs, height, width, depth = weights.shape
        columns = self.columns.padded
        if groups > 1 or columns.dilation > 1 or columns.places is not None:
            return 1

        def cycles(count: int) -> float:
            span = (width + (count - 1) * columns.stride) * depth
            return float(height * -(-span // FOUR) + RESULT_STEPS) / count

        fitting = [n for n in (1, 2, 4, 8) if n * outputs <= LANES and columns.outputs % n == 0]
        return min(fitting or [1], key=cycles)

    def _joined(self, weights: Array, count: int) -> Array:
        """Widen windows to windows of ``count`` neighbours, whose outputs stand one after the
        other, and return their weights; the columns are those of such windows from now on.
        """
        _, outputs, height, width, depth = weights.shape
        old = self.columns.padded
        wide = width + (count - 1) * old.stride
        joined_weights = np.zeros((1, count * outputs, height, wide, depth), np.int8)
        for n in range(count):
            some, first = slice(n * outputs, (n + 1) * outputs), n * old.stride
            joined_weights[:, some, :, first : first + width] = weights
        padded = Axis.of(old.size, wide, count * old.stride, 1, Padding.VALID)
        self.columns = replace(self.columns, padded=padded)
        return joined_weights

    def limits(self) -> int:
        """Keep the result's ``ByteLimits`` and return their address."""
        signed = ZERO - self.turned
        low, high = (n - signed for n in self.to.limits)
        record = ByteLimits(
            zero_point=self.to.result_zero - signed, low=low, high=high, turned=signed
        )
        return self.memory.record(record)
