"""BCQ_GATHER against a matrix put together number by number: no other runtime computes it (luci has
no kernel, the onert wheel none for "BCQGather").
"""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Array, Graph, ShapeError, TensorType
from luciole.ir.ops.bcq_gather import BCQGather
from tests.ops.bcq_support import Clusters, packed, random_layer, weights_of
from tests.support import run_reference


def operands(clusters: Clusters, indices: Array, hidden: int = 64) -> tuple[list[Array], Array]:
    """Random codes as operands, and the matrix behind them."""
    layer = random_layer(hidden, clusters)
    pairs = np.array(clusters, np.int32).reshape(-1, 2)
    return [layer.scales, packed(layer.signs), indices, pairs], np.array(weights_of(layer))


@pytest.mark.parametrize(
    "clusters", [[(1, 5)], [(3, 7)], [(2, 3), (1, 5), (4, 2)], [(9, 0), (1, 5)]]
)
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("indices", [3, [1, 2], [[0, 4, 4], [3, 0, 1]], []])
def test_rows_and_columns_are_picked(
    clusters: Clusters, axis: int, dtype: type, indices: list[int]
) -> None:
    given, matrix = operands(clusters, np.array(indices, dtype))
    (ours,) = run_reference(BCQGather, given, (3,), axis=axis, input_hidden_size=64)
    wanted = np.take(matrix, np.array(indices, dtype), axis=axis)
    np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-6)


def test_a_cluster_without_rows_may_claim_any_number_of_bits() -> None:
    given, matrix = operands([(1, 3)], np.array([2], np.int32))
    given[3] = np.array([[2**31 - 1, 0], [1, 3]], np.int32)
    (ours,) = run_reference(BCQGather, given, axis=0, input_hidden_size=64)
    np.testing.assert_allclose(ours, matrix[2:], rtol=0, atol=1e-6)


def test_bcq_gather_keeps_unknown_dimensions() -> None:
    graph = Graph()
    names = {"scales": (None,), "binary": (None, None), "indices": (None, 3), "clusters": (None, 2)}
    values = [graph.add_input(name, shape) for name, shape in names.items()]
    for value in values[1:]:
        value.dtype = TensorType.INT32
    for axis, shape in ((0, (None, 3, 64)), (1, (None, None, 3))):
        op = BCQGather.from_operands(values, {"input_hidden_size": 64, "axis": axis})
        assert op.infer_shape() == shape


@pytest.mark.parametrize(
    ("axis", "index", "message"),
    [
        (0, 5, "index 5 is out of range: axis 0 has 5 elements"),
        (0, -1, "index -1 is out of range"),
        (1, 64, "index 64 is out of range: axis 1 has 64 elements"),
        (2, 0, "axis is 2, the tensor has 2 axes"),
    ],
)
def test_bcq_gather_refuses_places_outside(axis: int, index: int, message: str) -> None:
    given, _ = operands([(2, 5)], np.array([0, index], np.int32))
    with pytest.raises(ShapeError, match=message):
        run_reference(BCQGather, given, (3,), axis=axis, input_hidden_size=64)


@pytest.mark.parametrize("constant", [(3,), ()])
def test_bcq_gather_refuses_clusters_that_do_not_fit(constant: tuple[int, ...]) -> None:
    given, _ = operands([(2, 5)], np.array([0], np.int32))
    given[3] = np.array([[2, 6]], np.int32)
    with pytest.raises(
        ShapeError, match="the clusters take 12 rows of planes, weights_binary has 10"
    ):
        run_reference(BCQGather, given, constant, input_hidden_size=64)


@pytest.mark.parametrize("hidden", [0, -32, 33])
def test_bcq_gather_refuses_rows_that_are_not_whole_words(hidden: int) -> None:
    given, _ = operands([(2, 5)], np.array([0], np.int32))
    with pytest.raises(ShapeError, match=f"input_hidden_size is {hidden}, a row must be one or"):
        run_reference(BCQGather, given, (3,), input_hidden_size=hidden)


@pytest.mark.parametrize(
    ("slot", "array", "message"),
    [
        (0, np.ones(9, np.float32), "rows of planes: input_binary has 10, input_scales has 9"),
        (1, np.ones((10, 1), np.int32), "words: input_binary has 1, input_hidden_size 64 has 2"),
        (2, np.zeros((1, 1, 1), np.int32), r"indices has shape \[1,1,1\], rank 0 or 1 or 2 is"),
    ],
)
def test_bcq_gather_refuses_operands_that_do_not_fit(slot: int, array: Array, message: str) -> None:
    given, _ = operands([(2, 5)], np.array([0], np.int32))
    given[slot] = array
    with pytest.raises(ShapeError, match=message):
        run_reference(BCQGather, given, (3,), input_hidden_size=64)
