"""Recipes of AI Edge Quantizer: the operators that it leaves float stay float, all others compute
with the same integers. What it does is in ``golden/aeq.json``, which ``python -m
tests.lquantizer.test_aeq_recipes`` writes anew with the package ai-edge-quantizer.
"""

from __future__ import annotations

import importlib
import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.interpreter.records import outputs_of
from luciole.ir import Array, Graph, Model, Op, Signature, Value
from luciole.ir.ops.activations import Logistic, Tanh
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.elementwise_unary import Sin
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.ops.pool_2d import MaxPool2D
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.softmax import Softmax
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.ir.quantization import Affine, is_affine
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.assignment.aeq import AeqRecipe
from luciole.lquantizer.assignment.layer_format import Float
from luciole.schema.enums import Padding
from tests.networks import random

GOLDEN = Path(__file__).parent.parent / "golden" / "aeq.json"


def small() -> Model:
    """Operators that AI Edge Quantizer knows, and some that it does not."""
    model = Model()
    graph = model.add_graph(Graph("main"))

    def add(op: Op, name: str) -> Value:
        return graph.append(op, name).output

    def constant(number: int, *shape: int) -> Value:
        return graph.add_constant(f"c{number}", random(number, *shape) * np.float32(0.4))

    x = graph.add_input("x", (1, 6, 6, 4))
    near: dict[str, Any] = {"stride_h": 1, "stride_w": 1}
    y = add(Conv2D(x, constant(1, 8, 3, 3, 4), constant(2, 8), **near), "block/conv")
    leaky = add(LeakyRelu(y, alpha=0.1), "block/leaky")
    wave = add(Sin(leaky), "block/sin")
    gate = add(Logistic(leaky), "gate/sigmoid")
    both = add(Mul(wave, gate), "gate/mul")
    z = add(Conv2D(both, constant(3, 8, 1, 1, 8), constant(4, 8), **near), "tail/conv")
    total = add(Add(z, y), "tail/add")
    pool = MaxPool2D(
        total, padding=Padding.VALID, stride_w=2, stride_h=2, filter_width=2, filter_height=2
    )
    halves = [add(pool, "tail/pool")]
    halves.append(add(Tanh(halves[0]), "tail/tanh"))
    joined = add(Concatenation(tuple(halves), axis=3), "tail/join")
    shape = graph.add_constant("shape", np.array([1, 144], np.int32))
    flat = add(Reshape(joined, shape, new_shape=(1, 144)), "head/flat")
    hidden = add(FullyConnected(flat, constant(5, 12, 144), constant(6, 12)), "head/hidden")
    answer = add(FullyConnected(hidden, constant(7, 4, 12), constant(8, 4)), "head/answer")
    graph.outputs = [add(Softmax(answer, beta=0.02), "head/softmax")]
    ends = [(v.name, v) for v in graph.inputs], [(v.name, v) for v in graph.outputs]
    model.signatures.append(Signature("serving_default", graph, *ends))
    return model


DATA = random(5, 8, 6, 6, 4)


def rule(
    regex: str, operation: str, algorithm: str = "min_max_uniform_quantize", **config: Any
) -> dict[str, Any]:
    entry = {"regex": regex, "operation": operation, "algorithm_key": algorithm}
    return entry if algorithm == "no_quantize" else {**entry, "op_config": config}


def weights(bits: int, **other: Any) -> dict[str, Any]:
    found = {"num_bits": bits, "symmetric": True, "granularity": "CHANNELWISE", "dtype": "INT"}
    return {"weight_tensor_config": {**found, **other}}


def between(bits: int, of_weights: int) -> dict[str, Any]:
    found = {
        "num_bits": bits,
        "symmetric": bits == 16,
        "granularity": "TENSORWISE",
        "dtype": "INT",
    }
    integers = {"compute_precision": "INTEGER", "explicit_dequantize": False}
    return {"activation_tensor_config": found, **weights(of_weights), **integers}


