"""LQ_CONV_2D kernels: a reference on dequantized values, xnor/popcount on packed bits.

The compiled kernel quantizes and packs every input pixel once. Then a tile of output pixels times
16 or more outputs is counted in vector registers, one output per lane, over the taps inside the
image only, so that padding contributes exactly 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, TensorType, codes
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.kernels import lq_tiles
from luciole.kernels.activation import activate
from luciole.kernels.lq_encoding import Encoding
from luciole.kernels.lq_layer import ACTIVATIONS, ending, or_zero, without_padding
from luciole.kernels.lq_tiling import Tiling
from luciole.kernels.memory import Memory
from luciole.kernels.registry import Context, NativeStep, native, reference
from luciole.kernels.spans import Axis, spans
from luciole.kernels.windows import patches

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
    levels, _ = codes.levels(input_scales, op.input_offset)
    quantized = levels[codes.encode(x, codes.thresholds(levels))]
    weights = _dequantized(op, weights_scales, weights_binary, weights_offsets)
    stride, dilation = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    windows = patches(quantized, weights.shape[1:3], stride, op.padding, dilation)
    y = np.tensordot(windows, weights.transpose(3, 1, 2, 0), axes=3) + or_zero(bias)
    return activate(y.astype(np.float32), op.activation)


def _dequantized(
    op: LQConv2D, scales: Array, binary: Array, offsets: Array | None
) -> NDArray[np.float64]:
    """The weights as numbers: [o, kernel height, kernel width, c]."""
    planes_last = binary.transpose(0, 2, 3, 1, 4)
    shift = or_zero(offsets)[:, None, None]
    return codes.decode(planes_last, scales[:, None, None], op.input_channels, shift)


@dataclass(frozen=True)
class _Geometry:
    """Where windows lie. An image whose windows are single pixels is one long row."""

    images: int
    channels: int
    rows: Axis
    columns: Axis

    @classmethod
    def of(cls, op: LQConv2D, shape: tuple[int, ...], kernel: tuple[int, ...]) -> _Geometry:
        images, h, w, channels = shape
        if (*kernel, op.stride_h, op.stride_w) == (1, 1, 1, 1):
            images, h, w = 1, 1, images * h * w
        rows = Axis.of(h, kernel[0], op.stride_h, op.dilation_h_factor, op.padding)
        columns = Axis.of(w, kernel[1], op.stride_w, op.dilation_w_factor, op.padding)
        return cls(images, channels, rows, columns)

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
        return -(-self.channels // codes.WORD)


@native(LQConv2D, TensorType.FLOAT32)
def build(op: LQConv2D, context: Context) -> NativeStep | None:
    """Lay weights out by groups of outputs, [kernel position, word, plane, output], and settle for
    every output pixel which taps lie inside.
    """
    x, ax, aw, binary, bias, offsets = [*context.operands, None, None][:6]
    if x is None or ax is None or aw is None or binary is None:
        return None
    constant = all(value is None or value.is_constant for value in op.operands[1:])
    y = context.results[0]
    if not constant or op.activation not in ACTIVATIONS or not x.size or not y.size:
        return None
    geometry = _Geometry.of(op, x.shape, binary.shape[2:4])
    if len(geometry.rows.runs) * len(geometry.columns.runs) > MAX_BORDER_CASES:
        return None
    tiling = Tiling.of(len(ax), aw.shape[1], len(aw))
    return _Layer(op, geometry, tiling, ax, aw, binary, bias, offsets).step(x, y)


@dataclass
class _Layer:
    """One layer on its way to records: each method but ``step`` writes one, field by field in the
    order in which ``lq_tiles`` reads it, and gives its address. Steps in memory are in bytes.
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
        """The kernel on its record."""
        g, t = self.geometry, self.tiling
        cut = spans(g.rows, g.columns, t.most_pixels)
        planes = self.memory.scratch(g.pixels * g.words, t.all_planes)
        sums = self.memory.scratch(g.results)
        parts = *self._encoding(planes), self._sums(planes, sums), self._counting(planes, sums)
        tables = [n for s in (cut.tiles, cut.single) for n in (self.memory.keep(s), len(s))]
        images = (g.images, x.nbytes // g.images, y.nbytes // g.images)
        record = np.array([x.ctypes.data, y.ctypes.data, *images, *parts, *tables], np.int64)
        kernel = lq_tiles.kernel(cut.pixels, *t.shape, *ending(self.op.activation))
        return NativeStep(kernel.address, record, tuple(self.memory.arrays))

    def _encoding(self, planes: int) -> tuple[int, int]:
        """The encoding's kernel and record: rows of floats fill whole words but for the last of a
        row, which is a pixel or the image.
        """
        g = self.geometry
        rows = 1 if g.channels % codes.WORD == 0 else g.pixels
        lengths = rows, g.pixels * g.channels // rows
        record = self.encoding.record(self.memory, lengths, self.tiling.all_planes, planes)
        return self.encoding.kernel.address, record

    def _sums(self, planes: int, sums: int) -> int:
        """For every window the sum of its inputs without their offset; 0 where nobody asks."""
        if self.offsets is None:
            return 0
        g = self.geometry
        totals = self.memory.scratch(g.pixels)
        axes = [
            n for axis in (g.rows, g.columns) for n in (self.memory.keep(axis.inside), axis.outputs)
        ]
        width, dilations = g.columns.size, (g.rows.dilation, g.columns.dilation)
        sizes = (g.pixels, g.words, g.channels)
        return self.memory.record(
            planes,
            self.memory.keep(self.encoding.basis),
            *sizes,
            totals,
            sums,
            *axes,
            width,
            *dilations,
        )

    def _counting(self, planes: int, sums: int) -> int:
        """What windows need: where planes and weights are, and what counts are worth."""
        g, t = self.geometry, self.tiling
        pixel = 4 * g.words * t.all_planes
        taps = (g.rows.dilation * g.columns.size * pixel, g.columns.dilation * pixel)
        plain = without_padding(self.binary, g.channels).transpose(0, 2, 3, 4, 1)
        weights = self.memory.keep(t.by_group(plain))
        offsets = 0 if self.offsets is None else self.memory.keep(t.by_group(self.offsets))
        factors = self.memory.keep(t.factors(self.encoding.basis, self.aw))
        outputs = len(self.aw)
        return self.memory.record(
            *(planes, pixel, *taps, g.words, g.channels, g.columns.dilation == 1),
            *(weights, g.columns.kernel, g.rows.kernel * g.columns.kernel),
            *(factors, self.memory.keep(self._starts()), offsets, sums, outputs, t.groups),
            self.memory.scratch(t.most_pixels, t.lanes),
        )

    def _starts(self) -> NDArray[np.float32]:
        """What results begin with: [border cases, groups, lanes].

        Bias, the input offset's share over the taps inside, and what an odd number n of products
        adds, because counters begin at -(n div 2).
        """
        weights = _dequantized(self.op, self.aw, self.binary, self.offsets)
        shares = self.op.input_offset * weights.sum(-1)
        odd = self.encoding.basis.sum(dtype=np.float64) * self.aw.sum(1, dtype=np.float64)
        g, t = self.geometry, self.tiling
        starts = np.zeros((len(g.rows.runs), len(g.columns.runs), t.groups * t.lanes), np.float32)
        for i, down in enumerate(g.rows.taps):
            for j, across in enumerate(g.columns.taps):
                inside = shares[:, down, across]
                rest = inside[0].size * g.channels % 2
                starts[i, j, : len(shares)] = or_zero(self.bias) + inside.sum((1, 2)) + rest * odd
        return starts
