"""Layers whose levels are evenly spaced as products of bytes.

With a half step a and K bits an input is offset + a (2 l - (2^K - 1)) for its level's number l, and
a weight b u for an odd integer u. So a sum of products is a b sum((2 l - m) u), m = 2^K - 1, which
kernels of layers with 8 bit weights compute: 2 l is an input's byte, m that of 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, learned_levels
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.jit import LANES
from luciole.kernels.layers.geometry.pixel_tiles import cases
from luciole.kernels.layers.geometry.sequence import First
from luciole.kernels.layers.geometry.spans import Axis
from luciole.kernels.layers.int8.byte_layer import Side, sides, tiling_of
from luciole.kernels.layers.int8.byte_records import ImageGrid, LevelsRecord
from luciole.kernels.layers.int8.hybrid_layer import HybridLayer
from luciole.kernels.layers.levels.encoding import MAX_SELECTED, Encoding
from luciole.kernels.layers.levels.even_tiles import kernel
from luciole.kernels.layers.levels.layer import LevelsLayer, Operands, or_zero
from luciole.schema.enums import Padding

LEAST_ROWS = 4
"""Rows of a batch from which on weights need not be read for each."""

LEAST_PAIRS = 6
"""Pairs of planes whose bits are counted in the time of a product of bytes."""

FARTHEST = 1 << 16
"""Steps from 0 to the levels, beyond which places among them have few bits."""

Starts = dict[tuple[range, range], NDArray[np.float32]]
"""Starts of results [o] for rows and columns of them."""


class EvenWeights(NamedTuple):
    """Half steps of the levels of each output, and weights in them: int8 [o, ..., n]."""

    steps: NDArray[np.float32]
    codes: NDArray[np.int8]

    @classmethod
    def of(cls, scales: Array, binary: Array, n: int) -> EvenWeights | None:
        """Read scales [o, K] and words [o, K, ..., ceil(n / 32)]; None where some output's levels
        are not evenly spaced.
        """
        if not is_even(scales):
            return None
        steps = np.abs(scales).min(1)
        signs = learned_levels.unpack(binary, n).astype(np.int8) * 2 - 1
        worths = np.divide(
            scales, steps[:, None], where=steps[:, None] > 0, out=np.zeros_like(scales)
        )
        codes = np.einsum("ok...,ok->o...", signs, worths.astype(np.int8))
        return cls(steps, codes.astype(np.int8))


def is_even(basis: Array) -> bool:
    """Return whether the levels of bases [..., K] are evenly spaced: but for their order and their
    signs, each element is twice the one before.
    """
    rising = np.sort(np.abs(basis), -1)
    return bool(np.isfinite(basis).all() and (rising[..., 1:] == 2 * rising[..., :-1]).all())


@dataclass(kw_only=True)
class EvenLayer(HybridLayer):
    """Builder of the step of one layer whose inputs have an even ``encoding``; ``scales`` are the
    half steps of the weights' levels.
    """

    encoding: Encoding
    _kept: dict[tuple[tuple[int, ...], bytes], tuple[int, int]] = field(
        default_factory=dict, init=False
    )

    def __post_init__(self) -> None:
        """Find the byte of 0."""
        self.zero = len(self.encoding.thresholds)
        self.largest = 2 * self.zero
        super().__post_init__()

    def bordered(self, weights: Array, starts: Starts) -> NativeStep:
        """Compute windows with starts of their own where other taps lie inside of the image."""
        first, grids = self._quantizing()
        rows, columns = self.rows, self.columns
        windows = cases(rows.padded, columns.padded)
        self.tiling = tiling_of(windows, weights.shape[1], weights.shape[-1])
        works = []
        for (down, across), begin in starts.items():
            self.rows, self.columns = rows.some(down), columns.some(across)
            works.append(self.work(weights, begin, grids))
        return self.step(first, works)

    def _by_block(self, array: Array, groups: int, blocks: int) -> tuple[int, int]:
        """Keep arrays once that several parts of the image read."""
        key = (array.shape, array.tobytes())
        if key not in self._kept:
            self._kept[key] = super()._by_block(array, groups, blocks)
        return self._kept[key]

    def _quantizing(self) -> tuple[First, int]:
        """Write the levels of inputs as bytes; all images have the same grid."""
        limits, step = self.encoding.thresholds, 2 * np.float64(self.encoding.basis[0])
        room = np.full(LANES, np.inf, np.float32)
        room[: self.zero] = limits
        grid = ImageGrid(scale=float(self.encoding.basis[0]), zero=self.zero)
        grids = self.memory.table([grid] * len(self.x), ImageGrid)
        record = LevelsRecord(
            **self.lines().fields(),
            thresholds=self.memory.keep(room, LANES),
            per_step=float(1 / step),
            first=float(0.5 - limits[0] / step),
        )
        return First(kernel(self.zero).address, record), grids


def conv_step(
    op: LQConv2D, operands: Operands, axes: tuple[Axis, Axis], y: Array
) -> NativeStep | None:
    """Make the step of a convolution whose windows over the image have these ``axes``; None where
    levels are not even, or bits are counted in less time.
    """
    x, ax, aw, binary, bias, offsets = operands
    encoding, (height, width) = Encoding.of(ax, op.input_offset), binary.shape[2:4]
    products = height * width * op.input_channels
    if not pays(encoding.bits * aw.shape[1], op.input_channels):
        return None
    weights = EvenWeights.of(aw, binary, op.input_channels)
    if weights is None or not suits(encoding, aw, products, offsets):
        return None
    layer = EvenLayer(
        *sides(op, x, weights.codes),
        x,
        y,
        activation=op.activation,
        scales=weights.steps,
        encoding=encoding,
    )
    if not op.input_offset:
        return layer.convolution(weights.codes[None], bias)
    return layer.bordered(weights.codes[None], _starts(op, weights, bias, axes))


def _starts(
    op: LQConv2D, weights: EvenWeights, bias: Array | None, axes: tuple[Axis, Axis]
) -> Starts:
    """Compute the starts of results by the taps inside: bias and the input offset's share."""
    sums = weights.codes.astype(np.int64).sum(-1)
    shares = op.input_offset * weights.steps[:, None, None].astype(np.float64) * sums
    rows, columns = (list(zip(axis.runs, axis.taps, strict=True)) for axis in axes)
    return {
        (down, across): np.asarray(
            or_zero(bias) + shares[:, taps_down, taps_across].sum((1, 2)), np.float32
        )
        for (down, taps_down), (across, taps_across) in product(rows, columns)
    }


