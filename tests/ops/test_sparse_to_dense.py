"""SPARSE_TO_DENSE against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.ir import Array, Graph, LucioleError, ShapeError
from luciole.ir.ops.sparse_to_dense import SparseToDense
from tests.litert_support import check_same, ints
from tests.support import run_reference


def operands(
    indices: object, shape: list[int], values: object, dtype: DTypeLike = np.float32
) -> list[Array]:
    """With 9 where no value is."""
    tensors = [np.array(indices, np.int32), ints(*shape)]
    return [*tensors, np.array(values, dtype), np.array(9, dtype)]


CASES: list[tuple[object, list[int], object]] = [
    ([[0, 1], [2, 2]], [3, 3], [5, 6]),
    ([[0, 1], [2, 2]], [3, 3], 5),
    ([2, 0], [4], [5, 6]),
    (3, [4], 5),
    ([[0, 1, 0, 1]], [1, 2, 3, 2], [5]),
    ([1, 1], [3], [5, 6]),
]


@pytest.mark.parametrize(("indices", "shape", "values"), CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.int32, np.int64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("constant", [(1,), ()])
def test_tensors_are_those_of_litert(
    indices: object,
    shape: list[int],
    values: object,
    dtype: DTypeLike,
    index: DTypeLike,
    constant: tuple[int, ...],
) -> None:
    given = operands(indices, shape, values, dtype)
    given[:2] = [a.astype(index) for a in given[:2]]
    check_same(SparseToDense, given, constant, validate_indices=True)


# LiteRT takes no more than four axes.
def test_there_may_be_many_axes() -> None:
    (y,) = run_reference(SparseToDense, operands([[0, 1, 0, 1, 0]], [2] * 5, [5]))
    assert y.shape == (2,) * 5
    assert np.argwhere(y == 5).tolist() == [[0, 1, 0, 1, 0]]


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    indices, values = graph.add_input("indices", (None, 2)), graph.add_input("values", (None,))
    default = graph.add_input("default", ())
    computed, constant = graph.add_input("c", (2,)), graph.add_constant("shape", ints(3, 4))
    assert SparseToDense(indices, computed, values, default).infer_shape() == (None, None)
    assert SparseToDense(indices, constant, values, default).infer_shape() == (3, 4)


@pytest.mark.parametrize("place", [[3, 0], [0, -1], [-1, 2], [0, 4]])
def test_sparse_to_dense_refuses_indices_out_of_range(place: list[int]) -> None:
    with pytest.raises(ShapeError, match=r"is out of range: axis . of the result has . elements"):
        run_reference(SparseToDense, operands([[0, 0], place], [3, 4], [5, 6]))


@pytest.mark.parametrize(
    ("indices", "shape", "values", "message"),
    [
        ([[0, 0]], [3], [5], "coordinates: indices has 2, output_shape has 1"),
        ([0, 1], [3, 3], [5, 5], "coordinates: indices has 1, output_shape has 2"),
        ([0, 1], [3], [5, 5, 5], "elements: values has 3, indices has 2"),
        ([[[0]]], [3], [5], r"indices is \[1,1,1\] and values \[1\], at most rows"),
        ([0], [-3], [5], r"output_shape is \[-3\], nothing below 0 is possible"),
    ],
)
@pytest.mark.parametrize("constant", [(1,), ()])
def test_sparse_to_dense_refuses_operands_that_do_not_fit(
    indices: object, shape: list[int], values: object, message: str, constant: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError, match=message):
        run_reference(SparseToDense, operands(indices, shape, values), constant)


def test_sparse_to_dense_refuses_several_defaults() -> None:
    given = [*operands([0], [3], [5])[:3], np.zeros(2, np.float32)]
    with pytest.raises(ShapeError, match="elements: default_value has 2, a default has 1"):
        run_reference(SparseToDense, given)


def test_sparse_to_dense_refuses_absurd_computed_sizes() -> None:
    with pytest.raises(LucioleError, match="would take 8589934588 bytes"):
        run_reference(SparseToDense, operands([0], [2**31 - 1], [5]))