INT8, INT16, W4A8 = between(8, 8), between(16, 8), between(8, 4)
DYNAMIC = {**weights(8), "compute_precision": "INTEGER", "explicit_dequantize": False}
DYNAMIC4 = {**weights(4), "compute_precision": "INTEGER", "explicit_dequantize": False}
EXPLICIT = {"compute_precision": "FLOAT", "explicit_dequantize": True}
ALONE = {**weights(8, symmetric=False), **EXPLICIT}
ALONE4 = {**weights(4), **EXPLICIT}
HALF = {**weights(16, dtype="FLOAT", granularity="TENSORWISE"), **EXPLICIT}

RECIPES: dict[str, list[dict[str, Any]]] = {
    "int8": [rule(".*", "*", **INT8)],
    "int16": [rule(".*", "*", **INT16)],
    "w4a8": [rule(".*", "*", **INT8), rule(".*", "CONV_2D", **W4A8)],
    "w4a8 for all": [rule(".*", "*", **W4A8)],
    "dynamic": [rule(".*", "*", **DYNAMIC)],
    "dynamic, large ones": [rule(".*", "*", **DYNAMIC, min_weight_elements=100)],
    "dynamic 4 bits": [rule(".*", "*", **DYNAMIC4)],
    "weights": [rule(".*", "*", **ALONE)],
    "weights 4 bits": [rule(".*", "*", **ALONE4)],
    "float16": [rule(".*", "*", "float_casting", **HALF)],
    "advanced": [
        rule(".*", "*", **INT8),
        rule(".*", "FULLY_CONNECTED", **ALONE4),
        rule(".*", "CONV_2D", "no_quantize"),
    ],
    "by scope": [
        rule("tail/", "*", **INT8),
        rule("^head/hidden;", "FULLY_CONNECTED", **DYNAMIC),
        rule("head/answer;$", "FULLY_CONNECTED", "float_casting", **HALF),
    ],
    "last wins": [
        rule("tail", "*", "no_quantize"),
        rule(".*", "*", **INT8),
        rule("tail", "ADD", "no_quantize"),
    ],
    "all replaces": [
        rule(".*", "CONV_2D", "no_quantize"),
        rule("gate", "*", "no_quantize"),
        rule(".*", "*", **INT8),
    ],
    "what is not possible is passed over": [
        rule(".*", "*", **INT8),
        rule("tail|gate", "*", **DYNAMIC),
    ],
    "algorithms": [
        rule(".*", "*", "OCTAV", **INT8),
        rule(".*", "CONV_2D", "MSE", **INT8),
    ],
    "scales by error for layers alone": [rule(".*", "*", "MSE", **DYNAMIC)],
    "ends alone": [rule(".*", "*", **INT8), rule(".*", "INPUT", "no_quantize")],
}


def kinds(model: Model) -> dict[str, list[str]]:
    """Say of every operator what it reads, gives, and has for weights."""
    found: dict[str, list[str]] = {}
    for op in model.graph.ops:
        if not isinstance(op, Quantize | Dequantize):
            weight = op.given_operands().get(op.quant.weight or "") if op.quant else None
            read = op.out_backprop if isinstance(op, TransposeConv) else op.operands[0]
            assert read is not None
            found[op.kind + " " + str(len(found))] = [
                read.dtype.name,
                op.results[0].dtype.name,
                "" if weight is None else _stored(weight),
            ]
    found["ends"] = [v.dtype.name for v in (*model.graph.inputs, *model.graph.outputs)]
    return found


def _stored(weight: Value) -> str:
    producer = None if weight.producer is None else weight.producer.op
    if isinstance(producer, Dequantize):
        return f"{producer.input.dtype.name} behind DEQUANTIZE"
    return weight.dtype.name


def expected() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = json.loads(GOLDEN.read_text())
    return found


