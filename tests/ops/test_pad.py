"""PAD and PADV2 against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Array, Graph, LucioleError, Op, ShapeError
from luciole.ir.ops.pad import Pad, PadV2
from tests.native_support import check_compiled, declines
from tests.support import Affine, one_op, run_litert, run_reference

X = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4)
PADDINGS = [[[0, 0]] * 3, [[1, 0], [0, 2], [3, 4]], [[0, 0], [5, 5], [0, 0]]]
BOTH = pytest.mark.parametrize("cls", [Pad, PadV2])


def arrays(cls: type[Op], x: Array, paddings: object) -> list[Array]:
    """Operands of either operator; PADV2 pads with 7."""
    value = [np.array(7, x.dtype)] if cls is PadV2 else []
    return [x, np.array(paddings, np.int32), *value]


@BOTH
@pytest.mark.parametrize("paddings", PADDINGS)
@pytest.mark.parametrize("constant", [(1, 2), (2,)])
def test_pad_gives_what_litert_gives(
    cls: type[Op], paddings: list[list[int]], constant: tuple[int, ...]
) -> None:
    given = arrays(cls, X, paddings)
    ours, theirs = (run(cls, given, constant)[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)


@BOTH
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.bool_])
def test_pad_of_other_types_gives_what_numpy_gives(cls: type[Op], dtype: type[np.generic]) -> None:
    given = arrays(cls, X.astype(dtype), PADDINGS[1])
    (y,) = run_reference(cls, given)
    expected = np.pad(given[0], PADDINGS[1], constant_values=7 if cls is PadV2 else 0)
    np.testing.assert_array_equal(y, expected, strict=True)


@BOTH
def test_pad_of_a_scalar_is_a_copy(cls: type[Op]) -> None:
    (y,) = run_reference(cls, arrays(cls, np.array(3, np.float32), np.zeros((0, 2))))
    assert (y.shape, float(y)) == ((), 3)


@BOTH
def test_pad_keeps_unknown_dimensions(cls: type[Op]) -> None:
    graph = Graph()
    x, computed = graph.add_input("x", (None, 3)), graph.add_input("paddings", (2, 2))
    border = graph.add_constant("border", np.array([[1, 1], [0, 2]], np.int32))
    value = [graph.add_input("value", ())] if cls is PadV2 else []
    assert cls(x, border, *value).infer_shape() == (None, 5)
    assert cls(x, computed, *value).infer_shape() == (None, None)


@BOTH
@pytest.mark.parametrize("constant", [(1,), ()])
def test_pad_refuses_negative_paddings(cls: type[Op], constant: tuple[int, ...]) -> None:
    message = r"paddings is \[\[0, 0\], \[0, -1\], \[0, 0\]\], nothing below 0 is possible"
    with pytest.raises(ShapeError, match=message):
        run_reference(cls, arrays(cls, X, [[0, 0], [0, -1], [0, 0]]), constant)


@BOTH
@pytest.mark.parametrize(
    ("paddings", "message"),
    [
        ([[1, 1]], "axes: paddings has 1, input has 3"),
        ([[1], [1], [1]], "numbers per axis: paddings has 1, a padding has 2"),
        ([1, 1], r"paddings has shape \[2\], rank 2 is needed"),
    ],
)
@pytest.mark.parametrize("constant", [(1,), ()])
def test_pad_refuses_paddings_of_another_shape(
    cls: type[Op], paddings: object, message: str, constant: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=message):
        one_op(cls, arrays(cls, X, paddings), constant)


def test_pad_v2_refuses_several_values() -> None:
    given = [X, np.zeros((3, 2), np.int32), np.zeros(2, np.float32)]
    with pytest.raises(ShapeError, match="constant_values has 2, a padding value has 1"):
        one_op(PadV2, given)


@BOTH
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.float16])
def test_plain_small_numbers_are_padded_like_in_litert(
    cls: type[Op], dtype: type[np.generic]
) -> None:
    given = arrays(cls, X.astype(dtype), PADDINGS[0])
    constant = tuple(range(1, len(given)))
    ours, theirs = (run(cls, given, constant)[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize(("dtype", "point"), [(np.int8, -7), (np.uint8, 130), (np.int16, 0)])
def test_quantized_tensors_are_padded_with_their_zero_point(
    dtype: type[np.generic], point: int
) -> None:
    given = arrays(Pad, X.astype(dtype), [[1, 1], [2, 0], [0, 1]])
    grid = Affine(0.1, point)
    theirs = run_litert(Pad, given, (1,), affine=[grid], results=[grid])[0]
    ours = run_reference(Pad, given, (1,), affine=[grid], results=[grid])[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)
    assert ours.flat[0] == point
    check_compiled(Pad, given, (1,), affine=[grid], results=[grid])


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (Affine(0.1, 200), "tensor 'y0' has zero point 200, no INT8"),
        (Affine([0.1] * 4, [0] * 4, 2), "tensor 'y0' has 4 scales; one is needed"),
    ],
)
def test_pad_refuses_zero_points_that_stand_for_no_border(grid: Affine, message: str) -> None:
    given = arrays(Pad, X.astype(np.int8), PADDINGS[0])
    with pytest.raises(LucioleError, match=message):
        run_reference(Pad, given, (1,), affine=[grid], results=[grid])
    assert declines(Pad, given, (1,), affine=[grid], results=[grid])
