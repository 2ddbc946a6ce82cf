"""EMBEDDING_LOOKUP_SPARSE against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.ir import Array, Graph, LucioleError, ShapeError, TensorType
from luciole.ir.ops.embedding_lookup_sparse import EmbeddingLookupSparse
from luciole.schema.enums import CombinerType
from tests.litert_support import counted, ints
from tests.support import litert, one_op, run_reference

every_combiner = pytest.mark.parametrize("combiner", CombinerType)


def operands(indices: Array, dense: Array, ids: Array, *shape: int) -> list[Array]:
    weights = np.linspace(0.5, -1.5, len(ids)).astype(np.float32)
    return [ids, indices, dense, weights, counted(*shape)]


CASES = [
    operands(ints([0, 0], [0, 1], [2, 0]), ints(3, 2), ints(1, 3, 0), 4, 2, 3),
    operands(
        ints([0, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 1]), ints(2, 2, 3), ints(3, 3, 1, 0), 4, 2
    ),
    operands(ints([0], [1], [4]), ints(5), ints(1, 3, 0), 4, 2),
]


@every_combiner
@pytest.mark.parametrize("given", CASES)
@pytest.mark.parametrize("constant", [(2,), ()])
def test_sums_are_those_of_litert(
    combiner: CombinerType, given: list[Array], constant: tuple[int, ...]
) -> None:
    (ours,) = run_reference(EmbeddingLookupSparse, given, constant, combiner=combiner)
    model = one_op(EmbeddingLookupSparse, given, constant, combiner=combiner)
    inputs = [a for i, a in enumerate(given) if i not in constant]
    (theirs,) = litert(to_bytes(model, "tflite"), inputs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, strict=True)


# LiteRT divides each time that another place comes next.
def test_the_order_of_places_does_not_matter() -> None:
    given = operands(ints([1, 0], [0, 0], [1, 1]), ints(2, 2), ints(1, 3, 0), 4, 2)
    turned = [a[[1, 0, 2]] if i in (0, 1, 3) else a for i, a in enumerate(given)]
    ours, theirs = (
        run_reference(EmbeddingLookupSparse, a, combiner=CombinerType.MEAN)[0]
        for a in (given, turned)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    ids, computed = (
        graph.add_input(n, s, TensorType.INT32) for n, s in (("i", (None,)), ("d", (3,)))
    )
    indices = graph.add_input("indices", (None, 3), TensorType.INT32)
    weights, value = graph.add_input("w", (None,)), graph.add_input("v", (None, 7))
    dense = graph.add_constant("c", ints(2, 3, 4))
    assert EmbeddingLookupSparse(ids, indices, computed, weights, value).infer_shape() == (
        *(None, None, 7),
    )
    assert EmbeddingLookupSparse(ids, indices, dense, weights, value).infer_shape() == (2, 3, 7)


@pytest.mark.parametrize(
    ("slot", "array", "message"),
    [
        (0, ints(1, 4, 0), "index 4 is out of range: axis 0 of value has 4 elements"),
        (0, ints(1, -1, 0), "index -1 is out of range"),
        (1, ints([0, 0], [3, 0], [0, 0]), "index 3 is out of range: axis 0 of the result has 3"),
        (1, ints([0, 0], [-1, 0], [0, 0]), "index -1 is out of range: axis 0 of the result"),
        (0, ints(1, 2), "elements: ids has 2, indices has 3"),
        (3, counted(2), "elements: ids has 3, weights has 2"),
        (2, ints(3), "coordinates: indices has 2, dense_shape has 1"),
        (2, ints(-3, 2), r"dense_shape is \[-3, 2\], nothing below 0 is possible"),
        (4, counted(4), "indices has 2 coordinates, value 1 axes"),
    ],
)
def test_embedding_lookup_sparse_refuses_what_does_not_fit(
    slot: int, array: Array, message: str
) -> None:
    given: list[Any] = list(CASES[0])
    given[slot] = array
    with pytest.raises(ShapeError, match=message):
        run_reference(EmbeddingLookupSparse, given)


def test_embedding_lookup_sparse_refuses_absurd_computed_sizes() -> None:
    given = operands(ints([0, 0]), ints(2**31 - 1, 1), ints(0), 1, 2)
    with pytest.raises(LucioleError, match="would take 17179869176 bytes"):
        run_reference(EmbeddingLookupSparse, given)
