"""Tables of tiles: every output pixel is in one, with the input pixel and the taps that it has."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from luciole.kernels.layers.geometry.pixel_tiles import TAP_FIELDS, Table, cases, joined, tables
from luciole.kernels.layers.geometry.spans import Axis
from luciole.schema.enums import Padding

SIZES = [(7, 3), (2, 5), (9, 1), (16, 4)]


def axes(rows: tuple[int, int], columns: tuple[int, int], stride: int) -> tuple[Axis, Axis]:
    """SAME axes of (inputs, taps)."""
    down, across = (Axis.of(*size, stride, 1, Padding.SAME) for size in (rows, columns))
    return down, across


def found(table: Table, pixels: int) -> dict[int, tuple[int, ...]]:
    """What a table says of each output pixel: input pixel and taps."""
    assert table.shape[1] == 2 * pixels + TAP_FIELDS
    return {
        int(row[pixels + i]): (int(row[i]), *row[2 * pixels :].tolist())
        for row in table
        for i in range(pixels)
    }


def wanted(rows: Axis, columns: Axis) -> dict[int, tuple[int, ...]]:
    """The same from the axes, pixel by pixel."""
    return {
        r * columns.outputs + c: (
            int(rows.start[r] * columns.size + columns.start[c]),
            int(rows.first[r] * columns.kernel + columns.first[c]),
            int(rows.count[r]),
            int(columns.count[c]),
            0,
        )
        for r, c in np.ndindex(rows.outputs, columns.outputs)
    }


@pytest.mark.parametrize(("rows", "columns"), list(product(SIZES, SIZES[:2])))
@pytest.mark.parametrize("stride", [1, 2])
def test_tiles_cover_every_pixel(
    rows: tuple[int, int], columns: tuple[int, int], stride: int
) -> None:
    down, across = axes(rows, columns, stride)
    whole, rest = tables(cases(down, across), 5, (1, 1), few=2, small=2)
    assert found(whole, 5) | found(rest, 2) == wanted(down, across)
    assert len(whole) * 5 + len(rest) * 2 < down.outputs * across.outputs + 9 * 4


@pytest.mark.parametrize("neighbours", [2, 4, 16])
@pytest.mark.parametrize("size", SIZES)
def test_neighbours_in_a_row_share_their_taps(size: tuple[int, int], neighbours: int) -> None:
    down, across = axes((4, 3), size, 1)
    kinds = list(zip(*joined(down, across, neighbours), strict=True))
    first, alone = (found(tables(kind, 3, (1, 1))[0], 3) for kind in kinds)
    spread = {y + i: (x + i, *taps) for y, (x, *taps) in first.items() for i in range(neighbours)}
    assert spread | alone == wanted(down, across)


def test_places_are_in_steps() -> None:
    down, across = axes((3, 1), (5, 1), 1)
    (table,) = (t for t in tables(cases(down, across), 15, (7, 3)) if len(t))
    np.testing.assert_array_equal(table[0, :15], 7 * np.arange(15))
    np.testing.assert_array_equal(table[0, 15:30], 3 * np.arange(15))
