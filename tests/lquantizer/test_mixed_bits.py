"""As few bits for each layer as an accuracy allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.interpreter.records import outputs_of
from luciole.ir import Graph, Model, TensorType
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.softmax import Softmax
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.assignment.choices import weight_bytes
from luciole.lquantizer.assignment.layer_format import parse
from luciole.lquantizer.judging.judge import ANSWERS, VARIANCE
from luciole.lquantizer.proof import Verdict
from luciole.lquantizer.search.mixed_bits import Candidate, around, path
from tests.lquantizer.networks import images, spoiled
from tests.lquantizer.runs import COARSE, records, weights_by_kind
from tests.networks import network, random, steps


def made(model: Model, target: float) -> tuple[Model, Verdict]:
    data = records(model, 80)
    choices: dict[str, Any] = COARSE | {"scheme": "mixed", "target_drop": target, "proof": False}
    choices["least_bits"] = 4
    result = luciole.quantize(model, data, **choices)
    assert result.report.judged is not None
    return result.model, result.report.judged


def test_a_generous_target_gives_4_bits_wherever_there_is_a_kernel() -> None:
    model, judged = made(spoiled(), 50.0)
    types = weights_by_kind(model)
    assert types["CONV_2D"] == types["FULLY_CONNECTED"] == {TensorType.INT4}
    assert judged.drop <= 50
    assert (judged.records, judged.unit) == (16, ANSWERS)


def test_a_narrow_target_gives_more_bits() -> None:
    model, judged = made(spoiled(), 0.02)
    assert TensorType.INT8 in set.union(*weights_by_kind(model).values())
    assert judged.drop <= 0.02


MEASURED = {
    "big": {
        parse("int:w2a8"): Candidate(3.0, 300),
        parse("int:w4a8"): Candidate(2.0, 500),
        parse("int:w8a8"): Candidate(0.0, 1000),
    },
    "small": {
        parse("int:w2a8"): Candidate(9.0, 6),
        parse("int:w4a8"): Candidate(1.0, 5),
        parse("int:w8a8"): Candidate(0.0, 10),
    },
}
"""The small layer's levels take more bytes than 4 bits."""


def test_the_path_saves_bytes_for_the_least_noise_and_leaves_one_layer_on_integers() -> None:
    steps = path(MEASURED)
    assert [" ".join(map(str, step.values())) for step in steps] == [
        "int:w2a8 int:w4a8",
        "int:w2a8 int:w8a8",
        "int:w4a8 int:w8a8",
        "int:w8a8 int:w8a8",
        "int:w8a8 int:w8a16",
        "int:w8a16 int:w8a16",
        "int:w8a16 float",
    ]
    assert path(MEASURED, least=True) == steps[:2]


def test_fewer_than_4_bits_keep_to_a_target_in_a_smaller_file() -> None:
    model, data = network((64, 48, 48, 1)), random(1, 100, 64)
    choices: dict[str, Any] = {"scheme": "mixed", "target_drop": 15.0, "proof": False}
    one, other = (luciole.quantize(model, data, least_bits=k, **choices) for k in (1, 4))
    words = {layer.name: layer.format for layer in one.report.layers}
    assert {"int:w1a8", "int:w2a8", "int:w3a8"} & set(words.values())
    assert one.report.judged is not None
    assert 0 < one.report.judged.drop <= 15
    assert {layer.format for layer in other.report.layers} == {"int:w4a8"}
    assert len(to_bytes(one.model)) < len(to_bytes(other.model))


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_bytes_of_single_layers_are_those_that_files_differ_by(bits: int) -> None:
    model, data = network((64, 48, 48)), random(1, 20, 64)
    choices: dict[str, Any] = COARSE | {"scheme": "int8", "proof": False}
    sizes = []
    for word in (f"int:w{bits}a8", "int:w4a8"):
        config = {"layers": [{"name": "fc1", "scheme": word}]}
        result = luciole.quantize(model, data, config=config, **choices)
        sizes.append(len(to_bytes(result.model)))
    layer = model.graph.ops[0]
    expected = weight_bytes(layer, bits) - weight_bytes(layer, 4)
    assert sizes[0] - sizes[1] == pytest.approx(expected, abs=16)


def test_operators_without_weights_have_the_most_in_front_of_them() -> None:
    graph = images().graph
    words = {"t5": "int:w4a8", "t10": "int:w4a8", "t13": "int:w8a16", "t19": "int:w4a8"}
    layers = {name: parse(word) for name, word in words.items()}
    found = {op.name: str(format) for op, format in around(graph, layers).items()}
    assert (found["t14"], found["t20"], found["t21"]) == ("int:w8a16", "int:w8a8", "int:w8a16")


def test_mixed_counts_the_answers_of_steps() -> None:
    model, data = steps(), random(5, 80, 6, 20)
    result = luciole.quantize(model, {"x": data}, scheme="mixed", target_drop=5.0, proof=False)
    answers = [
        outputs_of(luciole.Interpreter(m), {"x": data[4::5]})[m.graph.outputs[0].name].argmax(-1)
        for m in (model, result.model)
    ]
    judged = result.report.judged
    assert judged is not None
    assert judged.drop == pytest.approx(100 * np.mean(answers[0] != answers[1]))
    assert judged.drop <= 5


def test_mixed_bounds_the_error_of_outputs_that_score_no_classes() -> None:
    model, data = steps(softmax=False), random(5, 80, 6, 20)
    result = luciole.quantize(model, {"x": data}, scheme="mixed", target_drop=2.0, proof=False)
    wanted, found = (
        outputs_of(luciole.Interpreter(m), {"x": data[4::5]})[m.graph.outputs[0].name]
        for m in (model, result.model)
    )
    judged = result.report.judged
    assert judged is not None
    assert judged.unit == VARIANCE
    assert judged.drop == pytest.approx(100 * np.square(found - wanted).mean() / wanted.var(), 1e-4)
    assert judged.drop <= 2


def test_mixed_refuses_what_does_not_go() -> None:
    model = network()
    with pytest.raises(QuantizeError, match="target_drop does not go with the scheme 'int8'"):
        luciole.quantize(model, records(model), scheme="int8", target_drop=1.0)
    with pytest.raises(QuantizeError, match="least_bits does not go with the scheme 'int8'"):
        luciole.quantize(model, records(model), scheme="int8", least_bits=2)
    with pytest.raises(QuantizeError, match="least_bits is 5: 1 to 4 are possible"):
        luciole.quantize(model, records(model), scheme="mixed", least_bits=5)
    with pytest.raises(QuantizeError, match="config does not go"):
        luciole.quantize(model, records(model), scheme="mixed", config={})
    with pytest.raises(QuantizeError, match="at least 2 records"):
        luciole.quantize(model, records(model, 1), scheme="mixed")
    with pytest.raises(QuantizeError, match="learns from data"):
        luciole.quantize(model, scheme="mixed")


def test_a_network_without_layers_becomes_8_bits() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 6))
    graph.outputs = [graph.append(Softmax(graph.append(Tanh(x), "t").output, beta=1.0), "y").output]
    made = luciole.quantize(model, random(3, 40, 6), scheme="mixed", target_drop=0.0).model
    (op,) = (op for op in made.graph.ops if isinstance(op, Tanh))
    assert op.x.dtype == TensorType.INT8
