"""Convolutions of learned levels in integers alone, see ``luciole/kernels/c/lq_conv_2d.h``.

Numbers are as in ``levels``; but inputs count by what they differ from the level nearest to 0, and
what that one adds over the taps inside stands in the starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, TensorType, UnsupportedError, Value, learned_levels
from luciole.kernels.layers.geometry.spans import Axis
from luciole.kernels.portable.calls import CCall, Field, Vectors
from luciole.kernels.portable.levels import (
    LANES,
    MOST_ROWS,
    UNIT,
    WEIGHING,
    Doubles,
    FixedLayer,
    fixed,
    floats_of_fixed,
    in_lanes,
    levels_of_floats,
    side_by_side,
    whole,
)

CONVOLUTION, AND_SUM = "luc_lq_conv_2d", "luc_lq_conv_2d_add"
"""C functions."""
MOST_CASES = 255
"""Sets of taps inside along an axis."""
LINE_BYTES = 24
"""Of a line, where addresses have 64 bits."""
MOST_IN_A_ROW = 65535
"""Inputs of a row of an image: their places have 16 bits."""


@dataclass(frozen=True)
class Part:
    """Inputs of some levels, which differ by the same number from the middle one: one level, or
    those in which a sign of the basis is another.
    """

    levels: tuple[int, ...]
    differs: int


@dataclass(frozen=True, eq=False)
class FixedWindows(FixedLayer):
    """A convolution of learned levels in fixed point: of a layer whose inputs are all of a window,
    ``[rows, columns, channels]``, which moves along two axes.
    """

    rows: Axis
    columns: Axis
    channels: int

    def __post_init__(self) -> None:
        """Refuse layers that are too large. Raises UnsupportedError."""
        super().__post_init__()
        if self.columns.size * self.channels > MOST_IN_A_ROW:
            raise UnsupportedError(f"in C, rows of images have up to {MOST_IN_A_ROW} inputs")
        if max(len(self.rows.runs), len(self.columns.runs)) > MOST_CASES:
            raise UnsupportedError(f"in C, an axis has up to {MOST_CASES} border cases")

    @cached_property
    def middle(self) -> int:
        """The number of the level nearest to 0."""
        return int(np.abs(self.sorted_levels[0]).argmin())

    @property
    def input_sizes(self) -> tuple[float, float]:
        """How much an input counts in a sum, and in a result."""
        levels = self.sorted_levels[0]
        spread = float(np.abs(levels - levels[self.middle]).max())
        return spread, spread + abs(float(levels[self.middle]))

    @cached_property
    def parts(self) -> list[Part]:
        """List the segments: by level, or by sign where that takes fewer steps for inputs that have
        each level as often.
        """
        n, kx = self.layer.inputs, len(self.basis)
        by_level = n * (1 - 0.5**kx) + WEIGHING * (2**kx - 1)
        return self._by_level if by_level <= (n / 2 + WEIGHING) * kx else self._by_sign

    @property
    def _by_level(self) -> list[Part]:
        levels = self.sorted_levels[0]
        differs = fixed(levels - levels[self.middle], self.input_places).tolist()
        return [Part((k,), differs[k]) for k in range(len(levels)) if k != self.middle]

    @property
    def _by_sign(self) -> list[Part]:
        code, basis = self.sorted_levels[1], fixed(self.basis, self.input_places)
        other = code ^ code[self.middle]
        parts = []
        for i, number in enumerate(basis.tolist()):
            members = np.flatnonzero(other >> i & 1).tolist()
            is_plus = code[self.middle] >> i & 1
            parts.append(Part(tuple(members), -2 * number if is_plus else 2 * number))
        return parts

    @property
    def most_segments(self) -> int:
        """Segments that a window may have."""
        return len(self.parts) * (self.layer.inputs // MOST_ROWS + 1)

    @property
    def _kept_rows(self) -> int:
        """Rows of an image that a window spans."""
        return min((self.rows.kernel - 1) * self.rows.dilation + 1, self.rows.size)

    def _scratch(self, words: int) -> int:
        """Count bytes of lines, results, planes and segments, lists of rows of an image, and rows
        of weights.
        """
        n, width = self.layer.inputs, self.columns.size
        most = n * max(np.bincount([k for p in self.parts for k in p.levels]), default=0)
        lists = self._kept_rows * (width * self.channels + len(self.sorted_levels[0]) * (width + 1))
        size = LINE_BYTES * self.rows.kernel + (12 + LANES * words) * self.most_segments
        size += 4 * (self.layer.outputs + -self.layer.outputs % words)
        return whole(size + 2 * (lists + int(most) + UNIT * len(self.parts)))

    @property
    def _starts(self) -> Doubles:
        """Return the starts of results [row cases, column cases, outputs]: biases, and the middle
        level times all weights inside.
        """
        scales, offsets, biases = self._weights
        shape = (len(scales), -1, self.rows.kernel, self.columns.kernel, self.channels)
        signs = self.bits.reshape(shape) * 2.0 - 1.0
        weights = np.einsum("ojklc,oj->okl", signs, scales)
        weights += self.channels * offsets[:, None, None]
        level = self.sorted_levels[0][self.middle]
        sums = [
            [weights[:, down, across].sum((1, 2)) for across in self.columns.taps]
            for down in self.rows.taps
        ]
        return np.asarray(np.array(sums) * level + biases)

    def windows_call(
        self, x: Value, y: Value, geometry: dict[str, Field], vectors: Vectors
    ) -> CCall:
        """Call the kernel: numbers of levels to results in fixed point."""
        counts: dict[str, Field] = {
            "kept_rows": self._kept_rows,
            "levels": len(self.sorted_levels[0]),
            "parts": len(self.parts),
            "most_segments": self.most_segments,
            "column_cases": len(self.columns.runs),
            "weight_bits": self.layer.weight_planes,
            **dict.fromkeys(("next_bits", "down", "added_down", "least", "most"), 0),
            **dict.fromkeys(("thresholds", "table")),
        }
        words = vectors.words
        fields = geometry | counts | self._window_tables(words)
        return self._named(CONVOLUTION, fields, x, y, self._scratch(words), words)

    def _window_tables(self, words: int) -> dict[str, Field]:
        scales, offsets, _ = self._weights
        lengths = [len(part.levels) for part in self.parts]
        starts = fixed(self._starts, self.places)
        filler = -starts.shape[2] % words
        shared = fixed(offsets, self.weight_places)[:, None]
        return {
            "members": np.array([k for part in self.parts for k in part.levels], np.int64),
            "ends": np.cumsum(lengths),
            "differs": np.array([part.differs for part in self.parts], np.int64),
            "bits": self._above_each_other(words),
            "scales": in_lanes(fixed(scales, self.weight_places), words),
            "row_case": _cases(self.rows),
            "column_case": _cases(self.columns),
            "starts": np.pad(starts, ((0, 0), (0, 0), (0, filler))),
            "offsets": side_by_side(shared, words) if np.any(offsets) else None,
        }


def _cases(axis: Axis) -> Array:
    """Number the border case of each output position."""
    return np.repeat(np.arange(len(axis.runs)), [len(run) for run in axis.runs])


def whole_windows(binary: Array, channels: int) -> NDArray[np.int32]:
    """Pack the taps [o, planes, rows, columns, words] of a window behind each other: [o, planes,
    words].
    """
    signs = learned_levels.unpack(np.asarray(binary, np.int32), channels)
    return learned_levels.pack(signs.reshape(*signs.shape[:2], -1))


def window_calls(
    layer: FixedWindows,
    x: Value,
    y: Value,
    thresholds: NDArray[np.float32],
    geometry: dict[str, Field],
    vectors: Vectors,
) -> list[CCall]:
    """Encode floats, compute a convolution, and turn its results into floats; without its
    activation.
    """
    levels = Value(f"{x.name}_levels", TensorType.UINT8, x.dims)
    results = Value(f"{y.name}_fixed", TensorType.INT32, y.dims)
    return [
        levels_of_floats(x, levels, thresholds),
        layer.windows_call(levels, results, geometry, vectors),
        floats_of_fixed(results, y, layer.fixed_point),
    ]
