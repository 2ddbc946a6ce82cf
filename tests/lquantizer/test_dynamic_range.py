"""Integer weights under floats: dense layers round what they read with a zero point."""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.interpreter.records import first_output
from luciole.ir import Array, Graph, Model
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.schema.enums import ActivationFunctionType
from tests.networks import dense, random
from tests.support import litert_records


def rectified(sizes: tuple[int, ...] = (40, 64, 48, 10)) -> Model:
    """Dense layers, a RELU in all but the last."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, sizes[0]))
    for i in range(1, len(sizes)):
        op = dense(graph, x, (sizes[i], sizes[i - 1]), f"fc{i}", seed=10 * i)
        last = i == len(sizes) - 1
        op.activation = ActivationFunctionType.NONE if last else ActivationFunctionType.RELU
        x = op.output
    graph.outputs = [x]
    return model


def layers(model: Model) -> list[FullyConnected]:
    """The dense layers."""
    return [op for op in model.graph.ops if isinstance(op, FullyConnected)]


def lost(model: Model, whole: Model, x: Array) -> float:
    """Decibels of the float network's answers over what is lost of them."""
    wanted, answer = (first_output(m, {"x": x}) for m in (whole, model))
    return float(10 * np.log10(np.square(wanted).sum() / np.square(answer - wanted).sum()))


@pytest.mark.parametrize("scheme", ["dynamic", "dynamic4"])
def test_results_are_those_of_litert(scheme: str) -> None:
    model, x = luciole.quantize(rectified(), scheme=scheme).model, random(3, 8, 40)
    assert all(op.asymmetric_quantize_inputs for op in layers(model))
    (theirs,) = litert_records(to_bytes(model, "tflite"), [x])
    np.testing.assert_allclose(first_output(model, {"x": x}), theirs, rtol=0, atol=2e-6)


def test_what_a_relu_gives_is_rounded_in_all_steps() -> None:
    whole, x = rectified(), np.abs(random(3, 8, 40))
    model = luciole.quantize(whole, scheme="dynamic").model
    grids = model.clone()
    for op in layers(grids):
        op.asymmetric_quantize_inputs = False
    assert lost(model, whole, x) > lost(grids, whole, x) + 2
