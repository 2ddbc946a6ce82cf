"""Spans: every output pixel once, with the taps that lie inside the image."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from luciole.kernels.jit.record import table
from luciole.kernels.layers.geometry.spans import Axis, Span, Spans, spans
from luciole.schema.enums import Padding

CASES = list(product([(1, 5), (6, 5), (9, 16)], [(1, 1), (3, 3), (5, 2)], [1, 2], [1, 3]))


def axes(
    size: tuple[int, int], kernel: tuple[int, int], stride: int, dilation: int, padding: Padding
) -> tuple[Axis, Axis]:
    rows, columns = (
        Axis.of(s, k, stride, dilation, padding) for s, k in zip(size, kernel, strict=True)
    )
    return rows, columns


def pixels(found: Spans) -> list[tuple[int, ...]]:
    """What spans say of each output pixel: itself, its first input and tap, rows and columns of
    taps, and its border case.
    """
    rows = []
    for some, count in ((found.tiles, found.pixels), (found.single, 1)):
        for x, tap, y, tiles, dx_tile, dy_tile, dx, dy, *inside in table(some, Span).tolist():
            for t, p in product(range(tiles), range(count)):
                first = x + t * dx_tile + p * dx
                rows.append((y + t * dy_tile + p * dy, first, tap, *inside))
    return sorted(rows)


@pytest.mark.parametrize(("size", "kernel", "stride", "dilation"), CASES)
@pytest.mark.parametrize("most", [1, 4, 8])
def test_spans_hold_every_output_pixel_once(
    size: tuple[int, int], kernel: tuple[int, int], stride: int, dilation: int, most: int
) -> None:
    rows, columns = axes(size, kernel, stride, dilation, Padding.SAME)
    wanted: list[tuple[Any, ...]] = []
    for r, c in product(range(rows.outputs), range(columns.outputs)):
        down, across = (
            [
                (k, at)
                for k in range(axis.kernel)
                if 0 <= (at := o * stride - before(axis) + k * dilation) < axis.size
            ]
            for axis, o in ((rows, r), (columns, c))
        )
        (ky, y), (kx, x) = (d[0] if d else (None, 0) for d in (down, across))
        wanted.append((r * columns.outputs + c, y, x, ky, kx, len(down), len(across)))
    found = pixels(spans(rows, columns, most))
    assert [p[0] for p in found] == [w[0] for w in wanted]
    for (_, first, tap, *taps, _), (_, y, x, ky, kx, *wanted_taps) in zip(
        found, wanted, strict=True
    ):
        assert taps == wanted_taps
        assert first == y * columns.size + x
        if ky is not None and kx is not None:
            assert tap == ky * columns.kernel + kx


def before(axis: Axis) -> int:
    """Rows of padding before the first one, as TFLite has it for SAME."""
    out = -(-axis.size // axis.stride)
    span = (axis.kernel - 1) * axis.dilation + 1
    return max((out - 1) * axis.stride + span - axis.size, 0) // 2


def test_pixels_of_one_border_case_have_the_same_taps() -> None:
    found = pixels(spans(*axes((7, 9), (3, 5), 1, 1, Padding.SAME), 4))
    by_case: dict[int, set[tuple[int, ...]]] = {}
    for _, _, tap, high, wide, case in found:
        by_case.setdefault(case, set()).add((tap, high, wide))
    assert sorted(by_case) == list(range(3 * 5))
    assert all(len(taps) == 1 for taps in by_case.values())


def test_an_empty_image_has_no_spans() -> None:
    found = spans(*axes((0, 4), (3, 3), 1, 1, Padding.SAME), 4)
    assert pixels(found) == []


def test_without_padding_there_is_one_case() -> None:
    rows, columns = axes((8, 8), (3, 3), 1, 1, Padding.VALID)
    assert (len(rows.runs), len(columns.runs)) == (1, 1)
    found = spans(rows, columns, 3)
    assert (found.pixels, len(found.single)) == (3, 0)
    assert {span.tiles for span in found.tiles} == {2}
