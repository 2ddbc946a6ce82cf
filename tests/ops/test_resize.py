"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Graph, LucioleError, ShapeError
from luciole.ir.ops.resize import Resize, ResizeBilinear, ResizeNearestNeighbor
from tests.native_support import check_compiled, declines_computed
from tests.support import Affine, one_op, run_litert, run_native, run_reference

BOTH = pytest.mark.parametrize("cls", [ResizeBilinear, ResizeNearestNeighbor])
SIZES = [(1, 1), (2, 3), (5, 7), (16, 16), (4, 31)]
PLACES = [(False, False), (True, False), (False, True), (True, True)]


def check(cls: type[Resize], x: Any, size: tuple[int, int], constant: bool, **given: Any) -> None:
    arrays = [x, np.array(size, np.int32)]
    if x.dtype != np.float32:
        given |= {"affine": [Affine(0.5, 0)], "results": [Affine(0.5, 0)]}
    ours, theirs = (
        run(cls, arrays, (1,) if constant else (), **given)[0]
        for run in (run_reference, run_litert)
    )
    np.testing.assert_array_equal(ours, theirs, strict=True)


@BOTH
@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.int16])
def test_images_are_resized_like_in_litert(
    cls: type[Resize], places: tuple[bool, bool], dtype: Any
) -> None:
    if cls is ResizeBilinear and all(places):
        return  # refused, see below
    rng = np.random.default_rng(5)
    given = {"align_corners": places[0], "half_pixel_centers": places[1]}
    for h, w in ((5, 7), (1, 1), (2, 9)):
        x = rng.normal(size=(2, h, w, 3)).astype(np.float32) * 9
        if dtype is not np.float32:
            limits = np.iinfo(dtype)
            x = rng.integers(limits.min, limits.max + 1, x.shape).astype(dtype)
        for size in SIZES:
            check(cls, x, size, True, **given)
        check(cls, x, (3, 4), False, **given)


@pytest.mark.parametrize("dtype", [np.bool_, np.int64, np.float64])
def test_nearest_elements_are_of_any_type(dtype: Any) -> None:
    x = np.arange(12).reshape(1, 3, 4, 1).astype(dtype)
    (y,) = run_reference(ResizeNearestNeighbor, [x, np.array([6, 8], np.int32)])
    np.testing.assert_array_equal(y, x.repeat(2, 1).repeat(2, 2), strict=True)


@BOTH
@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.int16])
def test_compiled_images_are_those_of_the_reference(
    cls: type[Resize], places: tuple[bool, bool], dtype: Any
) -> None:
    if cls is ResizeBilinear and all(places):
        return  # refused, see below
    given = {"align_corners": places[0], "half_pixel_centers": places[1]}
    rng = np.random.default_rng(5)
    others = (2, 8, 12) if dtype is not np.int8 else ()  # read and written like those of uint8
    for channels in (1, 3, 5, 16, 17, 40, *others):
        x = rng.integers(-(2**15), 2**15, (2, 3, 4, channels)).astype(dtype)
        for size in ((3, 4), (6, 8), (9, 4), (1, 1), (7, 9)):
            check_compiled(cls, [x, np.array(size, np.int32)], (1,), **given)


@pytest.mark.parametrize("dtype", [np.int64, np.bool_, np.complex64])
def test_compiled_copies_are_of_any_type(dtype: Any) -> None:
    x = np.random.default_rng(5).normal(size=(2, 3, 4, 5)).astype(dtype)
    check_compiled(ResizeNearestNeighbor, [x, np.array([7, 9], np.int32)], (1,))


@BOTH
def test_a_computed_size_is_left_to_the_reference(cls: type[Resize]) -> None:
    x = np.ones((1, 3, 4, 2), np.float32)
    assert declines_computed(cls, [x, np.array([6, 8], np.int32)], (1,), 1)


@BOTH
def test_no_images_are_resized_by_compiled_kernels(cls: type[Resize]) -> None:
    for shape in ((0, 3, 4, 2), (1, 3, 4, 0)):
        check_compiled(cls, [np.ones(shape, np.float32), np.array([6, 8], np.int32)], (1,))


def test_whole_multiples_are_compiled() -> None:
    x = np.random.default_rng(5).normal(size=(2, 3, 4, 5)).astype(np.float32)
    model = one_op(ResizeNearestNeighbor, [x, np.array([6, 12], np.int32)], (1,))
    np.testing.assert_array_equal(run_native(model, x), x.repeat(2, 1).repeat(3, 2))


@BOTH
def test_images_may_be_large_or_few(cls: type[Resize]) -> None:
    x = np.arange(3000, dtype=np.float32).reshape(1, 3000, 1, 1)
    check(cls, x, (2999, 1), True)
    (y,) = run_reference(cls, [x[:0], np.array([7, 2], np.int32)])
    assert y.shape == (0, 7, 2, 1)


@BOTH
def test_resize_keeps_unknown_dimensions(cls: type[Resize]) -> None:
    graph = Graph()
    x, size = graph.add_input("x", (None, None, 4, 3)), graph.add_input("size", (2,))
    assert cls(x, size).infer_shape() == (None, None, None, 3)
    size = graph.add_constant("size", np.array([6, 7], np.int32))
    assert cls(x, size).infer_shape() == (None, 6, 7, 3)


@BOTH
@pytest.mark.parametrize("constant", [(1,), ()])
@pytest.mark.parametrize(
    ("shape", "size", "message"),
    [
        ((1, 2, 3, 1), [0, 3], r"size is \[0, 3\], both must be at least 1"),
        ((1, 2, 3, 1), [4, -1], r"size is \[4, -1\], both must be at least 1"),
        ((1, 0, 3, 1), [4, 4], "the image is 0 x 3, it has nothing to resize"),
        ((1, 2, 3, 1), [4, 4, 4], "size has 3 entries, 2 are needed"),
        ((2, 3, 1), [4, 4], r"input has shape \[2,3,1\], rank 4 is needed"),
    ],
)
def test_resize_refuses_what_makes_no_image(
    cls: type[Resize],
    constant: tuple[int, ...],
    shape: tuple[int, ...],
    size: list[int],
    message: str,
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(cls, [np.ones(shape, np.float32), np.array(size, np.int32)], constant)


@BOTH
def test_resize_refuses_a_computed_size_that_takes_too_much_memory(cls: type[Resize]) -> None:
    size = np.array([2**31 - 1, 2**31 - 1], np.int32)
    with pytest.raises(LucioleError, match="are allowed where the shape is computed"):
        run_reference(cls, [np.ones((1, 2, 2, 1), np.float32), size])


def test_resize_bilinear_refuses_two_places_at_once() -> None:
    operands = [np.ones((1, 2, 2, 1), np.float32), np.array([4, 4], np.int32)]
    given = {"align_corners": True, "half_pixel_centers": True}
    with pytest.raises(LucioleError, match="are set, only one of them can be"):
        run_reference(ResizeBilinear, operands, (1,), **given)