def pays_in_a_batch(bits: int, weight_bits: int) -> bool:
    """Return whether rows of a dense layer take less time by bytes, whatever the inputs.

    Measured on 64 rows, 784x690, Zen 4: 3 bits 1.4 times as fast as level by level (0.74 times
    where 80 % of the inputs are on one level), 4 bits 2.0 times (1.5); AVX2 1.6 and 2.3 times. What
    goes level by level takes time by the weights' bits alone.
    """
    return weight_bits >= 3 and bits * weight_bits >= 8


def pays(pairs: int, channels: int) -> bool:
    """Return whether products of bytes take less time than counting ``pairs`` planes of pixels
    that fill whole words.
    """
    words = -(-channels // learned_levels.WORD)
    return pairs * words * learned_levels.WORD >= LEAST_PAIRS * channels


def dense_step(layer: LevelsLayer, x: Array, y: Array) -> NativeStep | None:
    """Make the step of a dense layer; None where levels are not even, or bits are counted in less
    time.
    """
    encoding, rows = layer.encoding, x.size // layer.inputs
    if rows < LEAST_ROWS or not pays_in_a_batch(encoding.bits, layer.weight_planes):
        return None
    if not suits(encoding, layer.aw, layer.inputs, layer.offsets):
        return None
    weights = EvenWeights.of(layer.aw, layer.binary, layer.inputs)
    if weights is None:
        return None
    pixels = x.reshape(1, 1, rows, layer.inputs)
    one, side = (Side.of(size, 1, 1, 1, Padding.VALID) for size in (1, rows))
    built = EvenLayer(
        one,
        side,
        pixels,
        y,
        activation=layer.activation,
        scales=weights.steps,
        encoding=encoding,
    )
    return built.convolution(weights.codes[None, :, None, None], layer.starts)


def suits(encoding: Encoding, scales: Array, products: int, offsets: Array | None) -> bool:
    """Return whether a layer whose sums have so many ``products`` can run by bytes."""
    largest = products * (2**encoding.bits - 1) * (2 ** scales.shape[1] - 1)
    few = encoding.bits <= MAX_SELECTED and 2 * largest < 2**31
    return few and offsets is None and is_even(encoding.basis) and _is_near(encoding)


def _is_near(encoding: Encoding) -> bool:
    """Return whether single precision tells which threshold a float is next to."""
    step = 2 * float(encoding.basis[0])
    limits = np.finfo(np.float32)
    usual = bool(limits.tiny < step < limits.max / FARTHEST)
    return usual and bool((np.abs(encoding.thresholds) < FARTHEST * step).all())
