"""Integers between operators under weights of 1 to 3 bits: codes of learned integers."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import Array, Model, Op, TensorType
from luciole.ir.analysis.weights import weights_of
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.levelsdecode import LevelsDecode
from luciole.lquantizer import QuantizeError, Result
from luciole.lquantizer.assignment.format_of import word_of
from luciole.lquantizer.formats.integers import Integers, with_room_for_bias
from luciole.lquantizer.formats.stored_levels import StoredLevels
from luciole.lquantizer.training import UniformSettings
from luciole.lquantizer.training.leveled_weights import LeveledWeights
from luciole.lquantizer.training.uniform_trainer import UniformTrainer
from tests.lquantizer.networks import images
from tests.lquantizer.runs import QUICK, integers_of_litert, records
from tests.networks import network, random


def made(scheme: str, **choices: Any) -> Model:
    """A copy of what is made once for all tests."""
    return _made(scheme, json.dumps(choices)).clone()


@cache
def _made(scheme: str, choices: str) -> Model:
    model = images()
    return luciole.quantize(
        model, records(model), scheme=scheme, **QUICK, **json.loads(choices)
    ).model


EVERY = {"config": {"scheme": "int:w2a8"}}
"""Every layer, those at the ends and the depthwise one, too."""


def layers_of(model: Model) -> list[Op]:
    kinds = (Conv2D, DepthwiseConv2D, FullyConnected)
    return [op for op in model.graph.ops if isinstance(op, kinds)]


@pytest.mark.parametrize("scheme", ["int:w1a8", "int:w2a8", "int:w3a8", "int:w2a16"])
def test_layers_hold_codes_and_say_so(scheme: str) -> None:
    model = from_bytes(to_bytes(made(scheme)))
    bits, width = int(scheme[5]), scheme.partition("a")[2]
    words = [word_of(op) for op in layers_of(model)]
    assert set(words) <= {scheme, f"int:w4a{width}", f"int:w8a{width}"}
    assert words.count(scheme) >= 1
    decoders = [op for op in model.graph.ops if isinstance(op, LevelsDecode)]
    assert {op.basis.dims[1] for op in decoders} == {bits}
    assert {op.output.dtype for op in decoders} == {TensorType.INT8}


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_layers_whose_levels_take_as_much_as_4_bits_have_4_bits(bits: int) -> None:
    """The file is no larger than where each has levels, which its user may ask for."""
    model = made(f"int:w{bits}a8")
    words = {op.name.partition("/")[0]: word_of(op) for op in layers_of(model)}
    assert "int:w4a8" in words.values()
    rules = [{"pattern": name, "scheme": word} for name, word in words.items()]
    widened = [rule for rule in rules if rule["scheme"] == "int:w4a8"]
    few = [rule | {"scheme": f"int:w{bits}a8"} for rule in widened]
    others = [rule for rule in rules if rule not in widened]
    each = made("int8", config={"layers": [*others, *few]})
    assert len(to_bytes(model)) <= len(to_bytes(each))


def test_every_integer_is_that_of_litert(tmp_path: Path) -> None:
    """Its kernels compute with the weights that the codes stand for."""
    path = tmp_path / "q.tflite"
    model = made("int8", **EVERY)
    assert {word_of(op) for op in layers_of(model)} == {"int:w2a8"}
    plain = luciole.optimize(model, passes="unpack_levels")
    for op in plain.graph.ops:  # LiteRT's reference resolver stops there
        op.version = min(op.version, 6) if isinstance(op, DepthwiseConv2D) else op.version
    luciole.save(plain, path)
    ours = luciole.Interpreter(model, keep_tensors=True)
    x = random(9, 1, 8, 8, 3)
    ours.run({"x": x})
    compared = 0
    for name, expected in integers_of_litert(path, x).items():
        value = next((v for v in ours.graph.values if v.name == name), None)
        if value is not None and value.producer is not None:
            array = ours.get_tensor(ours.graph.values.index(value))
            np.testing.assert_array_equal(array, expected, name)
            compared += 1
    assert compared > 12


def test_weights_read_as_the_numbers_that_layers_multiply_with() -> None:
    model = made("int8", **EVERY)
    plain = luciole.optimize(model, passes="unpack_levels")
    for op, twin in zip(layers_of(model), layers_of(plain), strict=True):
        weights, decoded = weights_of(op), weights_of(twin)
        assert weights is not None
        assert decoded is not None
        assert weights.format.bits == 2
        np.testing.assert_allclose(weights.values(), decoded.values(), rtol=1e-6)


def test_onnx_files_hold_the_integers_that_codes_stand_for() -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = made("int8", **EVERY)
    session = runtime.InferenceSession(to_bytes(model, "onnx"))
    ours = luciole.Interpreter(model)
    for one in records(images(), 8, seed=4)["x"]:
        (theirs,) = session.run(None, {session.get_inputs()[0].name: one[None]})
        (expected,) = ours.run({"x": one[None]}).values()
        np.testing.assert_allclose(theirs, expected, atol=1.01 / 256)


def test_more_bits_are_closer() -> None:
    model = images()
    x = records(model, 64, seed=8)

    def error(scheme: str) -> float:
        pairs = [(luciole.Interpreter(m)) for m in (model, made(scheme))]
        rows = [{"x": one[None]} for one in x["x"]]
        ours, other = (
            np.concatenate([next(iter(i.run(row).values())) for row in rows]) for i in pairs
        )
        return float(np.square(ours - other).mean())

    errors = [error(f"int:w{bits}a8") for bits in (1, 2, 3)] + [error("int8")]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 4 * errors[2]


def test_weights_alone_are_enough_where_they_are_rounded_to_the_nearest() -> None:
    model = images()
    fitted = luciole.quantize(model, records(model), scheme="int8", rounding="nearest", **QUICK)
    assert fitted.ranges is not None
    plain = luciole.quantize(
        model, None, scheme="int:w3a8", rounding="nearest", ranges_from=fitted.ranges
    ).model
    assert "int:w3a8" in {word_of(op) for op in layers_of(plain)}


def test_one_scale_for_a_layer_is_refused() -> None:
    with pytest.raises(QuantizeError, match="granularity 'tensor' does not go with"):
        made("int:w2a8", granularity="tensor")


@cache
def tuned() -> tuple[Model, Array, Result]:
    """A network whose first layer has levels for each output, the others for all of theirs."""
    model = network((80, 48, 24, 4))
    x = random(3, 200, 80)
    choices: dict[str, Any] = {"config": {"scheme": "int:w2a8"}, "rounding": "nearest"}
    return model, x, luciole.quantize(model, x, scheme="int8", **choices, **QUICK)


@pytest.mark.parametrize("weights", [False, True])
def test_training_moves_levels_and_gives_files_of_them(weights: bool) -> None:
    model, x, start = tuned()
    settings = UniformSettings(train_weights=weights, batch=10, learning_rate=5e-2, seed=1)
    result = luciole.finetune(start, model, x, epochs=3, settings=settings)
    assert result.gained
    trained = from_bytes(to_bytes(result.model))
    assert {word_of(op) for op in layers_of(trained)} == {"int:w2a8"}
    first, best = (epoch.held_back_loss or 0.0 for epoch in (result.history[0], result.best))
    assert 0 < best < 0.9 * first


@pytest.mark.parametrize("weights", [False, True])
def test_students_compute_what_their_files_do(weights: bool) -> None:
    """Before training, and when levels have outgrown their steps."""
    model, x, start = tuned()
    assert start.rounded is not None
    settings = UniformSettings(train_weights=weights)
    trainer = UniformTrainer(start.rounded, model, settings, start.latents)
    is_like_its_file(trainer, x[:20])
    for one in trainer._weights:
        assert isinstance(one, LeveledWeights)
        one._basis.assign(one._basis * np.float32(1.37))
    is_like_its_file(trainer, x[:20])


def is_like_its_file(trainer: UniformTrainer, x: Array) -> None:
    made = trainer.rounded()
    interpreter = luciole.Interpreter(made.model)
    outputs = [next(iter(interpreter.run({"x": one[None]}).values())) for one in x]
    (output,) = trainer.model.graph.outputs
    student = np.asarray(trainer.student([x])[output])
    step = float(np.ptp(student)) / 255
    np.testing.assert_allclose(student, np.concatenate(outputs), atol=1.01 * step)
    exact = np.isclose(student, np.concatenate(outputs), atol=1e-5)
    assert exact.mean() > 0.95


def test_levels_shrink_with_the_scale_that_a_bias_asks_for() -> None:
    levels = StoredLevels(np.array([[0, 3], [1, 2]]), np.array([[80, 40], [80, 40]], np.int8))
    codes = levels.values().astype(np.int8)
    learned = Integers(
        codes, np.full(2, 1e-9, np.float32), np.array([4.0, 0.0], np.float32), levels
    )
    wider = with_room_for_bias(learned, 1.0)
    assert wider.levels is not None
    np.testing.assert_array_equal(wider.codes, wider.levels.values())
    np.testing.assert_array_equal(wider.codes[1], codes[1])
    np.testing.assert_allclose(wider.codes[0] * wider.scales[0], codes[0] * 1e-9, atol=4e-9)
