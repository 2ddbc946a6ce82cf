"""EMBEDDING_LOOKUP against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole import Interpreter
from luciole.exporters import to_bytes
from luciole.interpreter import compile_graph
from luciole.ir import Array, Graph, LucioleError, Model, ShapeError, TensorType, UnsupportedError
from luciole.ir.ops.embedding_lookup import EmbeddingLookup
from luciole.kernels.core import evaluation
from tests.litert_support import check_same, counted, ints
from tests.support import Affine, litert, one_op, run_reference

X = counted(4, 3, 2)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8])
@pytest.mark.parametrize("constant", [(1,), ()])
def test_rows_are_those_of_litert(dtype: DTypeLike, constant: tuple[int, ...]) -> None:
    check_same(EmbeddingLookup, [ints(3, 0, 3), X.astype(dtype)], constant)


def quantized(value: Array, affine: Affine) -> Model:
    """A model whose rows become FLOAT32."""
    model = one_op(EmbeddingLookup, [ints(3, 0, 3), value], (1,), affine=[None, affine])
    model.graph.outputs[0].dtype = TensorType.FLOAT32
    return model


def real(model: Model) -> Array:
    op = model.graph.ops[0]
    assert op.operands[1] is not None
    given = [ints(3, 0, 3), op.operands[1].data]
    return evaluation.computed(op, given)[0]


SCALES, ZEROS = [0.1, 0.2, 0.3, 0.7], [0] * 4


@pytest.mark.parametrize(
    "affine",
    [
        Affine(0.3),
        Affine(SCALES, ZEROS),
        Affine(0.3, dtype=TensorType.INT4),
        Affine(SCALES, ZEROS, dtype=TensorType.INT4),
        Affine(0.3, dtype=TensorType.INT2),
        Affine(SCALES, ZEROS, dtype=TensorType.INT2),
    ],
)
def test_quantized_rows_become_the_numbers_of_litert(affine: Affine) -> None:
    """The reference and the compiled kernel give what LiteRT gives."""
    half = 2 if affine.dtype == TensorType.INT2 else 8
    model = quantized((counted(4, 8) % (2 * half) - half).astype(np.int8), affine)
    (theirs,) = litert(to_bytes(model, "tflite"), [ints(3, 0, 3)])
    np.testing.assert_allclose(real(model), theirs, rtol=1e-6, strict=True)
    np.testing.assert_array_equal(compiled(model, ints(3, 0, 3)), real(model), strict=True)


def compiled(model: Model, lookup: Array) -> Array:
    """Run the only operator compiled."""
    graph = model.graph
    (step,) = compile_graph(graph, {graph.inputs[0]: lookup.shape}).steps
    assert step.native is not None
    (result,) = Interpreter(model).run({graph.inputs[0].name: lookup}).values()
    return result


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64])
def test_rows_are_copied_compiled(dtype: DTypeLike) -> None:
    model = one_op(EmbeddingLookup, [ints(3, 0, 3), X.astype(dtype)], (1,))
    np.testing.assert_array_equal(compiled(model, ints(3, 0, 3)), X[[3, 0, 3]].astype(dtype))


@pytest.mark.parametrize("affine", [None, Affine(0.5)])
def test_compiled_lookups_refuse_rows_that_are_not_there(affine: Affine | None) -> None:
    table = counted(4, 2, dtype=np.int8)
    model = one_op(EmbeddingLookup, [ints(0), table], (1,), affine=[None, affine])
    if affine is not None:
        model.graph.outputs[0].dtype = TensorType.FLOAT32
    for row in (4, -1):
        with pytest.raises(ShapeError, match=f"index {row} is out of range: axis 0"):
            compiled(model, ints(row))
    np.testing.assert_allclose(compiled(model, ints(2))[0], table[2] * (1 if not affine else 0.5))


def test_zero_points_count() -> None:
    model = quantized(counted(4, 2, dtype=np.uint8), Affine(0.5, 3))
    np.testing.assert_array_equal(real(model), np.array([[2, 2.5], [-1, -0.5], [2, 2.5]]))


def test_unknown_dimensions_stay_unknown() -> None:
    graph = Graph()
    lookup, value = graph.add_input("i", (None,), TensorType.INT32), graph.add_input("v", (9, None))
    assert EmbeddingLookup(lookup, value).infer_shape() == (None, None)


# LiteRT: "Embedding Lookup: index out of bounds. Got 4, and bounds are [0, 3]".
@pytest.mark.parametrize("row", [4, -1])
def test_embedding_lookup_refuses_rows_that_are_not_there(row: int) -> None:
    with pytest.raises(ShapeError, match=f"index {row} is out of range: axis 0 of value has 4"):
        run_reference(EmbeddingLookup, [ints(0, row), X])


def test_embedding_lookup_refuses_scales_that_are_missing() -> None:
    model = quantized(counted(4, 2, dtype=np.int8), Affine(0.5))
    value = model.graph.ops[0].operands[1]
    assert value is not None
    value.quantization = None
    with pytest.raises(LucioleError, match="value"):
        real(model)


def test_embedding_lookup_refuses_integers_without_a_scale_as_numbers() -> None:
    model = quantized(counted(4, 2, dtype=np.int32), Affine(0.5))
    with pytest.raises(UnsupportedError, match="rows of INT32 do not become FLOAT32"):
        real(model)


@pytest.mark.parametrize(
    ("lookup", "value", "message"),
    [
        (ints([0]), X, r"lookup has shape \[1,1\], rank 1 is needed"),
        (ints(0), np.array(1, np.float32), "value is a scalar, rows are needed"),
    ],
)
def test_embedding_lookup_refuses_other_ranks(lookup: Array, value: Array, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        one_op(EmbeddingLookup, [lookup, value])
