"""Two models on the same records."""

from __future__ import annotations

import numpy as np
import pytest

import luciole.ir
from luciole.interpreter import Interpreter
from luciole.interpreter import compare as module
from luciole.interpreter.compare import compare, second_inputs
from luciole.interpreter.errors import InputError
from luciole.ir import Graph, Model, TensorType
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.transpose import Transpose
from luciole.schema.tables import QuantizationParameters
from tests.networks import network, random, two_inputs, value_named

X = random(3, 150, 20)


def contents(model: Model, x: np.ndarray) -> dict[str, np.ndarray]:
    """Every computed tensor of a run, by name."""
    interpreter = Interpreter(model, keep_tensors=True)
    interpreter.run(x)
    results = {v for op in model.graph.ops for v in op.results}
    return {
        v.name: interpreter.get_tensor(i) for i, v in enumerate(model.graph.values) if v in results
    }


def coarse(step: float) -> Model:
    """The network with its first weights rounded and another name for the first result."""
    model = network()
    weights = value_named(model, "fc1/weights")
    assert weights.data is not None
    weights.set_data(np.round(weights.data / np.float32(step)) * np.float32(step))
    value_named(model, "fc1").name = "another"
    return model


def test_every_layer_is_compared_with_what_a_run_gives() -> None:
    first, second = network(), coarse(0.5)
    found = compare(first, second, {"x": X})
    wanted, others = contents(first, X), contents(second, X)
    assert found.records == 150
    assert [e.name for e in found.layers] == ["act1", "fc2"]
    assert found.unmatched == (["fc1"], ["another"])
    for errors in found.layers:
        a, b = (x[errors.name].astype(np.float64) for x in (wanted, others))
        assert errors.measures.mse == pytest.approx(np.mean((a - b) ** 2), rel=1e-4)
    assert found.layers[0].top == {}
    (output,) = found.outputs
    equal = wanted["fc2"].argmax(1) == others["fc2"].argmax(1)
    assert output.top == {1: pytest.approx(equal.mean())}, "4 outputs have no 5 largest"
    assert 0 < output.top[1] < 1


def test_a_model_is_not_away_from_itself() -> None:
    found = compare(network(), network(), {"x": X[:5]})
    assert {e.measures.mse for e in found.layers} == {0.0}
    assert found.outputs[0].top == {1: 1.0}


def test_batches_are_smaller_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    second = coarse(1)
    whole = compare(network(), second, {"x": X})
    steps: list[int] = []
    monkeypatch.setattr(module, "_MOST_BYTES", 2 * (16 + 4) * 4 * 3)
    parts = compare(network(), second, {"x": X}, steps.append)
    assert max(steps) == 3
    assert sum(steps) == 150
    for a, b in zip(whole.layers, parts.layers, strict=True):
        wanted, found = (
            {k: v for k, v in e.measures.as_dict().items() if v is not None} for e in (a, b)
        )
        assert found == pytest.approx(wanted, rel=1e-5)


def quantized_twin() -> tuple[Model, Model]:
    """y = |x| in float, and with an int8 input and output around the same operator."""
    first, second = Model(), Model()
    graph = first.add_graph(Graph("main"))
    graph.append(Abs(graph.add_input("x", (1, 3))), "y")
    graph.outputs = [graph.ops[0].output]
    graph = second.add_graph(Graph("main"))
    x = graph.add_input("x_int8", (1, 3), TensorType.INT8)
    wide = graph.append(Dequantize(x), "x_float")
    y = graph.append(Abs(wide.output), "y_float")
    z = graph.append(Quantize(y.output), results=[graph.add_value(_int8("y"))])
    x.quantization = QuantizationParameters(
        scale=np.array([0.5], np.float32), zero_point=np.array([3])
    )
    graph.outputs = [z.output]
    return first, second


def _int8(name: str) -> luciole.ir.Value:
    value = luciole.ir.Value(name, TensorType.INT8, (1, 3))
    value.quantization = QuantizationParameters(
        scale=np.array([0.25], np.float32), zero_point=np.array([-100])
    )
    return value


