"""MediaPipe's operators: as TFLite's XNNPACK computes them, which knows their codes."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import Array, Op, ShapeError, UnknownOp, UnsupportedError
from luciole.ir.op import FileOptions
from luciole.ir.ops.mediapipe import (
    Convolution2DTransposeBias,
    MaxPoolingWithArgmax2D,
    MaxUnpooling2D,
    StructPadding,
)
from tests.native_support import check_compiled
from tests.ops.pool_support import SAME, VALID, pool
from tests.support import litert, one_op, run_reference


def theirs(
    cls: type[Op], operands: list[Array], constant: tuple[int, ...] = (), **attributes: Any
) -> tuple[Array, ...]:
    """LiteRT's results by its default kernels."""
    content = to_bytes(one_op(cls, operands, constant, **attributes), "tflite")
    return litert(content, [a for i, a in enumerate(operands) if i not in constant], "BUILTIN")


def image(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    ("shape", "size", "padding"),
    [
        ((1, 4, 6, 2), (3, 2), VALID),
        ((2, 5, 5, 3), (2, 2), VALID),
        ((1, 5, 5, 2), (2, 2), SAME),
        ((1, 4, 7, 2), (3, 3), SAME),
    ],
)
def test_pools_and_places_are_those_of_litert(
    shape: tuple[int, ...], size: tuple[int, int], padding: StructPadding
) -> None:
    x = image(*shape)
    options = pool(*size, padding)
    ours = run_reference(MaxPoolingWithArgmax2D, [x], **options)
    for a, b in zip(ours, theirs(MaxPoolingWithArgmax2D, [x], **options), strict=True):
        np.testing.assert_array_equal(a.view(np.uint32), b.view(np.uint32))
    options = pool(*size)
    (back,) = run_reference(MaxUnpooling2D, list(ours), **options)
    np.testing.assert_array_equal(back, theirs(MaxUnpooling2D, list(ours), **options)[0])
    check_compiled(MaxUnpooling2D, list(ours), **options)


@pytest.mark.parametrize("padding", [SAME, VALID])
@pytest.mark.parametrize("channels", [1, 19])
def test_compiled_pools_equal_the_reference(channels: int, padding: StructPadding) -> None:
    x = image(2, 9, 11, channels).round(1)  # some are equal
    x[0, 0, :2], x[1, :3, 4] = np.nan, np.inf
    check_compiled(MaxPoolingWithArgmax2D, [x], **pool(3, 2, padding))


def test_of_equal_elements_the_first_counts() -> None:
    x = np.ones((1, 4, 4, 2), np.float32)
    (_, places), (_, wanted) = (
        compute(MaxPoolingWithArgmax2D, [x], **pool(2, 2)) for compute in (run_reference, theirs)
    )
    np.testing.assert_array_equal(places, wanted)


@pytest.mark.parametrize("padding", [SAME, VALID])
@pytest.mark.parametrize("kernel", [2, 3])
def test_transposed_convolutions_are_those_of_litert(kernel: int, padding: StructPadding) -> None:
    arrays = [image(1, 4, 6, 2), image(3, kernel, kernel, 2), image(3)]
    options = {"padding": padding, "stride_width": 2, "stride_height": 2}
    (ours,) = run_reference(Convolution2DTransposeBias, arrays, (1, 2), **options)
    (wanted,) = theirs(Convolution2DTransposeBias, arrays, (1, 2), **options)
    np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-5, strict=True)
    check_compiled(Convolution2DTransposeBias, arrays, (1, 2), 1e-5, 1e-5, **options)


def test_options_are_a_struct_whose_rest_is_kept() -> None:
    model = one_op(MaxPoolingWithArgmax2D, [image(1, 4, 4, 1)], **pool(2, 2))
    (op,) = model.graph.ops
    op.file_options = FileOptions(struct.pack("<8i", 2, 2, 2, 2, 2, 0, 7, 8), op.attributes())
    content = to_bytes(model)
    again = from_bytes(content)
    (read,) = again.graph.ops
    assert isinstance(read, MaxPoolingWithArgmax2D)
    assert read.attributes() == op.attributes()
    assert to_bytes(again) == content
    read.filter_height = read.stride_height = 4
    (changed,) = from_bytes(to_bytes(again)).graph.ops
    assert changed.file_options is not None
    assert changed.file_options.raw == struct.pack("<8i", 2, 2, 4, 2, 4, 0, 7, 8)


@pytest.mark.parametrize("raw", [b"\1\0\0\0", struct.pack("<6i", 9, 2, 2, 2, 2, 0)])
def test_loading_keeps_options_that_mean_nothing(raw: bytes) -> None:
    model = one_op(MaxPoolingWithArgmax2D, [image(1, 4, 4, 1)], **pool(2, 2))
    (op,) = model.graph.ops
    op.file_options = FileOptions(raw, op.attributes())
    assert isinstance(from_bytes(to_bytes(model)).graph.ops[0], UnknownOp)


def test_a_place_outside_of_the_window_is_nowhere() -> None:
    places = np.array([4, 2, 2**32 - 1, 0], np.uint32).view(np.float32).reshape(1, 2, 2, 1)
    x = np.array([5, 6, 7, 8], np.float32).reshape(1, 2, 2, 1)
    (result,) = run_reference(MaxUnpooling2D, [x, places], **pool(2, 2))
    assert result.sum() == 6 + 8
    check_compiled(MaxUnpooling2D, [x, places], **pool(2, 2))


def test_max_unpooling_refuses_padding() -> None:
    with pytest.raises(UnsupportedError, match="the padding is SAME, VALID is possible"):
        run_reference(MaxUnpooling2D, [image(1, 2, 2, 1)] * 2, **pool(2, 2, SAME))


def test_pools_refuse_windows_that_overlap() -> None:
    with pytest.raises(UnsupportedError, match=r"windows are \[2, 2\], strides \[2, 1\]"):
        one_op(MaxPoolingWithArgmax2D, [image(1, 4, 4, 1)], **pool(2, 2) | {"stride_width": 1})


def test_transposed_convolution_refuses_no_stride() -> None:
    arrays = [image(1, 2, 2, 1), image(1, 2, 2, 1), image(1)]
    with pytest.raises(ShapeError, match="stride is 0"):
        one_op(Convolution2DTransposeBias, arrays, padding=SAME)
