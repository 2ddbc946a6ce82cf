"""BROADCAST_TO and BROADCAST_ARGS against LiteRT."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, ShapeError, TensorType
from luciole.ir.ops.broadcast import BroadcastArgs, BroadcastTo, stretched
from luciole.kernels.core.errors import ExecutionError
from tests.native_support import check_compiled, declines_computed
from tests.support import run_litert, run_reference

pairs = pytest.mark.parametrize(
    ("shape", "wanted"),
    [((3, 1, 4), (2, 3, 5, 4)), ((), (2, 3)), ((3,), (3,)), ((1, 37), (19, 37)), ((5, 1), (5, 33))],
)


def numbers(shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    return np.random.default_rng(0).integers(0, 100, shape).astype(dtype)


@pairs
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int16, np.uint8, np.bool_])
def test_stretched_tensors_are_those_of_litert(
    shape: tuple[int, ...], wanted: tuple[int, ...], dtype: DTypeLike
) -> None:
    arrays = [numbers(shape, dtype), np.array(wanted, np.int32)]
    ours = run_reference(BroadcastTo, arrays, (1,))[0]
    theirs = run_litert(BroadcastTo, arrays, (1,))[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)
    check_compiled(BroadcastTo, arrays, (1,))
    assert declines_computed(BroadcastTo, arrays, (1,), 1)


def test_nothing_is_stretched_to_nothing() -> None:
    arrays: list[Array] = [np.ones((1, 3), np.float32), np.array([0, 3], np.int64)]
    assert run_reference(BroadcastTo, arrays)[0].shape == (0, 3)
    check_compiled(BroadcastTo, arrays, (1,))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("constant", [(), (0, 1)])
@pytest.mark.parametrize(("a", "b"), [([2, 1, 3], [4, 1]), ([5], [1]), ([2, 3], [2, 3])])
def test_common_shapes_are_those_of_litert(
    dtype: DTypeLike, constant: tuple[int, ...], a: list[int], b: list[int]
) -> None:
    pair = [np.array(a, dtype), np.array(b, dtype)]
    ours, theirs = (run(BroadcastArgs, pair, constant)[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)


def test_computed_extents_are_unknown() -> None:
    assert stretched((None, 3), (2, 4, 3)) == (2, 4, 3)
    graph = Graph()
    shape = graph.add_input("s", (3,), TensorType.INT32)
    assert BroadcastTo(graph.add_input("x", (2,)), shape).result_shapes() == ((None, None, None),)
    assert BroadcastArgs(shape, shape).result_shapes() == ((3,),)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ([3, 3], r"\[2,3\] does not stretch to \[3,3\]"),
        ([3], r"\[2,3\] does not stretch to \[3\]"),
        ([-1, 3], r"shape is \[-1, 3\], nothing below 0 is possible"),
    ],
)
@pytest.mark.parametrize("constant", [(), (1,)])
def test_broadcast_to_refuses_shapes_that_do_not_fit(
    wanted: list[int], message: str, constant: tuple[int, ...]
) -> None:
    arrays: list[Array] = [np.ones((2, 3), np.float32), np.array(wanted, np.int32)]
    if constant or len(wanted) > 1:
        with pytest.raises(ShapeError, match=message):
            run_reference(BroadcastTo, arrays, constant)
    else:  # the rank alone tells
        with pytest.raises(ShapeError, match=r"does not stretch to \[\?\]"):
            run_reference(BroadcastTo, arrays, constant)


def test_broadcast_to_refuses_an_absurd_size() -> None:
    arrays: list[Array] = [np.ones(1, np.float32), np.array([2**40, 2**40], np.int64)]
    with pytest.raises(ExecutionError, match="bytes, 4294967296 are allowed"):
        run_reference(BroadcastTo, arrays)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [([2, 3], [4], r"\[2,3\] and \[4\] do not broadcast"), ([-1], [1], r"s0 is \[-1\]")],
)
def test_broadcast_args_refuses_shapes_that_do_not_fit(
    a: list[int], b: list[int], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(BroadcastArgs, [np.array(a, np.int32), np.array(b, np.int32)])


def test_broadcast_args_refuses_two_types_and_other_ranks() -> None:
    graph = Graph()
    a, b = graph.add_input("a", (2,), TensorType.INT32), graph.add_input("b", (), TensorType.INT64)
    assert list(BroadcastArgs(a, b).verify()) == [
        "s0 is INT32 and s1 is INT64; both must have one type"
    ]
    with pytest.raises(ShapeError, match=r"s1 has shape \[\], rank 1 is needed"):
        BroadcastArgs(a, b).result_shapes()
