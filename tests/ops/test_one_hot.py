"""ONE_HOT against LiteRT."""

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, ShapeError, TensorType
from luciole.ir.ops.one_hot import OneHot
from luciole.kernels.core.errors import ExecutionError
from tests.support import run_litert, run_reference

INDICES = np.array([[0, 2], [-1, 5], [1, 3]])


def operands(dtype: DTypeLike, depth: int = 3, index: DTypeLike = np.int32) -> list[Array]:
    values = [np.array(n).astype(dtype) for n in (1, 0)]
    return [INDICES.astype(index), np.array(depth, np.int32), *values]


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, np.int8, np.uint8, np.bool_])
@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
@pytest.mark.parametrize("constant", [(1,), ()])
def test_vectors_are_those_of_litert(
    dtype: DTypeLike, axis: int, constant: tuple[int, ...]
) -> None:
    for index in (np.int32, np.int64):
        arrays = operands(dtype, 4, index)
        ours, theirs = (
            run(OneHot, arrays, constant, axis=axis)[0] for run in (run_reference, run_litert)
        )
        np.testing.assert_array_equal(ours, theirs, strict=True)


def test_other_values_and_a_single_index_are_those_of_litert() -> None:
    arrays: list[Array] = [np.array(n) for n in (np.int32(2), np.int32(3))]
    arrays += [np.array(n, np.float32) for n in (2.5, -1)]
    ours, theirs = (run(OneHot, arrays, axis=-1)[0] for run in (run_reference, run_litert))
    np.testing.assert_array_equal(ours, theirs, strict=True)


def test_no_depth_and_no_indices() -> None:
    assert run_reference(OneHot, operands(np.float32, 0), axis=1)[0].shape == (3, 0, 2)
    arrays = operands(np.float32, 2**31 - 1)
    arrays[0] = arrays[0][:0]
    assert run_reference(OneHot, arrays, axis=-1)[0].shape == (0, 2, 2**31 - 1)


def test_unknown_extents_stay_unknown() -> None:
    graph = Graph()
    indices = graph.add_input("i", (None, 2), TensorType.INT32)
    on, off = graph.add_input("a", ()), graph.add_input("b", ())
    depth = graph.add_constant("d", np.array(5, np.int32))
    assert OneHot(indices, depth, on, off, axis=1).result_shapes() == ((None, 5, 2),)
    computed = graph.add_input("e", (), TensorType.INT32)
    assert OneHot(indices, computed, on, off, axis=-1).result_shapes() == ((None, 2, None),)


@pytest.mark.parametrize("constant", [(1,), ()])
def test_one_hot_refuses_a_negative_depth(constant: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="depth is -1, it must be at least 0"):
        run_reference(OneHot, operands(np.float32, -1), constant)


def test_one_hot_refuses_axes_outside() -> None:
    with pytest.raises(ShapeError, match="axis is 3, the tensor has 3 axes"):
        run_reference(OneHot, operands(np.float32), axis=3)


def test_one_hot_refuses_several_values() -> None:
    arrays = operands(np.float32)
    arrays[3] = np.ones(2, np.float32)
    with pytest.raises(ShapeError, match="elements: off_value has 2, a vector's element has 1"):
        run_reference(OneHot, arrays)


def test_one_hot_refuses_two_types_in_verify() -> None:
    graph = Graph()
    indices, depth = (graph.add_input(n, (), TensorType.INT32) for n in "id")
    op = OneHot(indices, depth, graph.add_input("on", ()), graph.add_input("off", (), depth.dtype))
    assert list(op.verify()) == [
        "on_value is FLOAT32 and off_value is INT32; both must have one type"
    ]


def test_one_hot_refuses_an_absurd_depth() -> None:
    with pytest.raises(ExecutionError, match="bytes, 4294967296 are allowed"):
        run_reference(OneHot, operands(np.float32, 2**31 - 1), axis=-1)
