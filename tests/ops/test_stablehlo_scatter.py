"""STABLEHLO_SCATTER: numbers against LiteRT, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Op, ShapeError, UnsupportedError
from luciole.ir.dtypes import tensor_type
from luciole.ir.ops import stablehlo_elementwise as stablehlo
from luciole.ir.ops.elementwise_binary import Sub
from luciole.ir.ops.stablehlo_scatter import StablehloScatter
from tests.litert_support import ints
from tests.support import litert

BODIES: list[type[Op] | None] = [
    *(None, stablehlo.StablehloAdd, stablehlo.StablehloMultiply),
    *(stablehlo.StablehloMaximum, stablehlo.StablehloMinimum),
]


def numbers(window: Any, inserted: Any, mapped: Any, vector: int) -> dict[str, Any]:
    return {
        "update_window_dims": window,
        "inserted_window_dims": inserted,
        "scatter_dims_to_operand_dims": mapped,
        "index_vector_dim": vector,
    }


X = (3, 4, 2)
PLACES = ints([[0, 2], [1, 0], [2, 1]], [[0, 1], [1, 0], [0, 9]])
SPECIFIED = numbers((2, 3), (0,), (1, 0), 2)
"""The example of StableHLO's specification; the last window lies outside."""

CASES = [
    (PLACES, (2, 3, 2, 2), SPECIFIED),
    (ints([[-1, 0], [1, 1], [2, 2]]), (1, 3, 4, 1), numbers((2, 3), (0,), (0, 2), 2)),
    (ints([0, 2, 1], [1, 1, 0]), (4, 3), numbers((0,), (0, 2), (0, 2), 0)),
    (ints([0], [2], [0]), (3, 4, 2), numbers((1, 2), (0,), (0,), 1)),
    (ints([1, 3, 1]), (1,), numbers((), (0, 1, 2), (0, 1, 2), 1)),
]


def scattering(
    body: type[Op] | None, x: Array, indices: Array, updates: Array, **given: Any
) -> Model:
    model = Model()
    main, inner = model.add_graph(Graph("main")), model.add_graph(Graph("inner"))
    pair = [inner.add_input(name, (), tensor_type(x.dtype)) for name in "ab"]
    inner.outputs = [pair[1] if body is None else inner.append(body(*pair), "c").output]
    arrays = zip("xiu", (x, indices, updates), strict=True)
    given_x, places, new = (main.add_input(n, a.shape, tensor_type(a.dtype)) for n, a in arrays)
    op = StablehloScatter(given_x, places, new, update_computation=inner, **given)
    main.outputs = [main.append(op, "y").output]
    return model


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_numbers_are_those_of_litert(body: type[Op] | None, dtype: Any, index: Any) -> None:
    rng = np.random.default_rng(3)
    for indices, shape, given in CASES:
        x, updates = (rng.integers(-5, 5, s).astype(dtype) for s in (X, shape))
        arrays = [x, indices.astype(index), updates]
        model = scattering(body, *arrays, **given)
        interpreter = Interpreter(model)
        (found,) = interpreter.run(dict(zip("xiu", arrays, strict=True))).values()
        (wanted,) = litert(to_bytes(model, "tflite"), arrays)
        np.testing.assert_array_equal(found, wanted, strict=True)


def test_indices_alone_are_vectors_of_one() -> None:
    x, updates = np.zeros((5, 2), np.float32), np.ones((2, 2), np.float32)
    given = numbers((1,), (0,), (0,), 1)
    model = scattering(stablehlo.StablehloAdd, x, ints(3, 3), updates, **given)
    (found,) = Interpreter(model).run({"x": x, "i": ints(3, 3), "u": updates}).values()
    np.testing.assert_array_equal(found, np.eye(5, dtype=np.float32)[3][:, None] * [[2, 2]])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"update_window_dims": (3, 2)},
            r"update_window_dims is \[3, 2\]: different axes in order",
        ),
        ({"inserted_window_dims": (3,)}, r"inserted_window_dims is \[3\]: different axes in order"),
        ({"inserted_window_dims": ()}, "axes: windows with what is inserted has 2, input has 3"),
        ({"scatter_dims_to_operand_dims": (0, 0)}, "scatter_dims_to_operand_dims is"),
        ({"scatter_dims_to_operand_dims": (0,)}, "has 1 axes, a vector 2"),
        ({"index_vector_dim": 4}, "index_vector_dim is 4, scatter_indices has 3 axes"),
        ({"index_vector_dim": 1, "scatter_dims_to_operand_dims": (0, 1, 2)}, r"\[2,3\] places"),
    ],
)
def test_scatter_refuses_numbers_that_do_not_fit(changed: dict[str, Any], message: str) -> None:
    x, updates = np.zeros(X, np.float32), np.zeros((2, 3, 2, 2), np.float32)
    with pytest.raises(ShapeError, match=message):
        scattering(None, x, PLACES, updates, **(SPECIFIED | changed))


def test_scatter_refuses_graphs_that_compute_something_else() -> None:
    x, updates = np.zeros(X, np.float32), np.zeros((2, 3, 2, 2), np.float32)
    model = scattering(Sub, x, PLACES, updates, **SPECIFIED)
    with pytest.raises(UnsupportedError, match="its graph is not one operator of two numbers"):
        Interpreter(model).run({"x": x, "i": PLACES, "u": updates})