def records(name: str) -> Array | None:
    static = any("activation_tensor_config" in r.get("op_config", {}) for r in RECIPES[name])
    return DATA if static else None


@cache
def quantized(name: str) -> luciole.Result:
    """What a recipe makes of the network, once for all tests."""
    return luciole.quantize(small(), records(name), config=RECIPES[name], proof=False)


@pytest.mark.parametrize("name", RECIPES)
def test_the_same_operators_are_integer(name: str) -> None:
    result = quantized(name)
    assert kinds(result.model) == expected()[name]
    assert len(result.report.rules) == len(AeqRecipe.parse(RECIPES[name]).rules)


@pytest.mark.parametrize("name", RECIPES)
def test_answers_are_those_of_the_float_network(name: str) -> None:
    model = quantized(name).model
    (found,) = outputs_of(Interpreter(model), _inputs(model)).values()
    if is_affine(model.graph.outputs[0]):
        found = Affine.of(model.graph.outputs[0], "answers").decode(found)
    (wanted,) = outputs_of(Interpreter(small()), {"x": DATA}).values()
    share = 0.1 if "4" in name or name == "advanced" else 0.03  # steps are 16 times as wide
    assert np.abs(found - wanted).max() < share * (wanted.max() - wanted.min()) + 1 / 255


def _inputs(model: Model) -> dict[str, Array]:
    from luciole.interpreter.affine import as_input

    return {"x": as_input(model.graph.inputs[0], DATA)}


def test_a_report_names_every_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from luciole.tools.quantize import main

    model, recipe, data = tmp_path / "m.tflite", tmp_path / "r.json", tmp_path / "d.npy"
    luciole.save(small(), model)
    recipe.write_text(json.dumps(RECIPES["last wins"]))
    np.save(data, DATA)
    words = [str(model), "-o", str(tmp_path / "q.tflite"), "--data", str(data)]
    assert main([*words, "--recipe", str(recipe)]) == 0
    told = capsys.readouterr().out
    assert "rule 1 ('tail', *): no_quantize -> float: no operator" in told
    assert "rule 2 ('.*', *): min_max_uniform_quantize -> int:w8a8: 12 int:w8a8" in told
    assert "rule 3 ('tail', ADD): no_quantize -> float: no operator" in told  # it stands by rule 1
    assert kinds(luciole.load(tmp_path / "q.tflite")) == expected()["last wins"]
    assert main([*words, "--recipe", str(recipe), "--scheme", "int8"]) == 1
    assert "scheme does not go with a recipe" in capsys.readouterr().err


def test_algorithms_say_how_weights_and_ranges_are_found() -> None:
    cases = {
        "min_max_uniform_quantize": ("min_max", "nearest"),
        "OCTAV": ("mse", "nearest"),
        "MSE": ("mse", "nearest"),
        "GPTQ": ("min_max", "output_aware"),
    }
    for algorithm, (ranges, rounding) in cases.items():
        found = AeqRecipe.parse([rule(".*", "*", algorithm, **INT8)]).defaults
        assert (found["ranges"], found["rounding"], found["rescale"]) == (ranges, rounding, "none")
        assert (found["scheme"], found["granularity"]) == ("int:w8a8", "channel")
    graph = small().graph
    gptq = AeqRecipe.parse([rule(".*", "*", "GPTQ", **INT8)]).choices(graph)
    assert {op.kind for op, chosen in gptq.items() if chosen != Float()} == {"FULLY_CONNECTED"}


def test_what_a_recipe_says_may_be_chosen_otherwise() -> None:
    how: dict[str, Any] = {"input_type": "float32", "ranges": "entropy", "rounding": "output_aware"}
    result = luciole.quantize(small(), DATA, config=RECIPES["int8"], proof=False, **how)
    assert kinds(result.model)["ends"] == ["FLOAT32", "INT8"]
    assert result.ranges is not None
    assert result.ranges.rule == "entropy"


