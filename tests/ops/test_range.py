"""RANGE against LiteRT."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, ShapeError
from luciole.ir.ops.range import Range
from luciole.kernels.core.errors import ExecutionError
from tests.support import run_litert, run_reference


def triple(dtype: DTypeLike, *numbers: float) -> list[Array]:
    return [np.array(n, dtype) for n in numbers]


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize("constant", [(), (0, 1, 2)])
@pytest.mark.parametrize("numbers", [(0, 10, 3), (10, 0, -3), (0, 9, 3), (0, 1, 7), (-5, 5, 1)])
def test_ranges_are_those_of_litert(
    dtype: DTypeLike, constant: tuple[int, ...], numbers: tuple[int, ...]
) -> None:
    arrays = triple(dtype, *numbers)
    ours, theirs = (run(Range, arrays, constant)[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("numbers", [(0, 1, 0.1), (1, 0.05, -0.1), (0, 100, 0.3), (0, 1e-3, 1e-5)])
def test_rounding_errors_are_those_of_litert(numbers: tuple[float, ...]) -> None:
    arrays = triple(np.float32, *numbers)
    ours, theirs = run_reference(Range, arrays)[0], run_litert(Range, arrays)[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("delta", [1, -1])
def test_a_range_may_be_empty(delta: int) -> None:
    assert run_reference(Range, triple(np.int32, 5, 5, delta), (0, 1, 2))[0].shape == (0,)


def test_the_far_ends_of_integers() -> None:
    ours = run_reference(Range, triple(np.int32, -(2**31), 2**31 - 1, 2**30))[0]
    np.testing.assert_array_equal(ours, [-(2**31), -(2**30), 0, 2**30])


def test_a_computed_range_has_an_unknown_extent() -> None:
    graph = Graph()
    start, delta = (graph.add_constant(n, np.array(1, np.float32)) for n in "ad")
    assert Range(start, graph.add_input("l", ()), delta).result_shapes() == ((None,),)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((3, 0, 1), "the limit 0.* is never reached from 3.* in steps of 1"),
        ((0, 3, -1), "never reached"),
        ((0, 3, 0), "never reached"),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("constant", [(), (0, 1, 2)])
def test_range_refuses_a_limit_that_is_never_reached(
    numbers: tuple[int, ...], message: str, dtype: DTypeLike, constant: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(Range, triple(dtype, *numbers), constant)


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ((np.nan, 1, 1), "never reached"),
        ((0, np.inf, 1), "the limit inf is inf steps of 1.0 from 0.0"),
        ((np.inf, np.inf, 1), "is nan steps"),
        ((0, 1, np.nan), "never reached"),
        ((0, 3e38, 1e-30), "is inf steps"),
    ],
)
def test_range_refuses_to_go_on_forever(numbers: tuple[float, ...], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(Range, triple(np.float32, *numbers))


def test_range_refuses_an_absurd_size() -> None:
    for arrays in (triple(np.float32, 0, 3e38, 1), triple(np.int64, -(2**63), 2**63 - 1, 1)):
        with pytest.raises(ExecutionError, match="bytes, 4294967296 are allowed"):
            run_reference(Range, arrays)


def test_range_refuses_vectors() -> None:
    one = np.array(1, np.int32)
    with pytest.raises(ShapeError, match="elements: limit has 2, a range has 1"):
        run_reference(Range, [one, np.ones(2, np.int32), one])
