"""STABLEHLO_GATHER against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, Graph, ShapeError, TensorType
from luciole.ir.ops.stablehlo_gather import StablehloGather
from tests.litert_support import check_same, counted, ints
from tests.support import one_op, run_reference

X = counted(3, 4, 2)


def numbers(offset: Any, collapsed: Any, start: Any, vector: int, sizes: Any) -> dict[str, Any]:
    return {
        "offset_dims": offset,
        "collapsed_slice_dims": collapsed,
        "start_index_map": start,
        "index_vector_dim": vector,
        "slice_sizes": sizes,
    }


SPECIFIED = numbers((2, 3), (0,), (1, 0), 2, (1, 2, 2))
"""The example of StableHLO's specification."""

CASES = [
    (ints([[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [0, 9]]), SPECIFIED),
    (ints([[-5, 0], [1, -1], [2, 1]]), SPECIFIED),
    (ints([0, 2], [1, 1]), numbers((0, 1), (0,), (0, 2), 1, (1, 4, 1))),
    (ints([0, 2, 1], [1, 1, 0]), numbers((1, 2), (0,), (1, 0), 0, (1, 2, 2))),
    (ints([0, 2, 1], [1, 1, 0]), numbers((0, 1, 3), (), (1, 2), 0, (3, 2, 1))),
]


@pytest.mark.parametrize(("indices", "attributes"), CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int32, np.int64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_slices_are_those_of_litert(
    indices: Array, attributes: dict[str, Any], dtype: Any, index: Any
) -> None:
    given = [X.astype(dtype), indices.astype(index)]
    check_same(StablehloGather, given, resolver="AUTO", **attributes)


def test_the_specifications_example() -> None:
    x = counted(3, 4, 2, dtype=np.int32)
    indices = ints([[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [0, 2]])
    (found,) = run_reference(StablehloGather, [x, indices], **SPECIFIED)
    wanted = [
        [[[1, 2], [3, 4]], [[3, 4], [5, 6]], [[13, 14], [15, 16]]],
        [[[9, 10], [11, 12]], [[11, 12], [13, 14]], [[17, 18], [19, 20]]],
    ]
    np.testing.assert_array_equal(found, wanted)


def test_indices_alone_are_vectors_of_one() -> None:
    """LiteRT's process ends by a segmentation fault."""
    attributes = numbers((1,), (0, 2), (0,), 1, (1, 4, 1))
    (found,) = run_reference(StablehloGather, [X, ints(2, 0, 1)], **attributes)
    np.testing.assert_array_equal(found, X[[2, 0, 1], :, 0])


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    x = graph.add_input("x", (None, 4, 2))
    indices = graph.add_input("i", (None, 5, 2), TensorType.INT32)
    assert StablehloGather(x, indices, **SPECIFIED).infer_shape() == (None, 5, 2, 2)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"slice_sizes": (1, 2)}, "slice_sizes are for 2 axes, input has 3"),
        ({"slice_sizes": (1, 5, 2)}, "a slice of 5 elements does not fit into 4"),
        ({"slice_sizes": (1, -1, 2)}, "a slice of -1 elements"),
        ({"slice_sizes": (2, 2, 2)}, r"is \[2, 2, 2\], a collapsed axis is not 1"),
        ({"collapsed_slice_dims": (3,)}, r"collapsed_slice_dims is \[3\]: axes of an input of r"),
        ({"start_index_map": (0, 0)}, r"start_index_map is \[0, 0\]: axes of"),
        ({"start_index_map": (0,)}, "start_index_map has 1 axes, a vector 2"),
        ({"offset_dims": (2, 4)}, r"offset_dims is \[2, 4\], 2 of 4 are needed"),
        ({"index_vector_dim": 4}, "index_vector_dim is 4, start_indices has 3 axes"),
    ],
)
def test_stablehlo_gather_refuses_numbers_that_do_not_fit(
    changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        one_op(StablehloGather, [X, CASES[0][0]], **(SPECIFIED | changed))
