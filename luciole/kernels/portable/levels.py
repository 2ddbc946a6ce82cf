"""Layers of learned levels in integers alone: their numbers in fixed point, their weights' bits one
above the other, see ``luciole/kernels/c/learned_levels.h``.

A number with p places is an int32 in units of 2^-p. Levels and bases of inputs get as many places
as let every sum of an output's inputs fit into 32 bits, scales of the weights as many as let their
products' upper halves; results have the sum of both, less 32.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, TensorType, UnsupportedError, Value, learned_levels
from luciole.ir.value import element_count
from luciole.kernels.layers.levels.layer import LevelsLayer, or_zero
from luciole.kernels.portable.calls import SCALAR, CCall, Field, FixedPoint, Vectors

LARGEST = 2**31 - 1
MOST_INPUTS, MOST_BITS = 65534, 4
COARSEST = 2.0**-7
"""How far results may be off, of what half of the outputs reach."""
MOST_PLACES = 100
"""Beyond that, units are no normal floats."""

LANES, UNIT, MOST_ROWS, WEIGHING = 32, 8, 248, 32
"""Constants of the header: lanes of a word, rows that are added at once, rows of a segment, and the
cost of weighing one.
"""

T = TypeVar("T", bound=np.generic)

Doubles = NDArray[np.float64]
Longs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FixedLayer:
    """A layer of learned levels in fixed point."""

    layer: LevelsLayer

    def __post_init__(self) -> None:
        """Refuse numbers that have no fixed point. Raises UnsupportedError."""
        layer, kx = self.layer, len(self.layer.ax)
        numbers = (layer.ax, layer.aw, or_zero(layer.bias), or_zero(layer.offsets))
        if not all(np.isfinite(array).all() for array in (*numbers, layer.input_offset)):
            raise UnsupportedError("its bases, biases or offsets are not finite")
        if layer.inputs > MOST_INPUTS or layer.outputs > MOST_INPUTS:
            raise UnsupportedError(f"in C, layers have up to {MOST_INPUTS} inputs and outputs")
        if kx > MOST_BITS:
            raise UnsupportedError(f"inputs have {kx} bits, in C up to {MOST_BITS}")
        if not layer.outputs or not -MOST_PLACES <= self.places <= MOST_PLACES:
            raise UnsupportedError("its numbers have no common fixed point")
        self._refuse_uneven()

    def _refuse_uneven(self) -> None:
        """Refuse a layer whose largest outputs leave the others no places. Raises
        UnsupportedError.
        """
        reach = np.sort(self._reach)
        usual = reach[(len(reach) - 1) // 2]
        if self.error > COARSEST * usual > 0:
            raise UnsupportedError(
                f"half of its outputs reach {usual:.1e} at most, another {reach[-1]:.1e}: in one "
                f"fixed point for all they are {self.error:.1e} off"
            )

    @cached_property
    def basis(self) -> Doubles:
        """The basis of inputs."""
        return np.asarray(self.layer.ax, np.float64)

    @cached_property
    def sorted_levels(self) -> tuple[Doubles, NDArray[np.intp]]:
        """The levels of inputs in rising order, and the code of each."""
        return learned_levels.levels(self.basis, self.layer.input_offset)

    @cached_property
    def _weights(self) -> tuple[Doubles, Doubles, Doubles]:
        """Scales [o, kw], offsets [o] and biases [o]."""
        layer, zeros = self.layer, np.zeros(self.layer.outputs)
        offsets = zeros + or_zero(layer.offsets)
        return layer.aw.astype(np.float64), offsets, zeros + or_zero(layer.bias)

    @property
    def input_sizes(self) -> tuple[float, float]:
        """How much an input counts in a sum, and in a result."""
        size = float(np.abs(self.sorted_levels[0]).max())
        return size, size

    @cached_property
    def _largest(self) -> tuple[float, float, float]:
        """The largest sum of inputs, of an output's scales, and result."""
        in_sums = self.layer.inputs * self.input_sizes[0]
        return in_sums, self._weight_sums.max(), self._reach.max()

    @property
    def _weight_sums(self) -> Doubles:
        """The largest weight of each output."""
        scales, offsets, _ = self._weights
        return np.asarray(np.abs(scales).sum(1) + np.abs(offsets))

    @property
    def _reach(self) -> Doubles:
        """The largest result of each output."""
        largest = self.layer.inputs * self.input_sizes[1]
        return np.asarray(largest * self._weight_sums + np.abs(self._weights[2]))

    @cached_property
    def input_places(self) -> int:
        """Places of levels."""
        n, kx = self.layer.inputs, len(self.basis)
        return _places(self._largest[0], LARGEST - n * (kx + 1))

    @cached_property
    def weight_places(self) -> int:
        """Places of scales: fewer where biases are large."""
        places = _places(self._largest[1], LARGEST - self.layer.weight_planes - 1)
        return min(places, 32 - self.input_places + _places(self._largest[2], LARGEST - 8))

    @property
    def places(self) -> int:
        """Places of results."""
        return self.input_places + self.weight_places - 32

    @property
    def error(self) -> float:
        """A bound of how far results are from exact arithmetic on the same levels: each number of
        the basis is off by half a unit, twice where levels are subtracted, each result by two.
        """
        inputs, weights, _ = self._largest
        of_levels = self.layer.inputs * (len(self.basis) + 1) * 2.0**-self.input_places
        of_scales = (self.layer.weight_planes + 1) / 2 * 2.0**-self.weight_places
        product = of_levels * weights + of_scales * (inputs + of_levels)
        return float(product + 2 * 2.0**-self.places)

    @property
    def fixed_point(self) -> FixedPoint:
        """Fixed point of results."""
        return FixedPoint(self.places, self.error)

    @property
    def note(self) -> str:
        """Return a note for people on the numbers."""
        return (
            f"{len(self.basis)} bit inputs, {self.layer.weight_planes} bit weights; "
            f"results {self.fixed_point}"
        )

    @property
    def most_segments(self) -> int:
        """Segments that inputs may be sorted into."""
        kx, n = len(self.basis), self.layer.inputs
        return (1 << kx) + (n + (WEIGHING << kx)) // MOST_ROWS + 1

    @property
    def most_rows(self) -> int:
        """Rows that lists may have: by level each segment is filled up, and vectors write some
        more; by sign there are as many more as weighing fewer segments saves.
        """
        kx, n = len(self.basis), self.layer.inputs
        fewer = WEIGHING * max(0, (1 << kx) - 1 - kx) + UNIT * kx
        return whole(n + max(UNIT << kx, fewer) + 1)

    def call(self, x: Value, y: Value, records: int, vectors: Vectors = SCALAR) -> CCall:
        """Call the kernel: numbers of levels to results in fixed point."""
        fields, words = {"records": records, **self._fields(vectors.words)}, vectors.words
        results = 4 * (self.layer.outputs + -self.layer.outputs % words) if words > 1 else 0
        if vectors.counts_bits and self._is_counted(words):
            scratch = whole(results + 18 * -(-self.layer.inputs // LANES))
            fields["bits"] = counted_words(self.bits, words)
            return self._named(COUNTED, fields, x, y, scratch, words)
        rows = self.most_rows + (LANES if words > 1 else 0)
        scratch = results + whole(self.most_segments * (12 + LANES * words) + 2 * rows)
        fields |= {"bits": self._above_each_other(words), "most_segments": self.most_segments}
        fields["most_rows"] = rows
        return self._named(ADDED, fields, x, y, whole(scratch), words)

    def _named(
        self, function: str, fields: dict[str, Field], x: Value, y: Value, scratch: int, words: int
    ) -> CCall:
        """Make a call of a layer's function, with a note on its results."""
        point = self.fixed_point
        return CCall(function, fields, (x,), (y,), scratch, self.note, fixed=point, words=words)

    def _is_counted(self, words: int) -> bool:
        """Return whether counting the ones of all pairs of planes takes fewer steps than adding
        rows, half of the inputs on the most frequent level: fitted to what both take on AMD's Zen
        4.
        """
        layer, kx, n = self.layer, len(self.basis), self.layer.inputs
        groups = -(-layer.outputs // words) * layer.weight_planes
        added = 22 * n / 2 / UNIT + 200 * ((1 << kx) - 1)
        return groups * kx * n / LANES * 3 < -(-groups // LANES) * added

    @cached_property
    def bits(self) -> NDArray[np.bool_]:
        """The signs of weights [outputs, planes, inputs]."""
        return learned_levels.unpack(self.layer.words.view(np.int32), self.layer.inputs)

    def _above_each_other(self, words: int) -> NDArray[np.uint32]:
        """Put the lanes of ``words`` outputs side by side, plane by plane: in elements of a
        vector.
        """
        groups = side_by_side(self.bits, words)
        each = groups.transpose(2, 0, 1, 3).reshape(words, -1, self.layer.inputs)
        return np.stack([lane_words(lanes) for lanes in each], -1)

    def _fields(self, words: int) -> dict[str, Field]:
        layer, code = self.layer, self.sorted_levels[1]
        scales, offsets, biases = self._weights
        basis = fixed(self.basis, self.input_places)
        offset = fixed(np.array(layer.input_offset), self.input_places)
        signs = learned_levels.sign_codes(len(basis)).astype(np.int64)
        shared = fixed(offsets, self.weight_places)[:, None]
        return {
            "inputs": layer.inputs,
            "outputs": layer.outputs,
            "input_bits": len(self.basis),
            "weight_bits": layer.weight_planes,
            "next_bits": 0,
            "thresholds": None,
            "level": (signs @ basis + offset)[code],
            "code": code,
            "basis": basis,
            "totals": in_lanes(self.bits.sum(2, dtype=np.int64), words),
            "scales": in_lanes(fixed(scales, self.weight_places), words),
            "starts": side_by_side(fixed(biases, self.places)[:, None], words),
            "offsets": side_by_side(shared, words) if np.any(offsets) else None,
        }


ADDED, COUNTED = "luc_lq_fully_connected", "luc_lq_counted"


def whole(size: int) -> int:
    """Fill bytes up to a multiple of 8."""
    return size + -size % 8


def _places(largest: float, most: int) -> int:
    """Count the places with which a number fits into ``most`` units."""
    return int(np.floor(np.log2(most / max(largest, 2.0**-MOST_PLACES))))


def fixed(numbers: Array, places: int) -> Longs:
    """Round to fixed point, halves up."""
    scaled = np.asarray(numbers, np.float64) * 2.0**places
    return np.asarray(np.floor(scaled + 0.5), np.int64)


def side_by_side(array: NDArray[T], words: int) -> NDArray[T]:
    """Put ``words`` outputs side by side: [outputs, planes, ...] to [groups, planes, words, ...],
    filled up by 0.
    """
    filler = -len(array) % words
    padded = np.pad(array, ((0, filler), *((0, 0),) * (array.ndim - 1)))
    return padded.reshape(-1, words, *array.shape[1:]).swapaxes(1, 2)


def in_lanes(lanes: Longs, words: int) -> Longs:
    """Put numbers of lanes [outputs, planes] in the order of ``side_by_side``, filled up to whole
    groups of four.
    """
    flat = side_by_side(lanes, words).reshape(-1, words)
    return np.pad(flat, ((0, -len(flat) % 4), (0, 0)))


def counted_words(bits: NDArray[np.bool_], words: int) -> NDArray[np.uint32]:
    """Put weights [outputs, planes, inputs] as words of 32 inputs each: [groups, planes, inputs /
    32, words].
    """
    packed = learned_levels.pack(side_by_side(bits, words)).view(np.uint32)
    return packed.swapaxes(2, 3)


def lane_words(lanes: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Put the bits of lanes [lanes, n] above each other: [blocks, n + 1] words, the last row of a
    block 0. Bit 8 q + i of a word is lane 4 i + q of its block: in bytes lanes are in order.
    """
    count, n = lanes.shape
    blocks = -(-count // LANES)
    padded = np.zeros((blocks * LANES, n + 1), np.bool_)
    padded[:count, :n] = lanes
    bit = np.arange(LANES)
    placed = padded.reshape(blocks, LANES, n + 1)[:, 4 * (bit % 8) + bit // 8]
    return learned_levels.pack(placed.transpose(0, 2, 1)).view(np.uint32)


def levels_of_floats(x: Value, y: Value, thresholds: NDArray[np.float32]) -> CCall:
    """Call the function that encodes floats; thresholds are compared as integers in the order of
    floats.
    """
    bits = np.where(thresholds == 0, np.float32(0), thresholds).view(np.int32)
    order = np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    fields = {**_counts(x, thresholds), "thresholds": order}
    return CCall("luc_levels_of_floats", fields, (x,), (y,))


def thresholds_of(call: CCall) -> NDArray[np.float32]:
    """Return the thresholds that ``levels_of_floats`` was given."""
    order = np.asarray(call.fields["thresholds"], np.int32)
    return np.where(order < 0, order ^ 0x7FFFFFFF, order).view(np.float32)


def levels_of_fixed(x: Value, y: Value, thresholds: Doubles, places: int) -> CCall:
    """Call the function that encodes fixed point: y > floor(t) is y > t for integers."""
    scaled = np.floor(np.clip(thresholds * 2.0**places, -LARGEST - 1, LARGEST))
    fields = {**_counts(x, thresholds), "thresholds": scaled.astype(np.int64)}
    return CCall("luc_levels_of_fixed", fields, (x,), (y,))


def _counts(x: Value, thresholds: Array) -> dict[str, Field]:
    return {"count": element_count(x.dims), "bits": int(thresholds.size + 1).bit_length() - 1}


def floats_of_fixed(x: Value, y: Value, point: FixedPoint) -> CCall:
    """Call the function that turns fixed point into floats."""
    fields: dict[str, Field] = {"count": element_count(x.dims), "unit": point.unit}
    return CCall("luc_floats_of_fixed", fields, (x,), (y,), fixed=point)


def layer_calls(
    layer: LevelsLayer,
    x: Value,
    y: Value,
    thresholds: NDArray[np.float32],
    vectors: Vectors = SCALAR,
) -> list[CCall]:
    """Encode floats, compute a layer, and turn its results into floats; without its activation."""
    fixed_layer = FixedLayer(layer)
    levels = Value(f"{x.name}_levels", TensorType.UINT8, x.dims)
    results = Value(f"{y.name}_fixed", TensorType.INT32, y.dims)
    records = element_count(x.dims) // layer.inputs
    return [
        levels_of_floats(x, levels, thresholds),
        fixed_layer.call(levels, results, records, vectors),
        floats_of_fixed(results, y, fixed_layer.fixed_point),
    ]
