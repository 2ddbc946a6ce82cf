"""PyTorch's networks of earlier years: what their exporters spell out becomes one operator."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.ir import Model
from tests.support import data_path

LEFT = {
    "G": {"FULLY_CONNECTED": 3, "GELU": 2},
    "gelu": {"FULLY_CONNECTED": 2, "GELU": 1},
    "gelu_tanh": {"FULLY_CONNECTED": 2, "GELU": 1},
    "bn_fc": {"FULLY_CONNECTED": 2},
    "instnorm": {"TRANSPOSE": 2, "CONV_2D": 2, "INSTANCE_NORM": 1},
    "tconv_bn": {"TRANSPOSE": 2, "TRANSPOSE_CONV": 1, "RELU": 1},
    "preact": {"TRANSPOSE": 2, "CONV_2D": 3, "RELU": 1, "ADD": 1},
    "prelu": {"TRANSPOSE": 2, "CONV_2D": 2, "PRELU": 1},
    "clip6": {"TRANSPOSE": 2, "CONV_2D": 2},
    "hswish": {"TRANSPOSE": 2, "CONV_2D": 2, "HARD_SWISH": 1},
}
"""Operators of ``found/composites`` behind ``luciole optimize`` to a .circle file."""


def imported(name: str) -> Model:
    return luciole.load(data_path(f"found/composites/{name}.onnx"))


def kinds(model: Model) -> dict[str, int]:
    return dict(Counter(op.kind for op in model.graph.ops))


@pytest.mark.parametrize("name", LEFT)
def test_nothing_but_the_network_is_left(name: str) -> None:
    model = imported(name)
    simpler = luciole.optimize(model, target="circle")
    assert kinds(simpler) == LEFT[name]
    x = np.random.default_rng(0).normal(0, 1, model.graph.inputs[0].dims).astype(np.float32)
    before, after = (next(iter(luciole.Interpreter(m).run(x).values())) for m in (model, simpler))
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-5 * float(np.ptp(before)))


def test_gelu_is_one_operator_on_the_way_to_integers() -> None:
    model, x = imported("G"), np.load(data_path("found/composites/gx.npy"))
    assert kinds(model) == LEFT["G"]
    result = luciole.quantize(model, x[:200], scheme="int8")
    assert kinds(result.model) == {"QUANTIZE": 1, **LEFT["G"], "DEQUANTIZE": 1}
    proof = result.report.proof
    assert proof is not None
    assert all((output.file.snr_db or 99) > 30 for output in proof.outputs)


@pytest.mark.parametrize("name", sorted(LEFT))
def test_a_tflite_file_stays_one_that_litert_runs(name: str) -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    model = imported(name)
    simpler = luciole.optimize(model)
    x = np.random.default_rng(1).normal(0, 1, model.graph.inputs[0].dims).astype(np.float32)
    (expected,) = luciole.Interpreter(model).run(x).values()
    interpreter = litert.Interpreter(model_content=to_bytes(simpler, "tflite"))
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    output = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(output, expected, rtol=0, atol=1e-5 * float(np.ptp(expected)))
