"""One network with several formats: learned levels, integers of several kinds, and floats."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.ir import Model, TensorType
from luciole.ir.analysis.weights import has_weights, learned_weights
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.lquantizer import QuantizeError, Result
from luciole.lquantizer.assignment.choices import configured, joined
from luciole.lquantizer.assignment.config import Choice, Config
from luciole.lquantizer.assignment.layer_format import LayerFormat
from luciole.lquantizer.assignment.schemes import BYTES, FLOAT
from tests.lquantizer.networks import images, with_sine
from tests.lquantizer.runs import answers, integers_of_litert, kinds, records, weights_by_kind
from tests.networks import network, random


def mixed(model: Model, **choices: Any) -> Result:
    return luciole.quantize(model, records(model), proof=False, **choices)


EVERYTHING = {
    "scheme": "int8",
    "layers": [
        {"operator": "CONV_2D", "scheme": "learned", "encode_bits": 2},
        {"name": "t5", "scheme": "int8"},
        {"operator": "FULLY_CONNECTED", "scheme": "w4a8"},
        {"regex": "t3[25]", "scheme": "float"},
    ],
}


@cache
def of_everything() -> Result:
    return mixed(images(), config=EVERYTHING)


def test_one_config_mixes_learned_levels_integers_and_floats() -> None:
    model, result = images(), of_everything()
    types = weights_by_kind(result.model)
    assert kinds(result.model).count("LQ_CONV_2D") == 2
    assert types["CONV_2D"] == {TensorType.INT8}
    assert types["DEPTHWISE_CONV_2D"] == {TensorType.INT8}
    assert types["FULLY_CONNECTED"] == {TensorType.INT4, TensorType.FLOAT32}
    widths = {layer.name: (layer.weight_bits, layer.skipped) for layer in result.report.layers}
    assert widths == {
        "t5": (8, None),
        "t10": (8, None),
        "t13": (2, None),
        "t19": (2, None),
        "t31": (4, None),
        "t35": (None, "skipped by the config"),
    }
    assert [text for text in result.report.floats if "its format is float" not in text] == []
    x = records(model, 8, seed=77)
    assert np.abs(answers(result.model, x) - answers(model, x)).max() < 0.3


def test_a_report_says_what_gives_levels_to_layers_without() -> None:
    first = "no levels: t5: the first convolution: --all-layers (all_layers) or a config"
    lines = str(mixed(images(), encode_bits=2).report).splitlines()
    assert [line for line in lines if line.startswith(first)]
    layers = of_everything().report.layers
    assert all(layer.spared is None for layer in layers), "a config chose int8 for it"


def test_a_report_says_which_layers_are_smaller_in_8_bits() -> None:
    """Each tap of 3 channels takes a word of 32 bits for each bit of its weights."""
    report = mixed(images(), encode_bits=2, all_layers=True).report
    (line,) = [text for text in report.beside_levels() if text.startswith("smaller in int:w8a8")]
    layer = next(layer for layer in report.layers if layer.name == "t5")
    assert f": t5 ({layer.bytes_int8} bytes, not {layer.bytes_after:,})" in line
    eight = mixed(images(), scheme="int8").report.layers[0]
    assert layer.bytes_int8 is not None
    assert eight.bytes_after < layer.bytes_int8 < layer.bytes_after


def test_levels_and_integers_meet_where_conversions_stand() -> None:
    """Layers with learned levels take and give floats, integers begin right behind them."""
    graph = of_everything().model.graph
    for op in (op for op in graph.ops if isinstance(op, LQConv2D)):
        assert op.input.producer is not None
        assert isinstance(op.input.producer.op, Dequantize)
        assert all(isinstance(use.op, Quantize) for use in op.output.users)


@pytest.mark.parametrize("outer", ["int8", "int16x8"])
def test_integers_of_two_widths_meet_without_floats(outer: str) -> None:
    """QUANTIZE brings one to the other."""
    inner = {"int8": "int16x8", "int16x8": "int8"}[outer]
    model = images()
    rules = [{"name": "t14", "scheme": inner}, {"operator": "MAX_POOL_2D", "scheme": inner}]
    made = mixed(model, scheme=outer, ranges="min_max", config={"layers": rules}).model
    assert [k for k in kinds(made) if k == "DEQUANTIZE"] == ["DEQUANTIZE"]
    types = {op.name: op.results[0].dtype for op in made.graph.ops}
    wanted = {"int8": TensorType.INT8, "int16x8": TensorType.INT16}
    assert (types["t14"], types["t13"]) == (wanted[inner], wanted[outer])
    x = records(model, 8, seed=77)
    assert np.abs(answers(made, x) - answers(model, x)).max() < 0.03


def test_every_integer_of_a_mixed_file_is_that_of_litert(tmp_path: Path) -> None:
    rules = [
        {"name": "t13", "scheme": "w4a8"},
        {"operator": "MUL", "scheme": "float"},
        {"operator": "LOGISTIC", "scheme": "int16x8"},
        {"name": "t35", "scheme": "dynamic"},
    ]
    made = mixed(images(), scheme="int8", ranges="min_max", config={"layers": rules}).model
    for op in made.graph.ops:  # LiteRT's reference resolver stops there
        op.version = min(op.version, 6) if op.kind == "DEPTHWISE_CONV_2D" else op.version
    path = tmp_path / "q.tflite"
    luciole.save(made, path)
    ours = luciole.Interpreter(path, keep_tensors=True)
    x = random(9, 1, 8, 8, 3)
    ours.run({"x": x})
    compared = 0
    for name, wanted in integers_of_litert(path, x).items():
        value = next((v for v in ours.graph.values if v.name == name), None)
        if value is not None and value.producer is not None:  # LiteRT has tensors of its own, too
            found = ours.get_tensor(ours.graph.values.index(value))
            np.testing.assert_array_equal(found, wanted, name)
            compared += 1
    assert compared > 12


def test_what_is_asked_to_be_float_reads_and_gives_floats() -> None:
    rules = [{"operator": "ADD", "scheme": "float"}]
    result = mixed(images(), scheme="int8", ranges="min_max", config={"layers": rules})
    (add,) = [op for op in result.model.graph.ops if op.kind == "ADD"]
    assert {v.dtype for v in (*add.operands, *add.results) if v} == {TensorType.FLOAT32}
    assert result.report.floats == ["ADD 't14': its format is float"]


def test_spared_layers_become_integers_beside_learned_levels() -> None:
    model = images()
    result = mixed(model, encode_bits=2, spared="int8")
    types = weights_by_kind(result.model)
    assert types["CONV_2D"] | types["DEPTHWISE_CONV_2D"] == {TensorType.INT8}
    assert types["FULLY_CONNECTED"] == {TensorType.INT8}
    assert kinds(result.model).count("LQ_CONV_2D") == 2
    alone = luciole.quantize(model, records(model), encode_bits=2, spared="float", proof=False)
    assert result.report.bytes_after < alone.report.bytes_after
    x = records(model, 8, seed=77)
    assert np.abs(answers(result.model, x) - answers(alone.model, x)).max() < 0.05


def test_where_all_layers_have_levels_nothing_is_spared() -> None:
    model = network()
    made = [mixed(model, spared=spared).model for spared in ("float", "int8")]
    assert kinds(made[0]) == kinds(made[1])


def test_a_depthwise_layer_that_is_to_be_learned_has_its_weights_stored_as_levels() -> None:
    rules = [{"names": ["t10", "t13"], "scheme": "learned"}]
    made = mixed(images(), scheme="int8", ranges="min_max", config={"layers": rules}).model
    (found,) = (op for op in made.graph.ops if op.kind == "DEPTHWISE_CONV_2D")
    assert learned_weights(found) is not None


def test_products_that_can_have_no_levels_hinder_nothing() -> None:
    """A network all of whose layers get integers for their weights has a BATCH_MATMUL, which is
    learned by default and cannot be.
    """
    model = network((20, 20, 20))
    graph = model.graph
    last = graph.outputs[0]
    graph.append(BatchMatMul(last, last, adjoint_rhs=True), "product")
    graph.outputs = [graph.ops[-1].results[0]]
    layers = [{"name": op.name, "scheme": "dynamic"} for op in graph.ops if has_weights(op)]
    data = random(1, 40, 20)
    result = luciole.quantize(model, data, config={"layers": layers}, proof=False)
    assert {layer.weight_bits for layer in result.report.layers} == {8}


def test_what_moves_elements_follows_the_integers_in_front() -> None:
    graph = images().graph
    names = {op: op.name for op in graph.ops}
    layers: dict[str, LayerFormat] = dict.fromkeys(["t5", "t10", "t13", "t31", "t35"], BYTES)
    layers["t19"] = FLOAT

    def integers(formats: dict[str, LayerFormat]) -> set[str]:
        known = {op: formats[name] for op, name in names.items() if name in formats}
        return {names[op] for op, format in joined(graph, known).items() if format == BYTES}

    assert integers(layers) - layers.keys() == {"t32"}  # a TANH with integers on both sides
    moved = {"t22", "t23", "t24", "t26"}  # two poolings joined and reshaped
    assert integers(layers | {"t21": BYTES}) - layers.keys() == {"t14", "t21", "t32"} | moved


def test_choices_are_by_short_name_kind_and_default() -> None:
    graph = images().graph
    rules = {"layers": [{"operator": "add", "scheme": "float"}, {"pattern": "t2?", "skip": True}]}
    found = configured(Config.parse(rules, Choice()), "int8")(graph)
    floats = {op.name for op, format in found.items() if format == FLOAT}
    assert floats == {"t14", "t20", "t21", "t22", "t23", "t24", "t26"}
    assert set(found.values()) == {FLOAT, BYTES}


@pytest.mark.parametrize(
    ("choices", "sentence"),
    [
        ({"scheme": "int8", "config": {"layers": [{"name": "t99"}]}}, "'t99' matches no layer"),
        ({"config": {"layers": [{"operator": "SIN", "scheme": "int8"}]}}, "'SIN' matches no layer"),
        ({"config": {"layers": [{"name": "t5", "scheme": "int9"}]}}, "scheme is 'int9'"),
        ({"spared": "int9"}, "spared is 'int9'"),
        ({"config": {"scheme": "int8"}, "target_drop": 1.0}, "does not go with schemes"),
        ({"config": {"scheme": "int8"}, "method": "published"}, "'published'"),
    ],
)
def test_mixing_refuses_what_it_does_not_understand(choices: dict[str, Any], sentence: str) -> None:
    with pytest.raises(QuantizeError, match=sentence):
        mixed(images(), **choices)


def test_an_operator_without_integers_says_so_beside_what_was_chosen() -> None:
    result = mixed(with_sine(), scheme="int8")
    assert [text.split()[0] for text in result.report.floats] == ["SIN"]
    assert "its format is float" not in result.report.floats[0]
