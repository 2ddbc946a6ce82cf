"""LQ_CONV_2D kernels: a reference on dequantized values, xnor/popcount on packed bits.

The compiled kernel quantizes and packs every input pixel once. Then a tile of output pixels times
16 or more outputs is counted in vector registers, one output per lane, over the taps inside the
image only, so that padding contributes exactly 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, TensorType, learned_levels
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.kernels.arrays.fused_activation import activate
from luciole.kernels.core.contract import Context, NativeStep, Stage
from luciole.kernels.core.memory import Memory, reach, turns
from luciole.kernels.core.registry import native, reference
from luciole.kernels.core.shares import ranges, stages
from luciole.kernels.jit.vector.bit_lookups import PARTS, WORD_BYTES, as_met
from luciole.kernels.layers.geometry.spans import Axis, Span, Spans, spans
from luciole.kernels.layers.geometry.windows import patches
from luciole.kernels.layers.levels import counting, tiles
from luciole.kernels.layers.levels.encoding import Encoding
from luciole.kernels.layers.levels.even_layer import conv_step
from luciole.kernels.layers.levels.layer import (
    LevelsLayer,
    Operands,
    ending,
    or_zero,
    without_padding,
)
from luciole.kernels.layers.levels.tiling import Tiling
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.floats import activated
from luciole.kernels.portable.images import windows_of
from luciole.kernels.portable.level_windows import FixedWindows, whole_windows, window_calls

MAX_BORDER_CASES = 4096
"""Sets of taps inside for which starts are prepared; a kernel of 63 x 63 has 3969 at most."""


@reference(LQConv2D, TensorType.FLOAT32)
def lq_conv_2d(
    op: LQConv2D,
    x: Array,
    input_scales: Array,
    weights_scales: Array,
    weights_binary: Array,
    bias: Array | None,
    weights_offsets: Array | None,
) -> Array:
    """Quantize the input, pad it with zeros, dequantize the weights, multiply: in float64."""
    levels, _ = learned_levels.levels(input_scales, op.input_offset)
    quantized = levels[learned_levels.encode(x, learned_levels.thresholds(levels))]
    weights = _dequantized(op, weights_scales, weights_binary, weights_offsets)
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    windows = patches(quantized, weights.shape[1:3], stride, op.padding, dilation)
    y = np.tensordot(windows, weights.transpose(3, 1, 2, 0), axes=3) + or_zero(bias)
    return activate(y.astype(np.float32), op.activation)


def _dequantized(
    op: LQConv2D, scales: Array, binary: Array, offsets: Array | None
) -> NDArray[np.float64]:
    """Decode the weights: [o, kernel height, kernel width, c]."""
    planes_last = binary.transpose(0, 2, 3, 1, 4)
    shift = or_zero(offsets)[:, None, None]
    return learned_levels.decode(planes_last, scales[:, None, None], op.input_channels, shift)


def _axes(op: LQConv2D, shape: tuple[int, ...], kernel: tuple[int, ...]) -> tuple[Axis, Axis]:
    """Settle rows and columns of windows over images NHWC."""
    rows = Axis.of(shape[1], kernel[0], op.stride_h, op.dilation_h_factor, op.padding)
    return rows, Axis.of(shape[2], kernel[1], op.stride_w, op.dilation_w_factor, op.padding)


@dataclass(frozen=True)
class _Geometry:
    """Where windows lie, and the number of the first result in an image. An image whose windows are
    single pixels is one long row.
    """

    images: int
    channels: int
    rows: Axis
    columns: Axis
    first: int = 0

    @classmethod
    def of(cls, op: LQConv2D, shape: tuple[int, ...], kernel: tuple[int, ...]) -> _Geometry:
        images, h, w, channels = shape
        if (*kernel, op.stride_h, op.stride_w) == (1, 1, 1, 1):
            images, h, w = 1, 1, images * h * w
        return cls(images, channels, *_axes(op, (images, h, w, channels), kernel))

    @property
    def pixels(self) -> int:
        """Input pixels in one image."""
        return self.rows.size * self.columns.size

    @property
    def results(self) -> int:
        """Output pixels in one image."""
        return self.rows.outputs * self.columns.outputs

    @property
    def words(self) -> int:
        """Words of one plane of one pixel."""
        return -(-self.channels // learned_levels.WORD)

    @property
    def met(self) -> range:
        """The input pixels that windows meet, with those between them."""
        if self.rows.size == 1:
            return self.columns.met
        return range(
            self.rows.met.start * self.columns.size, self.rows.met.stop * self.columns.size
        )

    @property
    def lines(self) -> int:
        """Rows of results, or results in a single one: what threads share."""
        return self.columns.outputs if self.rows.outputs == 1 else self.rows.outputs

    def part(self, begin: int, end: int) -> _Geometry:
        """Keep some of the lines."""
        if self.rows.outputs == 1:
            return replace(self, columns=self.columns.part(begin, end), first=begin)
        first = begin * self.columns.outputs
        return replace(self, rows=self.rows.part(begin, end), first=first)


@native(LQConv2D, TensorType.FLOAT32)
def build(op: LQConv2D, context: Context) -> NativeStep | None:
    """Lay weights out by groups of outputs, [kernel position, word, plane, output], and settle for
    every output pixel which taps lie inside.
    """
    operands, y = Operands.of(op, context), context.results[0]
    if operands is None or not operands.x.size or not y.size:
        return None
    x, ax, aw, binary, bias, offsets = operands
    geometry = _Geometry.of(op, x.shape, binary.shape[2:4])
    if len(geometry.rows.runs) * len(geometry.columns.runs) > MAX_BORDER_CASES:
        return None
    by_bytes = conv_step(op, operands, _axes(op, x.shape, binary.shape[2:4]), y)
    if by_bytes is not None:
        return by_bytes
    tiling = Tiling.of(len(ax), aw.shape[1], len(aw))
    return _Layer(op, geometry, tiling, ax, aw, binary, bias, offsets).step(x, y)


@dataclass
class _Layer:
    """Builder of one layer's records: each method but ``step`` and ``_parts`` writes one, and gives
    its address. Steps in memory are in bytes.
    """

    op: LQConv2D
    geometry: _Geometry
    tiling: Tiling
    ax: Array
    aw: Array
    binary: Array
    bias: Array | None
    offsets: Array | None
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        """Settle how inputs are encoded."""
        self.encoding = Encoding.of(self.ax, self.op.input_offset)

    def step(self, x: Array, y: Array) -> NativeStep:
        """Make the step of the kernel on its record."""
        cut = spans(self.geometry.rows, self.geometry.columns, self.tiling.most_pixels)
        kernel = tiles.kernel(cut.pixels, *self.tiling.shape, *ending(self.op.activation))
        record = self._record(x, y, self.geometry, cut)

        def split(threads: int) -> list[Stage]:
            return stages(self._parts(x, y, threads, cut.pixels))

        return self.memory.step(kernel.address, record, split)

    def _parts(self, x: Array, y: Array, threads: int, pixels: int) -> list[tiles.ConvRecord]:
        """Make records that share an image's lines, in tiles of ``pixels`` pixels. Each encodes the
        input that its own windows meet.
        """
        g, t = self.geometry, self.tiling
        words = g.words * g.rows.kernel * g.columns.kernel * self.aw.shape[1] * len(self.ax)
        line = g.images * g.results // g.lines * words * t.groups * t.vectors
        parts = [g.part(*share) for share in ranges(g.lines, threads, counting.LEAST_WORK // line)]
        cuts = [spans(part.rows, part.columns, pixels, pixels) for part in parts]
        return [self._record(x, y, part, cut) for part, cut in zip(parts, cuts, strict=True)]

    def _record(self, x: Array, y: Array, g: _Geometry, cut: Spans) -> tiles.ConvRecord:
        """Make the kernel's own record."""
        planes = self.memory.scratch(g.pixels * g.words, self.tiling.all_planes, WORD_BYTES // 4)
        sums = self.memory.scratch(g.results)
        images, pixel, outputs = (
            (x.nbytes // g.images, y.nbytes // g.images),
            4 * g.channels,
            4 * len(self.aw),
        )
        over = [turns(g.images, image) for image in images]
        source = reach(x, pixel * len(g.met), over[0], begin=pixel * g.met.start)
        to = reach(y, outputs * g.results, over[1], begin=outputs * g.first)
        return tiles.ConvRecord(
            x=source,
            y=to,
            images=g.images,
            x_image=images[0],
            y_image=images[1],
            encode=self.encoding.kernel.address,
            encoding=self._encoding(g, planes),
            sums=self._sums(g, planes, sums),
            counting=self._counting(g, planes, sums),
            tiles=self.memory.table(cut.tiles, Span),
            tile_count=len(cut.tiles),
            single=self.memory.table(cut.single, Span),
            single_count=len(cut.single),
        )

    def _encoding(self, g: _Geometry, planes: int) -> int:
        """Keep the encoding's record and return its address: rows of floats fill whole words but
        for the last of a row, which is a pixel or all pixels that are met.
        """
        pixels, words = len(g.met), self.tiling.all_planes
        whole = g.channels % learned_levels.WORD == 0
        lengths = (1, pixels * g.channels) if whole else (pixels, g.channels)
        to = planes + WORD_BYTES * g.met.start * g.words * words
        return self.encoding.record(self.memory, lengths, words, to)

    def _sums(self, g: _Geometry, planes: int, sums: int) -> int:
        """Keep the record of every window's sum of inputs without their offset; 0 where weights
        have no offsets.
        """
        if self.offsets is None:
            return 0
        totals = self.memory.scratch(g.pixels)
        basis = self.tiling.filled(self.encoding.basis)
        rows, columns = (
            self.memory.keep(axis.inside, axis.outputs, 2) for axis in (g.rows, g.columns)
        )
        record = tiles.SumsRecord(
            planes=planes,
            basis=self.memory.keep(basis, self.tiling.all_planes),
            pixels=g.pixels,
            depth=g.words,
            channels=g.channels,
            totals=totals,
            sums=sums,
            rows=rows,
            row_count=g.rows.outputs,
            columns=columns,
            column_count=g.columns.outputs,
            width=g.columns.size,
            row_dilation=g.rows.dilation,
            column_dilation=g.columns.dilation,
        )
        return self.memory.record(record)

    @cached_property
    def _constants(self) -> tuple[int, int, int]:
        """Addresses of the constants that all threads read: weights, what counts are worth,
        weights' offsets.
        """
        t, g, keep = self.tiling, self.geometry, self.memory.keep
        plain = t.by_group(without_padding(self.binary, g.channels).transpose(0, 2, 3, 4, 1))
        taps, block = (g.rows.kernel, g.columns.kernel, g.words), (t.weight_planes, t.lanes)
        weights = keep(as_met(plain), t.groups, *taps, *PARTS, *block)
        factors = t.factors(self.encoding.basis, self.aw)
        offsets = self.offsets
        return (
            weights,
            keep(factors, t.groups, t.all_planes, *block),
            0 if offsets is None else keep(t.by_group(offsets), t.groups, t.lanes),
        )

    def _counting(self, g: _Geometry, planes: int, sums: int) -> int:
        """Keep the record of the windows: where planes and weights are, and the worth of counts."""
        t = self.tiling
        pixel = WORD_BYTES * g.words * t.all_planes
        weights, factors, offsets = self._constants
        row_runs, column_runs = len(g.rows.runs), len(g.columns.runs)
        starts = self.memory.keep(self._starts(g), row_runs, column_runs, t.groups * t.lanes)
        record = tiles.CountingRecord(
            planes=planes,
            pixel=pixel,
            down=g.rows.dilation * g.columns.size * pixel,
            across=g.columns.dilation * pixel,
            depth=g.words,
            channels=g.channels,
            joined=int(g.columns.dilation == 1),
            weights=weights,
            columns=g.columns.kernel,
            taps=g.rows.kernel * g.columns.kernel,
            factors=factors,
            starts=starts,
            offsets=offsets,
            sums=sums,
            outputs=len(self.aw),
            groups=t.groups,
        )
        return self.memory.record(record)

    def _starts(self, g: _Geometry) -> NDArray[np.float32]:
        """Compute the starts of results: [border cases, groups, lanes].

        Bias, the input offset's share over the taps inside, and what an odd number n of products
        adds, because counters begin at -(n div 2).
        """
        weights = _dequantized(self.op, self.aw, self.binary, self.offsets)
        shares = self.op.input_offset * weights.sum(-1)
        odd = self.encoding.basis.sum(dtype=np.float64) * self.aw.sum(1, dtype=np.float64)
        t = self.tiling
        starts = np.zeros((len(g.rows.runs), len(g.columns.runs), t.groups * t.lanes), np.float32)
        for i, down in enumerate(g.rows.taps):
            for j, across in enumerate(g.columns.taps):
                inside = shares[:, down, across]
                rest = inside[0].size * g.channels % 2
                starts[i, j, : len(shares)] = or_zero(self.bias) + inside.sum((1, 2)) + rest * odd
        return starts


@portable(LQConv2D, TensorType.FLOAT32)
def in_c(op: LQConv2D, context: PortableContext) -> list[CCall]:
    """Call the layer in integers, between floats: later passes know where these are needed."""
    binary = context.constant(op.weights_binary)
    kernel = binary.shape[2:4]
    layer = LevelsLayer(
        int(np.prod(kernel)) * op.input_channels,
        op.input_offset,
        op.activation,
        context.constant(op.input_scales),
        context.constant(op.weights_scales),
        whole_windows(binary, op.input_channels),
        context.optional(op.bias),
        context.optional(op.weights_offsets),
    )
    x, y = op.input, op.results[0]
    layer_in_c = FixedWindows(layer, *_axes(op, x.dims, kernel), op.input_channels)
    between = learned_levels.thresholds(layer_in_c.sorted_levels[0])
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    extents = windows_of(x, y, (kernel[0], kernel[1]), stride, op.padding, dilation)
    *before, last = window_calls(layer_in_c, x, y, between, extents, context.vectors)
    return [*before, *activated(op.activation, y, lambda to: replace(last, writes=(to,)))]
