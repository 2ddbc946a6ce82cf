"""MIRROR_PAD against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, ShapeError
from luciole.ir.ops.mirror_pad import MirrorPad
from luciole.schema.enums import MirrorPadMode
from tests.litert_support import check_same, counted, ints
from tests.native_support import check_compiled, declines_computed
from tests.support import run_reference

X = counted(2, 3, 4)
PADDINGS = [
    [[0, 0], [0, 0], [0, 0]],
    [[1, 0], [0, 2], [3, 1]],
    [[1, 1], [2, 2], [3, 3]],
]
every_mode = pytest.mark.parametrize("mode", MirrorPadMode)


def arrays(x: Array, paddings: object) -> list[Array]:
    return [x, np.array(paddings, np.int32)]


@every_mode
@pytest.mark.parametrize("paddings", PADDINGS)
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int8, np.int32, np.int64])
@pytest.mark.parametrize("constant", [(1,), ()])
def test_borders_are_those_of_litert(
    mode: MirrorPadMode, paddings: object, dtype: DTypeLike, constant: tuple[int, ...]
) -> None:
    check_same(MirrorPad, arrays(X.astype(dtype), paddings), constant, mode=mode)


@every_mode
@pytest.mark.parametrize("paddings", PADDINGS)
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.int64])
def test_the_compiled_moves_are_the_reference(
    mode: MirrorPadMode, paddings: object, dtype: DTypeLike
) -> None:
    check_compiled(MirrorPad, arrays(X.astype(dtype), paddings), (1,), mode=mode)


def test_symmetric_borders_may_be_as_wide_as_the_tensor() -> None:
    given = arrays(X, [[2, 2], [3, 3], [4, 4]])
    (y,) = check_same(MirrorPad, given, (1,), mode=MirrorPadMode.SYMMETRIC)
    np.testing.assert_array_equal(y, np.pad(X, given[1], "symmetric"))
    check_compiled(MirrorPad, given, (1,), mode=MirrorPadMode.SYMMETRIC)


def test_computed_paddings_are_left_to_the_reference() -> None:
    assert declines_computed(MirrorPad, arrays(X, PADDINGS[1]), (1,), 1)


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    x, computed = graph.add_input("x", (None, 3)), graph.add_input("paddings", (2, 2))
    constant = graph.add_constant("constant", ints([1, 1], [0, 2]))
    assert MirrorPad(x, constant).infer_shape() == (None, 5)
    assert MirrorPad(x, computed).infer_shape() == (None, None)


@pytest.mark.parametrize(
    ("paddings", "mode", "message"),
    [
        ([[0, 0], [0, 3], [0, 0]], MirrorPadMode.REFLECT, "axis 1 has 3 elements, a mirror of 3"),
        ([[3, 0], [0, 0], [0, 0]], MirrorPadMode.SYMMETRIC, "axis 0 has 2 elements, a mirror of 3"),
        ([[0, 0], [0, -1], [0, 0]], MirrorPadMode.REFLECT, "nothing below 0 is possible"),
        ([[0, 0]], MirrorPadMode.REFLECT, "axes: paddings has 1, input has 3"),
    ],
)
@pytest.mark.parametrize("constant", [(1,), ()])
def test_mirror_pad_refuses_borders_that_are_too_wide(
    paddings: object, mode: MirrorPadMode, message: str, constant: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(MirrorPad, arrays(X, paddings), constant, mode=mode)


def test_mirror_pad_refuses_to_mirror_nothing() -> None:
    given = arrays(np.zeros((0, 2), np.float32), [[1, 0], [0, 0]])
    with pytest.raises(ShapeError, match="axis 0 has 0 elements, a mirror of 1 is too wide"):
        run_reference(MirrorPad, given)
