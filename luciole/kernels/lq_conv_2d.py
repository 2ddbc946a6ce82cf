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
from luciole.kernels.jit import LANES
from luciole.kernels.lq_fully_connected import ACTIVATIONS, or_zero, without_padding
from luciole.kernels.registry import Context, NativeStep, native, reference
from luciole.kernels.spans import Axis, spans
from luciole.kernels.windows import patches
from luciole.schema.enums import ActivationFunctionType

MAX_COUNTERS = 20
"""Vectors of counters in one tile: with weights and an input word they fill 32 registers."""

MAX_PIXELS = 8
"""Pixels in one tile: each takes a register that holds its address."""

MAX_BORDER_CASES = 4096
"""Sets of taps inside for which starts are prepared; a kernel of 63 x 63 has 3969 at most."""

LIMITS = {
    ActivationFunctionType.RELU: (0, np.inf),
    ActivationFunctionType.RELU_N1_TO_1: (-1, 1),
    ActivationFunctionType.RELU6: (0, 6),
}
"""Where activations cut off; TANH is applied afterwards."""


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
class _Tiling:
    """How a layer is cut: ``passes`` over ``planes`` input planes each (together at least kx), and
    ``groups`` of ``vectors`` times 16 outputs.
    """

    planes: int
    passes: int
    vectors: int
    groups: int
    most_pixels: int

    @classmethod
    def of(cls, kx: int, kw: int, outputs: int) -> _Tiling:
        passes = -(-kx * kw // MAX_COUNTERS)
        planes = -(-kx // passes)
        needed = -(-outputs // LANES)
        fitting = [v for v in (4, 2, 1) if v * planes * kw <= MAX_COUNTERS]
        vectors = min(fitting, key=lambda v: -(-needed // v) * v)
        pixels = max(1, min(MAX_PIXELS, MAX_COUNTERS // (planes * kw * vectors)))
        return cls(planes, passes, vectors, -(-needed // vectors), pixels)

    @property
    def lanes(self) -> int:
        """Outputs in one group."""
        return self.vectors * LANES

    def by_group(self, array: Array) -> Array:
        """[o, ...] as [groups, ..., lanes], filled up with zeros."""
        padded = np.zeros((self.groups * self.lanes, *array.shape[1:]), array.dtype)
        padded[: len(array)] = array
        grouped = padded.reshape(self.groups, self.lanes, *array.shape[1:])
        return np.moveaxis(grouped, 1, -1)


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
    tiling = _Tiling.of(len(ax), aw.shape[1], len(aw))
    return _Layer(op, geometry, tiling, ax, aw, binary, bias, offsets).step(x, y)


@dataclass
class _Layer:
    """One layer on its way to records: each method but ``step`` writes one, field by field in the
    order in which ``lq_tiles`` reads it, and gives its address. Steps in memory are in bytes.
    """

    op: LQConv2D
    geometry: _Geometry
    tiling: _Tiling
    ax: Array
    aw: Array
    binary: Array
    bias: Array | None
    offsets: Array | None
    kept: list[Array] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Turn the input's basis into one of rising magnitudes, whose codes mostly rise too."""
        self.levels, order = codes.levels(self.ax, self.op.input_offset)
        rising = np.argsort(np.abs(self.ax), kind="stable")
        self.order = _renumbered(order, self.ax, rising)
        self.ax = np.abs(self.ax[rising]).astype(np.float32)

    def step(self, x: Array, y: Array) -> NativeStep:
        """The kernel on its record."""
        g, t = self.geometry, self.tiling
        cut = spans(g.rows, g.columns, t.most_pixels)
        planes = self._keep(np.zeros((g.pixels * g.words, t.planes * t.passes), np.uint32))
        sums = self._keep(np.zeros(g.results, np.float32))
        parts = self._packing(planes), self._sums(planes, sums), self._counting(planes, sums)
        tables = [n for s in (cut.tiles, cut.single) for n in (self._keep(s), len(s))]
        images = (g.images, x.nbytes // g.images, y.nbytes // g.images, y.size // g.images)
        tanh = self.op.activation == ActivationFunctionType.TANH
        record = np.array([x.ctypes.data, y.ctypes.data, *images, *parts, *tables, tanh], np.int64)
        shape = (cut.pixels, t.planes, self.aw.shape[1], t.vectors)
        kernel = lq_tiles.kernel(*shape, bits=len(self.ax), passes=t.passes)
        return NativeStep(kernel.address, record, tuple(self.kept))

    def _keep(self, array: Array) -> int:
        """The address of a copy at a multiple of 64 bytes."""
        room = np.zeros(array.nbytes + 64, np.uint8)
        start = -room.ctypes.data % 64
        place = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        place[...] = array
        self.kept.append(place)
        return int(place.ctypes.data)

    def _record(self, *numbers: int) -> int:
        return self._keep(np.array(numbers, np.int64))

    def _packing(self, planes: int) -> int:
        """Rows of floats that fill whole words but for the last of a row: pixels, or the image."""
        g = self.geometry
        floats = g.pixels * g.channels
        rows = 1 if g.channels % codes.WORD == 0 else g.pixels
        toggles = (self.order[1:] ^ self.order[:-1]).astype(np.uint32)
        spare = self._keep(np.zeros(codes.WORD, np.float32))
        tables = self._keep(codes.thresholds(self.levels)), self._keep(toggles)
        rising = bool((self.order == np.arange(len(self.order))).all())
        searched = rising and len(self.ax) <= lq_tiles.MAX_SEARCHED
        lowest = int(self.order[0])
        return self._record(rows, floats // rows, *tables, lowest, planes, spare, searched)

    def _sums(self, planes: int, sums: int) -> int:
        """For every window the sum of its inputs without their offset; 0 where nobody asks."""
        if self.offsets is None:
            return 0
        g = self.geometry
        totals = self._keep(np.zeros(g.pixels, np.float32))
        axes = [n for axis in (g.rows, g.columns) for n in (self._keep(axis.inside), axis.outputs)]
        width, dilations = g.columns.size, (g.rows.dilation, g.columns.dilation)
        sizes = (g.pixels, g.words, g.channels)
        return self._record(
            planes, self._keep(self.ax), *sizes, totals, sums, *axes, width, *dilations
        )

    def _counting(self, planes: int, sums: int) -> int:
        """What windows need: where planes and weights are, and what counts are worth."""
        g, t, op = self.geometry, self.tiling, self.op
        pixel = 4 * g.words * t.planes * t.passes
        taps = (g.rows.dilation * g.columns.size * pixel, g.columns.dilation * pixel)
        plain = without_padding(self.binary, g.channels).transpose(0, 2, 3, 4, 1)
        weights = self._keep(t.by_group(plain))
        low, high = LIMITS.get(op.activation, (-np.inf, np.inf))
        limits = self._keep(np.array([low, high], np.float32))
        offsets = 0 if self.offsets is None else self._keep(t.by_group(self.offsets))
        outputs = len(self.aw)
        spare = np.zeros((g.results if outputs % t.lanes else 0, t.lanes), np.float32)
        return self._record(
            *(planes, pixel, *taps, g.words, g.channels, g.columns.dilation == 1),
            *(weights, g.columns.kernel, g.rows.kernel * g.columns.kernel),
            *(self._keep(self._factors()), limits, self._keep(self._starts()), offsets, sums),
            *(outputs, t.groups, g.results, self._keep(spare)),
        )

    def _factors(self) -> NDArray[np.float32]:
        """What a differing bit of input plane i and weight plane j takes away: [groups, i, j,
        lanes].
        """
        t = self.tiling
        basis = np.zeros(t.planes * t.passes, np.float64)
        basis[: len(self.ax)] = self.ax
        products = -2 * self.aw[:, None, :].astype(np.float64) * basis[:, None]
        return t.by_group(products.astype(np.float32))

    def _starts(self) -> NDArray[np.float32]:
        """What results begin with: [border cases, groups, lanes].

        Bias, the input offset's share over the taps inside, and what an odd number n of products
        adds, because counters begin at -(n div 2).
        """
        weights = _dequantized(self.op, self.aw, self.binary, self.offsets)
        shares = self.op.input_offset * weights.sum(-1)
        odd = self.ax.sum(dtype=np.float64) * self.aw.sum(1, dtype=np.float64)
        g, t = self.geometry, self.tiling
        starts = np.zeros((len(g.rows.runs), len(g.columns.runs), t.groups * t.lanes), np.float32)
        for i, down in enumerate(g.rows.taps):
            for j, across in enumerate(g.columns.taps):
                inside = shares[:, down, across]
                rest = inside[0].size * g.channels % 2
                starts[i, j, : len(shares)] = or_zero(self.bias) + inside.sum((1, 2)) + rest * odd
        return starts


def _renumbered(order: Array, ax: Array, rising: Array) -> Array:
    """Code numbers for a basis of magnitudes in another order: bit i stands for element
    ``rising[i]``, and is the other way round where that is negative.
    """
    bits = (order[:, None] >> rising) & 1
    bits = np.where(ax[rising] < 0, 1 - bits, bits)
    return np.asarray((bits << np.arange(len(ax))).sum(1))