def test_quantized_tensors_are_compared_by_what_they_stand_for() -> None:
    first, second = quantized_twin()
    x = np.array([[1.1, -2.0, 0.3], [1000, 0.25, -0.75]], np.float32)
    found = compare(first, second, {"x": x})
    steps = np.clip(np.array([[2, -4, 1], [124, 1, -2]]) + 3, -128, 127) - 3  # halves go outwards
    wanted = np.abs(steps * 0.5)
    stored = np.clip(np.round(wanted / 0.25) - 100, -128, 127)
    wanted = (stored + 100) * 0.25
    (layer,) = found.layers
    assert layer.kinds == ("ABS", "QUANTIZE")
    assert layer.measures.mae == pytest.approx(np.mean(np.abs(np.abs(x) - wanted)))
    assert layer.measures.srmse == pytest.approx((layer.measures.mse or 0) ** 0.5 / 0.25)
    assert found.unmatched == ([], ["x_float", "y_float"])
    back = compare(second, first, {"x_int8": (steps + 3).astype(np.int8)})
    assert back.layers[0].measures.mae == pytest.approx(np.mean(np.abs(np.abs(steps / 2) - wanted)))


def test_quantized_inputs_of_another_scale_are_converted() -> None:
    _, first = quantized_twin()
    second = first.clone()
    x = np.array([[5, -1, 127]], np.int8)
    assert second_inputs(first.graph, second.graph, {"x_int8": x})["x_int8"] is x
    for scale, zero_point, wanted in (
        (0.25, 3, [7, -5, 127]),
        (0.5, -7, [-5, -11, 117]),
        (1.0, 0, [1, -2, 62]),
    ):
        second.graph.inputs[0].quantization = QuantizationParameters(
            scale=np.array([scale], np.float32), zero_point=np.array([zero_point])
        )
        found = np.asarray(second_inputs(first.graph, second.graph, {"x_int8": x})["x_int8"])
        assert found.dtype == np.int8
        assert found.tolist() == [wanted]


def test_tensors_that_mix_records_are_compared_one_record_at_a_time() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (None, 4))
    turned = graph.append(Transpose(x, graph.add_constant("p", np.array([1, 0]))), "turned")
    graph.append(Transpose(turned.output, graph.values[1]), "y")
    graph.outputs = [graph.ops[1].output]
    steps: list[int] = []
    compare(model, model.clone(), {"x": random(0, 6, 4)}, steps.append)
    assert steps == [1] * 6


def test_constant_folded_tensors_are_left_out() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    constant = graph.append(Abs(graph.add_constant("c", np.ones(4, np.float32))), "folded")
    graph.append(Add(graph.add_input("x", (1, 4)), constant.output), "y")
    graph.outputs = [graph.ops[1].output, constant.output]
    found = compare(model, model.clone(), {"x": random(0, 2, 4)})
    assert [e.name for e in found.layers] == ["y"]
    assert [e.measures.mse for e in found.outputs] == [0.0, None]


def test_compare_refuses_models_of_another_form() -> None:
    with pytest.raises(InputError, match="the first model has 1 inputs, the second 2"):
        compare(network(), two_inputs(), {"x": X})
    more = network()
    more.graph.outputs.append(more.graph.ops[0].output)
    with pytest.raises(InputError, match="the first model has 1 outputs, the second 2"):
        compare(network(), more, {"x": X})
    with pytest.raises(InputError, match=r"'fc2' is \[64,4\] in the first model and \[64,5\]"):
        compare(network(), network((20, 16, 5)), {"x": X})


def test_compare_refuses_inputs_of_types_that_do_not_answer() -> None:
    first, second = quantized_twin()
    second.graph.inputs[0].quantization = None
    with pytest.raises(InputError, match="input 'x_int8' of the second model is INT8, the first"):
        second_inputs(first.graph, second.graph, {"x": X[:, :3]})