def one(**changes: Any) -> list[Any]:
    return [{**rule(".*", "*", **INT8), **changes}]


@pytest.mark.parametrize(
    ("recipe", "sentence"),
    [
        (one(algorithm_key="HADAMARD_ROTATION"), "there is no HADAMARD_ROTATION here"),
        (one(algorithm_key="DECOMPOSED_HADAMARD_ROTATION"), "no DECOMPOSED_HADAMARD_ROTATION here"),
        (one(algorithm_key="OSCAR"), "rule 1: there is no OSCAR here, there is min_max"),
        (one(algorithm_key="dequantized_weight_recovery"), "no dequantized_weight_recovery here"),
        (one(regex="("), "rule 1: regex '\\(': missing"),
        (one(regex=5), "regex is 5, text is needed"),
        (one(operation=None), "operation is None"),
        (one(extra=1), "extra is not understood"),
        (one(op_config=3), "op_config is 3, an object"),
        (one(op_config={}), "weight_tensor_config is None"),
        (one(op_config={**INT8, "skip_checks": True}), "there is no skip_checks here"),
        (one(op_config={**INT8, "min_weight_elements": -1}), "min_weight_elements is -1"),
        (one(op_config={**INT8, "bits": 1}), "op_config: bits is not understood"),
        (one(op_config={**DYNAMIC, **weights(2)}), "of 2 bit INT weights"),
        (one(op_config={**INT8, **weights(8, symmetric=False)}), "of 8 bit INT weights"),
        (one(op_config={**DYNAMIC, **weights(4, granularity="BLOCKWISE_48")}), "BLOCKWISE_48 here"),
        (one(op_config={**DYNAMIC, **weights(4, block_size="a")}), "BLOCKWISE_a here"),
        (one(op_config={**W4A8, **weights(4, granularity="BLOCKWISE_32")}), "of 4 bit INT weights"),
        (one(op_config={**DYNAMIC, **weights(8, num_bits="8")}), "num_bits is a whole number"),
        (
            one(op_config={**DYNAMIC, **weights(8, algorithm_params={"a": 1})}),
            "no algorithm_params",
        ),
        (one(operation="SIN"), "is for ADD, .*, not SIN"),
        (one(op_config=W4A8, operation="DEPTHWISE_CONV_2D"), "w4a8 is for"),
        ([rule(".*", "*", "no_quantize")], "no rule quantizes anything"),
        ([], "no rule quantizes anything"),
        ([{"regex": ".*"}], "operation is None, text is needed"),
        ([3], "rule 1 is 3, an object is needed"),
        ([rule(".*", "*", **INT8), rule("a", "*", **INT16)], "of 8 and of 16 bits"),
        (
            [
                rule(".*", "*", **INT8),
                rule("a", "*", **DYNAMIC | weights(8, granularity="TENSORWISE")),
            ],
            "TENSORWISE and CHANNELWISE",
        ),
        ([rule("nothing", "*", **DYNAMIC)], "nothing to quantize"),
    ],
)
def test_what_is_not_here_is_refused_by_name(recipe: list[Any], sentence: str) -> None:
    with pytest.raises(QuantizeError, match=sentence):
        luciole.quantize(small(), DATA, config=recipe)


def update() -> None:
    """Ask AI Edge Quantizer what it does."""
    quantizer = importlib.import_module("ai_edge_quantizer.quantizer")
    answers = {}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "m.tflite")
        luciole.save(small(), path)
        for name, recipe in RECIPES.items():
            tool = quantizer.Quantizer(path)
            tool.load_quantization_recipe(recipe)
            records = {"serving_default": [{"x": record[None]} for record in DATA]}
            ranges = tool.calibrate(records) if tool.need_calibration else None
            answer = from_bytes(bytes(tool.quantize(ranges).quantized_model))
            answers[name] = kinds(answer)
    GOLDEN.write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    update()
