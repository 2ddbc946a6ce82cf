"""CUSTOM operators of a file, computed by functions that a user registers."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from flatbuffers import flexbuffers

import luciole
from luciole.exporters import to_bytes
from luciole.ir import Array, Graph, LucioleError, Model, TensorType, UnknownOp, UnsupportedError
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.value import Value
from luciole.kernels.core import custom
from luciole.schema.enums import BuiltinOperator

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is gone after it."""
    monkeypatch.setattr(custom, "FUNCTIONS", {})


def file_with(
    options: bytes = b"", shapes: tuple[tuple[int | None, ...], ...] = ((2, 3),)
) -> bytes:
    """A .tflite file: |x|, then the operator Mine, then |y| of its first result."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    graph.append(Abs(graph.add_input("x", (2, 3))), "x/abs")
    raw = np.frombuffer(options, np.uint8) if options else None
    number = int(BuiltinOperator.CUSTOM)
    op = UnknownOp(number, [graph.ops[0].output], custom_code="Mine", custom_options=raw)
    names = [Value(f"y{i}", TensorType.FLOAT32, shape) for i, shape in enumerate(shapes)]
    graph.append(op, results=[graph.add_value(v) for v in names])
    graph.append(Abs(op.output), "y/abs")
    graph.outputs = [graph.ops[-1].output, *op.results[1:]]
    return to_bytes(model, "tflite")


def run(content: bytes) -> list[Array]:
    return list(luciole.Interpreter(model_content=content).run(X).values())


def test_a_function_computes_the_operator_with_its_code() -> None:
    @luciole.custom_operator("Mine")
    def mine(x: Array) -> Array:
        return x - 1

    (y,) = run(file_with())
    np.testing.assert_array_equal(y, np.abs(np.abs(X) - 1), strict=True)


def test_options_of_a_map_come_by_name() -> None:
    @luciole.custom_operator("Mine")
    def mine(x: Array, factor: float, name: str = "") -> Array:
        assert name == "a"
        return x * np.float32(factor)

    (y,) = run(file_with(bytes(flexbuffers.Dumps({"factor": 2.5, "name": "a"}))))
    np.testing.assert_array_equal(y, np.abs(X) * np.float32(2.5), strict=True)


def test_other_options_come_as_bytes() -> None:
    @luciole.custom_operator("Mine")
    def mine(x: Array, options: bytes) -> Array:
        return np.asarray(x * np.frombuffer(options, "<f4"))

    (y,) = run(file_with(np.float32(3).tobytes()))
    np.testing.assert_array_equal(y, np.abs(X) * 3, strict=True)


def test_a_compiled_function_works_too() -> None:
    luciole.custom_operator("Mine")(numba.njit(lambda x: x + x))
    np.testing.assert_array_equal(run(file_with())[0], 2 * np.abs(X), strict=True)


def test_several_results_are_a_tuple_and_open_extents_may_be_any() -> None:
    @luciole.custom_operator("Mine")
    def mine(x: Array) -> tuple[Array, Array]:
        return x[x > 1], np.array([x.size], np.float32)

    y, count = run(file_with(shapes=((None,), (1,))))
    np.testing.assert_array_equal(y, np.abs(X)[np.abs(X) > 1], strict=True)
    assert count == [6]


def test_a_second_function_takes_the_place_of_the_first() -> None:
    for factor in (2, 3):
        luciole.custom_operator("Mine")(lambda x, factor=factor: x * np.float32(factor))
    np.testing.assert_array_equal(run(file_with())[0], 3 * np.abs(X), strict=True)


def test_a_function_must_not_write_its_operands() -> None:
    def mine(x: Array) -> Array:
        x[:] = 0
        return x

    luciole.custom_operator("Mine")(mine)
    with pytest.raises(
        LucioleError, match="raised ValueError: assignment destination is read-only"
    ):
        run(file_with())


def test_an_operator_without_a_function_refuses_to_run_and_says_what_helps() -> None:
    with pytest.raises(
        UnsupportedError, match=r"CUSTOM\(Mine\) is not supported \(luciole.custom_"
    ):
        run(file_with())


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (np.zeros((2, 2), np.float32), r"result 'y0' is float32 \[2,2\], expected FLOAT32 \[2,3\]"),
        (np.zeros((2, 3)), r"result 'y0' is float64 \[2,3\], expected FLOAT32 \[2,3\]"),
        ((X, X), "2 results were computed, it has 1"),
        ("text", "result 'y0' is <U4"),
    ],
)
def test_a_result_that_is_not_what_the_file_says_is_refused(result: Any, sentence: str) -> None:
    luciole.custom_operator("Mine")(lambda x: result)
    with pytest.raises(LucioleError, match=sentence):
        run(file_with())


def test_a_code_that_has_a_class_refuses_a_function() -> None:
    with pytest.raises(LucioleError, match="needs no function: TFLiteDetectionPostProcess"):
        luciole.custom_operator("TFLite_Detection_PostProcess")


def test_what_a_function_raises_is_one_sentence() -> None:
    def mine(x: Array) -> Array:
        raise KeyError("size")

    luciole.custom_operator("Mine")(mine)
    with pytest.raises(LucioleError, match=r"CUSTOM\(Mine\) 'y0': the function for it raised KeyE"):
        run(file_with())
