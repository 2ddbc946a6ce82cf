"""ADD_N against LiteRT."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Graph, ShapeError, TensorType
from luciole.ir.ops.add_n import AddN
from tests.support import run_litert, run_reference


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_sums_are_those_of_litert(dtype: DTypeLike, count: int) -> None:
    rng = np.random.default_rng(count)
    inputs = [rng.normal(0, 1e4, (2, 1, 5)).astype(dtype) for _ in range(count)]
    ours, theirs = run_reference(AddN, inputs)[0], run_litert(AddN, inputs)[0]
    np.testing.assert_array_equal(ours, theirs, strict=True)


def test_a_single_one_is_copied() -> None:  # LiteRT: num_inputs >= 2 was not true
    x = np.array([2**40, -1], np.int64)
    y = run_reference(AddN, [x])[0]
    np.testing.assert_array_equal(y, x, strict=True)
    assert not np.shares_memory(x, y)


def test_unknown_extents_are_found_elsewhere() -> None:
    graph = Graph()
    op = AddN((graph.add_input("a", (None, 3)), graph.add_input("b", (2, None))))
    assert op.result_shapes() == ((2, 3),)


def test_add_n_refuses_shapes_that_differ() -> None:
    pair = [np.ones((2, 3), np.float32), np.ones((2, 1), np.float32)]
    with pytest.raises(ShapeError, match="axis 1 of the inputs has 3, 1 elements"):
        run_reference(AddN, pair)


def test_add_n_refuses_no_input_and_two_types() -> None:
    graph = Graph()
    with pytest.raises(ShapeError, match="there is no input"):
        AddN(()).result_shapes()
    op = AddN((graph.add_input("a", (2,)), graph.add_input("b", (2,), TensorType.INT32)))
    assert list(op.verify()) == ["the inputs are FLOAT32 and INT32; all must have one type"]
