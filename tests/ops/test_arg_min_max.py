"""ARG_MAX and ARG_MIN against LiteRT."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, ShapeError, TensorType
from luciole.ir.ops.arg_min_max import ArgMax, ArgMin, Extremum
from tests.support import run_litert, run_reference

INT32, INT64 = TensorType.INT32, TensorType.INT64

both = pytest.mark.parametrize("cls", [ArgMax, ArgMin])


def compare(cls: type[Extremum], x: Array, axis: Array, output_type: TensorType = INT32) -> None:
    ours, theirs = (
        run(cls, [x, axis], (1,), output_type=output_type)[0] for run in (run_reference, run_litert)
    )
    np.testing.assert_array_equal(ours, theirs, strict=True)


@both
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int8, np.uint8, np.bool_])
@pytest.mark.parametrize("axis", [0, 1, -1, -3])
def test_places_are_those_of_litert(cls: type[Extremum], dtype: DTypeLike, axis: int) -> None:
    x = np.random.default_rng(3).integers(0, 4, (3, 5, 19)).astype(dtype)  # many are equal
    compare(cls, x, np.array(axis, np.int32))
    compare(cls, x, np.array([axis], np.int64), INT64)


@both
@pytest.mark.parametrize("axis", [0, 1])
def test_nan_is_skipped_like_in_litert(cls: type[Extremum], axis: int) -> None:
    nan, inf = np.nan, np.inf
    x = np.array(
        [
            [nan, 1, 2],
            [1, nan, 2],
            [-inf, nan, -inf],
            [nan, nan, nan],
            [inf, nan, inf],
            [3, 1, nan],
        ],
        np.float32,
    )
    compare(cls, np.ascontiguousarray(x if axis else x.T), np.array(axis, np.int32))


@both
@pytest.mark.parametrize("dtype", [np.int16, np.int64])
def test_other_integers_are_those_of_numpy(cls: type[Extremum], dtype: DTypeLike) -> None:
    limits = np.iinfo(np.dtype(dtype).name)
    x = np.array([[3, limits.min, limits.max], [limits.max, 0, limits.min]], dtype)
    wanted = [2, 0] if cls is ArgMax else [1, 2]
    ours = run_reference(cls, [x, np.array(1, np.int32)], output_type=INT64)[0]
    np.testing.assert_array_equal(ours, wanted)


def test_unknown_axes_and_extents() -> None:
    graph = Graph()
    x, axis = graph.add_input("x", (None, 3, 4)), graph.add_constant("a", np.array(1, np.int32))
    op = ArgMax(x, axis, output_type=INT64)
    assert (op.result_shapes(), op.result_dtypes()) == (((None, 4),), (INT64,))
    computed = ArgMin(x, graph.add_input("b", (), INT32), output_type=INT32)
    assert computed.result_shapes() == ((None, None),)


@both
@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ([2], "dimension is 2, the tensor has 2 axes"),
        ([-3], "dimension is -3"),
        ([1], "axis 1 has no element, at least one is needed"),
        ([0, 1], "dimension has 2 entries, 1 are needed"),
    ],
)
@pytest.mark.parametrize("constant", [(1,), ()])
def test_places_refuses_axes_that_do_not_fit(
    cls: type[Extremum], axis: list[int], message: str, constant: tuple[int, ...]
) -> None:
    arrays: list[Array] = [np.ones((2, 0), np.float32), np.array(axis, np.int32)]
    with pytest.raises(ShapeError, match=message):
        run_reference(cls, arrays, constant, output_type=INT32)


def test_places_refuses_to_be_floats() -> None:
    with pytest.raises(ShapeError, match="output_type is FLOAT32, INT32 or INT64 is needed"):
        run_reference(ArgMax, [np.ones((2, 3), np.float32), np.array(0, np.int32)], (1,))
