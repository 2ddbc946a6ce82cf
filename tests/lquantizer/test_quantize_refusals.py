"""What ``quantize`` refuses, and how it says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luciole
from luciole.interpreter import InputError
from luciole.ir import Graph, Model
from luciole.ir.ops.elementwise_binary import Add
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.calibration.watch import check_finite
from tests.networks import network, random, two_inputs, value_named

X = random(50, 120, 20)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_quantize_refuses_data_that_is_not_finite(bad: float) -> None:
    x = X.copy()
    x[77, 3] = bad
    for method in ("fit", "published"):
        with pytest.raises(QuantizeError, match=r"input 'x': element \[3\] of record 77 is"):
            luciole.quantize(network(), x, method=method)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_quantize_refuses_data_of_16_bits_that_is_not_finite(bad: float) -> None:
    """The largest number that may be is none of theirs."""
    x = np.ones((4, 3), np.float16)
    check_finite({"x": x})
    x[2, 1] = bad
    with pytest.raises(QuantizeError, match=r"input 'x': element \[1\] of record 2 is"):
        check_finite({"x": x})


def test_quantize_refuses_weights_that_are_not_finite() -> None:
    model = network()
    value_named(model, "fc1/weights").set_data(np.full((16, 20), np.nan, np.float32))
    with pytest.raises(QuantizeError, match="tensor 'fc1' becomes NaN or infinite"):
        luciole.quantize(model, X)


def test_quantize_refuses_a_model_without_dense_layers() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 20))
    graph.append(Add(x, x), "sum")
    graph.outputs = [graph.values[-1]]
    with pytest.raises(QuantizeError, match="nothing to quantize: it has no dense layer"):
        luciole.quantize(model, X, encode_bits=3)


def test_quantize_refuses_a_config_that_leaves_nothing() -> None:
    config = {"layers": [{"pattern": "*", "skip": True}]}
    sentence = "nothing to quantize: fc1: skipped by the config; fc2: skipped by the config"
    with pytest.raises(QuantizeError, match=sentence):
        luciole.quantize(network(), X, config=config)


def test_quantize_refuses_a_config_for_a_layer_that_is_not_there() -> None:
    config = {"layers": [{"name": "fc9", "skip": True}]}
    with pytest.raises(QuantizeError, match="'fc9' matches no layer; the layers are fc1, fc2"):
        luciole.quantize(network(), X, config=config)


@pytest.mark.parametrize(
    ("records", "error", "sentence"),
    [
        ({"y": X}, InputError, "the inputs are ['x'], the data has ['y']"),
        ({}, InputError, "the inputs are ['x'], the data has []"),
        ({"x": X[:, :19]}, InputError, "a record of 'x' is [20], the data has [19]"),
        ({"x": X[:0]}, InputError, "at least one, found [0]"),
        ({"x": X.astype(np.int64)}, InputError, "takes float32, the data has int64"),
        (np.float32(3), InputError, "first axis counts records"),
    ],
)
def test_quantize_refuses_records_that_do_not_fit(
    records: Any, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error) as raised:
        luciole.quantize(network(), records)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        (random(0, 4, 6), "the model has 2 inputs ['left', 'right']: give a dictionary of arrays"),
        ({"left": random(0, 4, 6)}, "the inputs are ['left', 'right'], the data has ['left']"),
        ({"left": random(0, 4, 6), "right": random(0, 3, 9)}, "at least one, found [3, 4]"),
    ],
)
def test_quantize_refuses_records_for_other_inputs(records: Any, sentence: str) -> None:
    with pytest.raises(luciole.LucioleError) as raised:
        luciole.quantize(two_inputs(), records)
    assert sentence in str(raised.value)


@pytest.mark.parametrize("bits", [0, 5, -1])
def test_quantize_refuses_widths_that_do_not_exist(bits: int) -> None:
    with pytest.raises(QuantizeError, match=f"bits are {bits}: 1 to "):
        luciole.quantize(network(), X, encode_bits=bits)
    with pytest.raises(QuantizeError, match=f"weight bits are {bits}: 1 to 4 are possible"):
        luciole.quantize(network(), X, weight_bits=bits)


def test_quantize_refuses_a_config_beside_its_old_name() -> None:
    with pytest.raises(
        QuantizeError, match=r"^recipe is the old name of config: give one of them$"
    ):
        luciole.quantize(network(), X, config={"encode_bits": 2}, recipe={"encode_bits": 2})
