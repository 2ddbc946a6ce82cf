"""LSTM, GRU and RNN of ONNX are functions of their operands: in every form that luciole makes of
them, the same input gives onnxruntime's results, the second time as well as the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers.onnx.model import from_bytes
from luciole.importers.onnx.operators.control_flow import MOST_STEPS
from luciole.ir import Array, UnsupportedError
from luciole.ir.graph import all_ops
from tests.compiler_support import built, needs_compiler, program_of

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
helper = onnx.helper

FLOAT = 1
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
INPUTS, UNITS, BATCH = 5, 7, 2
RUNS = 3
LONG = MOST_STEPS + 44
"""Steps of a sequence that is too long to stand step by step."""


def recurrent(kind: str, steps: int, batch: int = BATCH, **attributes: Any) -> bytes:
    """A network of one recurrent node: outputs are its steps and last states, with ``cells`` an
    LSTM's last cells, too.
    """
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    rng, rows = np.random.default_rng(0), GATES[kind] * UNITS
    weights = {
        "w": rng.normal(0, 0.4, (directions, rows, INPUTS)),
        "r": rng.normal(0, 0.4, (directions, rows, UNITS)),
        "b": rng.normal(0, 0.4, (directions, 2 * rows)),
    }
    if attributes.pop("peepholes", False):
        weights["p"] = rng.normal(0, 0.4, (directions, 3 * UNITS))
    operands = ["x", "w", "r", "b", *(["", "", "", "p"] if "p" in weights else [])]
    results = ["y", "h", "c"] if attributes.pop("cells", False) else ["y", "h"]
    node = helper.make_node(kind, operands, results, hidden_size=UNITS, **attributes)
    tensors = [onnx.numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items()]
    given = [helper.make_tensor_value_info("x", FLOAT, [steps, batch, INPUTS])]
    outputs = [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph([node], "g", given, outputs, tensors)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(made.SerializeToString())


def sequence(steps: int, batch: int = BATCH) -> Array:
    return np.random.default_rng(1).normal(0, 1, (steps, batch, INPUTS)).astype(np.float32)


def by_onnxruntime(data: bytes) -> Callable[[Array], list[Array]]:
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    return lambda x: list(session.run(None, {"x": x}))


def by_calls(interpreter: Any) -> Callable[[Array], list[Array]]:
    """The calls that LiteRT and luciole have in common."""
    interpreter.allocate_tensors()

    def run(x: Array) -> list[Array]:
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        return [interpreter.get_tensor(o["index"]) for o in interpreter.get_output_details()]

    return run


def check(run: Callable[[Array], Iterable[Array]], x: Array, want: Iterable[Array]) -> None:
    """Run several times, with something else in between."""
    for _ in range(RUNS):
        for got, right in zip(run(x), want, strict=True):
            np.testing.assert_allclose(got.reshape(right.shape), right, rtol=0, atol=2e-6)
        run(x[::-1].copy() * 3)


KINDS = [
    ("LSTM", {"cells": True}),
    ("LSTM", {"direction": "bidirectional"}),
    ("LSTM", {"direction": "reverse", "peepholes": True}),
    ("LSTM", {"clip": 0.3}),
    ("LSTM", {"clip": 0.3, "peepholes": True, "input_forget": 1}),
    ("GRU", {"direction": "bidirectional"}),
    ("GRU", {"linear_before_reset": 1}),
    ("RNN", {}),
]
KIND = pytest.mark.parametrize(("kind", "attributes"), KINDS)
STEPS = pytest.mark.parametrize("steps", [1, 6, LONG])


@KIND
@STEPS
def test_the_interpreter_gives_onnxruntimes_results_each_time(
    kind: str, attributes: dict[str, Any], steps: int
) -> None:
    data, x = recurrent(kind, steps, **attributes), sequence(steps)
    want, interpreter = by_onnxruntime(data)(x), luciole.Interpreter(from_bytes(data).model)
    check(lambda given: interpreter.run({"x": given}).values(), x, want)
    check(by_calls(luciole.Interpreter(from_bytes(data).model)), x, want)


@KIND
@pytest.mark.parametrize("steps", [6, LONG])
def test_litert_gives_onnxruntimes_results_each_time(
    kind: str, attributes: dict[str, Any], steps: int
) -> None:
    runtime = pytest.importorskip("ai_edge_litert.interpreter")
    data, x = recurrent(kind, steps, **attributes), sequence(steps)
    written = to_bytes(from_bytes(data).model, "tflite")
    interpreter = runtime.Interpreter(model_content=written, num_threads=1)
    check(by_calls(interpreter), x, by_onnxruntime(data)(x))


@KIND
@pytest.mark.parametrize("steps", [6, LONG])
def test_what_is_exported_to_onnx_again_gives_the_same_results_each_time(
    kind: str, attributes: dict[str, Any], steps: int
) -> None:
    data, x = recurrent(kind, steps, **attributes), sequence(steps)
    written = to_bytes(from_bytes(data).model, "onnx")
    check(by_onnxruntime(written), x, by_onnxruntime(data)(x))


@pytest.mark.parametrize("suffix", ["tflite", "circle"])
@pytest.mark.parametrize("steps", [6, LONG])
def test_files_that_are_written_of_an_lstm_have_no_state(
    suffix: str, steps: int, tmp_path: Path
) -> None:
    data, x = recurrent("LSTM", steps), sequence(steps)
    path = tmp_path / f"model.{suffix}"
    luciole.save(from_bytes(data).model, path)
    model = luciole.load(path)
    assert not any(v.is_variable for graph in model.graphs for v in graph.values)
    interpreter = luciole.Interpreter(model)
    check(lambda given: interpreter.run({"x": given}).values(), x, by_onnxruntime(data)(x))


@needs_compiler
@KIND
@pytest.mark.parametrize("steps", [6, LONG])
def test_programs_in_c_give_onnxruntimes_results_each_time(
    kind: str, attributes: dict[str, Any], steps: int, tmp_path: Path
) -> None:
    data, x = recurrent(kind, steps, batch=1, **attributes), sequence(steps, 1)
    compiled = built(program_of(from_bytes(data).model), tmp_path)
    check(lambda given: compiled.run({"x": given}), x, by_onnxruntime(data)(x))


def test_loops_over_long_sequences_are_compiled_as_one_step() -> None:
    interpreter = luciole.Interpreter(from_bytes(recurrent("GRU", LONG)).model)
    interpreter.allocate_tensors()
    kinds = [op.kind for op in interpreter.model.graph.ops]
    assert kinds.count("WHILE") == 1
    assert all(s.native is not None or s.nothing_to_do for s in interpreter.plan.steps)


@pytest.mark.parametrize("steps", [6, LONG])
def test_all_steps_have_the_same_weights(steps: int) -> None:
    model = from_bytes(recurrent("GRU", steps)).model
    constants = {v for op in all_ops(model.graphs) for v in op.operands if v and v.is_constant}
    floats = [v.data for v in constants if v.data is not None and v.data.dtype == np.float32]
    parameters = GATES["GRU"] * UNITS * (INPUTS + UNITS + 1)
    assert sum(a.size for a in floats if a.any()) <= parameters + len(floats)


def test_a_long_sequence_refuses_weights_that_are_computed() -> None:
    model = onnx.ModelProto.FromString(recurrent("LSTM", LONG))
    weights = next(t for t in model.graph.initializer if t.name == "r")
    model.graph.input.append(helper.make_tensor_value_info("r", FLOAT, list(weights.dims)))
    model.graph.initializer.remove(weights)
    with pytest.raises(UnsupportedError, match=r"LSTM \('.*' is not constant\)"):
        from_bytes(model.SerializeToString())
