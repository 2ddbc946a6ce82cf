"""DENSIFY and the sparse constants it is for, against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike

from luciole.exporters import to_bytes
from luciole.importers import import_model
from luciole.interpreter import compile_graph
from luciole.ir import Array, GraphError, Model
from luciole.ir.dtypes import pack, tensor_type
from luciole.ir.ops.densify import Densify
from luciole.ir.value import Buffer
from luciole.schema.enums import TensorType
from luciole.schema.tables import SparsityParameters, Uint8Vector, Uint16Vector
from tests.litert_support import counted
from tests.ops.sparsity_support import compressed, solid, sparsity
from tests.support import litert, one_op, run_reference


def sparse_model(shape: tuple[int, ...], values: Array, how: SparsityParameters) -> Model:
    """A model whose only operator is DENSIFY of a sparse constant."""
    model = one_op(Densify, [np.zeros(shape, values.dtype)], (0,))
    value = model.graph.ops[0].operands[0]
    assert value is not None
    value.buffer, value.sparsity = Buffer(pack(values, tensor_type(values.dtype))), how
    return model


def result(model: Model) -> Array:
    plan = compile_graph(model.graph, {})
    plan.run()
    array = plan.array(model.graph.outputs[0])
    assert array is not None
    return array


CASES = [
    ((2, 4), 3, sparsity([0, 1], [], solid(2), compressed([0, 2, 3], [0, 3, 1]))),
    ((2, 4), 3, sparsity([1, 0], [], solid(4), compressed([0, 1, 1, 3, 3], [1, 0, 1]))),
    ((2, 4), 8, sparsity([0, 1], [], solid(2), solid(4))),
    ((2, 4), 0, sparsity([0, 1], [], solid(2), compressed([0, 0, 0], []))),
    ((3, 4), 8, sparsity([0, 1], [], compressed([0, 2], [0, 2]), solid(4))),
    (
        (2, 3, 2),
        3,
        sparsity(
            [0, 1, 2], [], solid(2), compressed([0, 1, 2], [2, 0]), compressed([0, 2, 3], [0, 1, 1])
        ),
    ),
    (
        (4, 4),
        8,
        sparsity([0, 1, 2, 3], [0, 1], solid(2), compressed([0, 1, 2], [1, 0]), solid(2), solid(2)),
    ),
    ((3, 8), 8, sparsity([0, 1, 2], [1], solid(3), compressed([0, 1, 1, 2], [1, 0]), solid(4))),
]


@pytest.mark.parametrize(("shape", "count", "how"), CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
def test_elements_are_those_of_litert(
    shape: tuple[int, ...], count: int, how: SparsityParameters, dtype: DTypeLike
) -> None:
    content = to_bytes(sparse_model(shape, counted(count, dtype=dtype), how), "tflite")
    ours = result(import_model(content)[0])
    if count:  # LiteRT takes a constant without bytes for none
        np.testing.assert_array_equal(ours, litert(content, [])[0], strict=True)
    assert np.count_nonzero(ours) == count


@pytest.mark.parametrize("cls", [Uint8Vector, Uint16Vector])
def test_indices_may_be_narrow(cls: Any) -> None:
    how = sparsity([0, 1], [], solid(2), compressed([0, 2, 3], [0, 3, 1], cls))
    content = to_bytes(sparse_model((2, 4), counted(3), how), "tflite")
    ours = result(import_model(content)[0])
    np.testing.assert_array_equal(ours, litert(content, [])[0], strict=True)


def test_dense_operands_are_copied() -> None:
    (y,) = run_reference(Densify, [counted(2, 3)])
    np.testing.assert_array_equal(y, counted(2, 3))


def test_a_tensor_without_elements_has_none() -> None:
    how = sparsity([0, 1], [], solid(2), solid(0))
    assert result(sparse_model((2, 0), np.zeros(0, np.float32), how)).shape == (2, 0)


ROWS = solid(2)
FAULTS: list[tuple[SparsityParameters, str]] = [
    (SparsityParameters(), r"traversal_order is \[\], with 0 dimensions of 2"),
    (sparsity([0, 0], [], ROWS, solid(4)), r"traversal_order is \[0, 0\]"),
    (sparsity([0, 1], [], ROWS), r"traversal_order is \[0, 1\], with 1 dimensions of 2"),
    (sparsity([0, 1, 2], [2], ROWS, solid(4), solid(2)), r"block_map is \[2\], the tensor has 2"),
    (sparsity([0, 1, 2], [1], ROWS, solid(4), solid(3)), "a block has 3 elements along axis 1"),
    (sparsity([0, 1, 2], [1], ROWS, solid(4), solid(0)), "a block has 0 elements along axis 1"),
    (sparsity([0, 1], [], solid(2**31 - 1), solid(4)), "axis 0 has 2147483647 indices, 2 are"),
    (
        sparsity([0, 1], [], ROWS, compressed([0, 1], [0])),
        "axis 1 has 2 segment ends, 3 are needed",
    ),
    (sparsity([0, 1], [], ROWS, compressed([0, 1, 3], [0])), "do not cover its 1 indices"),
    (sparsity([0, 1], [], ROWS, compressed([], [])), "do not cover its 0 indices"),
    (sparsity([0, 1], [], ROWS, compressed([0, 2, 1], [0])), "the segments of axis 1 go back"),
    (
        sparsity([0, 1], [], ROWS, compressed([0, 1, 1], [4])),
        "an index of axis 1 is none of 0 to 3",
    ),
    (sparsity([0, 1], [], ROWS, compressed([0, 1, 1], [-1])), "an index of axis 1 is none of"),
    (sparsity([0, 1], [], ROWS, solid(4)), "8 values are listed, the buffer has 4 bytes"),
]


@pytest.mark.parametrize(("how", "message"), FAULTS)
def test_densify_refuses_tables_that_do_not_fit(how: SparsityParameters, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        result(sparse_model((2, 4), counted(1), how))


def test_densify_refuses_absurd_sizes() -> None:
    how = sparsity([0, 1], [], compressed([0, 1], [7]), compressed([0, 1], [9]))
    model = sparse_model((1, 1), counted(1), how)
    value = model.graph.ops[0].operands[0]
    assert value is not None
    value.shape = (2**31 - 1, 2**31 - 1)
    with pytest.raises(GraphError, match="all elements would take 18446744056529682436 bytes"):
        Densify(value).fold()


def test_densify_refuses_values_that_are_no_numbers() -> None:
    model = sparse_model((2, 4), counted(1), CASES[0][2])
    value = model.graph.ops[0].operands[0]
    assert value is not None
    value.dtype = TensorType.STRING
    with pytest.raises(GraphError, match="sparse tensor 'c0': values of STRING have no array form"):
        Densify(value).fold()
