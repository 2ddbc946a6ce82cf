"""SELECT and SELECT_V2 against LiteRT."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, ShapeError, TensorType
from luciole.ir.ops.select import Select, SelectV2, chosen
from tests.support import run_litert, run_reference

TRUTH = np.random.default_rng(0).integers(0, 2, (4, 1, 3)) > 0
TYPES = [np.float32, np.int64, np.int32, np.int16, np.int8, np.uint8, np.uint32, np.bool_]


def numbers(dtype: DTypeLike, *shape: int) -> Array:
    return np.random.default_rng(sum(shape)).integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("condition", [TRUTH, TRUTH[:, 0, 0], TRUTH[0, 0, 0], TRUTH[:1, 0, 0]])
def test_select_gives_what_litert_gives(dtype: DTypeLike, condition: Array) -> None:
    rows = 1 if condition.shape == (1,) else 4
    arrays = [np.array(condition), numbers(dtype, rows, 1, 3), 1 - numbers(dtype, rows, 1, 3)]
    arrays[2] = arrays[2].astype(dtype)
    ours, theirs = run_reference(Select, arrays)[0], run_litert(Select, arrays)[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("t", "e"), [((4, 5, 3), (4, 5, 3)), ((5, 1), ()), ((), (1, 1, 1)), ((2, 4, 1, 1), (3,))]
)
def test_select_v2_gives_what_litert_gives(
    dtype: DTypeLike, t: tuple[int, ...], e: tuple[int, ...]
) -> None:
    arrays = [TRUTH, numbers(dtype, *t), numbers(dtype, *e)]
    ours, theirs = run_reference(SelectV2, arrays)[0], run_litert(SelectV2, arrays)[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


def test_unknown_extents_are_found_elsewhere() -> None:
    assert chosen((None,), (2, None), (None, 3)) == (2, 3)
    graph = Graph()
    condition = graph.add_input("c", (None, 1), TensorType.BOOL)
    op = SelectV2(condition, graph.add_input("t", (4,)), graph.add_input("e", ()))
    assert op.result_shapes() == ((None, 4),)


@pytest.mark.parametrize(
    ("condition", "t", "e", "message"),
    [
        ((2, 3), (2, 3), (2, 4), "axis 1 of the inputs has 3, 4 elements"),
        ((3,), (2, 3), (2, 3), "axis 0: the condition has 3, t has 2"),
        ((2, 1), (2, 3), (2, 3), "axis 1: the condition has 1, t has 3"),
        ((1,), (), (), r"the condition is \[1\], it speaks of elements \[\]"),
        ((2, 3), (2, 3, 4), (2, 3, 4), r"the condition is \[2,3\]"),
    ],
)
def test_select_refuses_shapes_that_do_not_fit(
    condition: tuple[int, ...], t: tuple[int, ...], e: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        chosen(condition, t, e)


def test_select_v2_refuses_shapes_that_do_not_stretch() -> None:
    arrays = [TRUTH, np.ones((2, 3), np.float32), np.ones((3, 3), np.float32)]
    with pytest.raises(ShapeError, match="do not broadcast"):
        run_reference(SelectV2, arrays)


def test_select_refuses_two_types_in_verify() -> None:
    graph = Graph()
    condition = graph.add_input("c", (2,), TensorType.BOOL)
    op = Select(condition, graph.add_input("t", (2,)), graph.add_input("e", (2,), TensorType.INT32))
    assert list(op.verify()) == ["t is FLOAT32 and e is INT32; both must have one type"]
