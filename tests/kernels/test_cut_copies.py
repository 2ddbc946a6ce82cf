"""Copies of a layer's inputs that threads share: together they copy every byte once."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.kernels import jit
from luciole.kernels.layers.int8.byte_records import CopyRecord
from luciole.kernels.layers.int8.dot_tiles import copy, copy_pixels

TURNED = 0x80
CASES = [  # images, rows, length, bytes between rows, a pixel, bytes between pixels
    (5, 1, 96, 96, 96, 96),
    (3, 4, 30, 44, 3, 3),
    (1, 7, 30, 44, 3, 3),
    (1, 7, 30, 160, 3, 16),
    (1, 1, 1000, 1000, 8, 8),
    (1, 1, 60, 60, 4, 4),
    (1, 1, 30, 160, 3, 16),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_shares_of_a_copy_copy_everything_once(case: tuple[int, ...], threads: int) -> None:
    images, rows, length, to_row, pixel, to_pixel = case
    kernel = copy if pixel == to_pixel else copy_pixels
    image = rows * to_row + 5
    x = np.random.default_rng(0).integers(0, 256, images * rows * length).astype(np.uint8)
    made = [np.zeros(images * image, np.uint8) for _ in range(2)]
    whole, cut = (
        CopyRecord(
            x=x.ctypes.data,
            to=to.ctypes.data,
            images=images,
            x_image=rows * length,
            to_image=image,
            rows=rows,
            length=length,
            to_row=to_row,
            turned=TURNED,
            pixels=length // pixel,
            pixel=pixel,
            to_pixel=to_pixel,
        )
        for to in made
    )
    run(kernel, whole)
    before = np.zeros_like(made[1])
    parts = cut.cut(threads)
    assert len(parts) <= threads
    for part in reversed(parts):
        run(kernel, part)
        changed = made[1] != before
        assert changed.any()
        assert (before[changed] == 0).all(), "no two threads write a byte"
        before = made[1].copy()
    np.testing.assert_array_equal(made[1], made[0])


def run(kernel: jit.Kernel, record: CopyRecord) -> None:
    words = record.words()
    jit.caller(np.array([[kernel.address, words.ctypes.data]], np.int64))()
