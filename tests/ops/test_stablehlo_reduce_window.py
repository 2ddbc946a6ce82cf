"""STABLEHLO_REDUCE_WINDOW: numbers against LiteRT, shapes, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Op, ShapeError, UnsupportedError
from luciole.ir.dtypes import tensor_type
from luciole.ir.ops import stablehlo_elementwise as stablehlo
from luciole.ir.ops.elementwise_binary import Add, Div, Maximum, Minimum, Mul
from luciole.ir.ops.logical import LogicalAnd, LogicalOr
from luciole.ir.ops.stablehlo_reduce_window import StablehloReduceWindow
from tests.support import litert

PLAIN = {"window_strides": (1, 1), "base_dilations": (1, 1), "window_dilations": (1, 1)}
WINDOWS: list[dict[str, Any]] = [
    {"window_dimensions": (2, 3), "padding": (0, 0, 0, 0)},
    {"window_dimensions": (2, 2), "padding": (1, 2, 0, 3), "window_strides": (2, 1)},
    {"window_dimensions": (3, 2), "padding": (0, 0, -1, -1), "window_dilations": (1, 2)},
    {"window_dimensions": (2, 3), "padding": (1, -2, -1, 2), "base_dilations": (2, 3)},
    {"window_dimensions": (9, 9), "padding": (0, 0, 1, 1)},
]
NUMBERS = [
    *(Add, Mul, Maximum, Minimum, stablehlo.StablehloAdd, stablehlo.StablehloMultiply),
    *(stablehlo.StablehloMaximum, stablehlo.StablehloMinimum),
]


def reducing(cls: type[Op], x: Array, init: Any, **given: Any) -> Model:
    model = Model()
    main, body = model.add_graph(Graph("main")), model.add_graph(Graph("body"))
    numbers = [body.add_input(name, (), tensor_type(x.dtype)) for name in "ab"]
    body.outputs = [body.append(cls(*numbers), "c").output]
    first = main.add_constant("init", np.array(init, x.dtype))
    array = main.add_input("x", x.shape, tensor_type(x.dtype))
    op = StablehloReduceWindow(array, first, body=body, **(PLAIN | given))
    main.outputs = [main.append(op, "y").output]
    return model


def check(model: Model, x: Array) -> None:
    (found,) = Interpreter(model).run(x).values()
    (wanted,) = litert(to_bytes(model, "tflite"), [x])
    np.testing.assert_array_equal(found, wanted, strict=True)


@pytest.mark.parametrize("cls", NUMBERS)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int32, np.uint8])
def test_numbers_are_those_of_litert(cls: type[Op], dtype: Any) -> None:
    x = np.random.default_rng(1).integers(0, 5, (5, 6)).astype(dtype)  # sums of floats are exact
    for window in WINDOWS:
        check(reducing(cls, x, 2, **window), x)


@pytest.mark.parametrize("cls", [LogicalAnd, LogicalOr])
def test_truth_values_are_those_of_litert(cls: type[Op]) -> None:
    x = np.random.default_rng(2).random((5, 6)) < 0.5
    for window in WINDOWS:
        check(reducing(cls, x, cls is LogicalAnd, **window), x)


def test_unknown_extents_stay_unknown() -> None:
    graph = Graph()
    x, init = graph.add_input("x", (None, 9)), graph.add_input("init", ())
    assert StablehloReduceWindow(x, init, **(PLAIN | WINDOWS[0])).infer_shape() == (None, 7)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"window_dimensions": (2,)}, "numbers: window_dimensions has 1, input's axes has 2"),
        ({"window_strides": (1, 0)}, r"window_strides is \[1, 0\], nothing below 1"),
        ({"base_dilations": (0, 1)}, r"base_dilations is \[0, 1\], nothing below 1"),
        ({"padding": (0, 0, 0)}, "numbers: padding has 3, both ends of input's axes has 4"),
        ({"padding": (-9, 0, 0, 0)}, "9 elements are taken off 5"),
    ],
)
def test_reduce_window_refuses_numbers_that_do_not_fit(
    changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        reducing(Add, np.zeros((5, 6), np.float32), 0, **(WINDOWS[0] | changed))


@pytest.mark.parametrize("cls", [Div, LogicalAnd])
def test_reduce_window_refuses_graphs_that_compute_something_else(cls: type[Op]) -> None:
    dtype = np.bool_ if cls is LogicalAnd else np.float32
    model = reducing(cls, np.zeros((5, 6), dtype), 0, **WINDOWS[0])
    if cls is LogicalAnd:
        model.graphs[1].outputs = [model.graphs[1].inputs[1]]
    with pytest.raises(UnsupportedError, match="its graph"):
        Interpreter(model).run(np.zeros((5, 6), dtype))
