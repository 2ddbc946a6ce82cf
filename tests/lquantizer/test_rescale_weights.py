"""Channels are rescaled in schemes that round weights alone, too: judged by records where there are
some, and on made-up inputs where there are none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.interpreter.records import outputs_of
from luciole.ir import Array, Model
from luciole.ir.ops.conv_2d import Conv2D
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.network.rescale import (
    RULES,
    WITHOUT_RECORDS,
    Floats,
    Pair,
    pairs_of,
    rescale,
)
from luciole.schema.enums import ActivationFunctionType as Act
from tests.lquantizer.rescale_support import answers, network, records

SCHEMES = ["weights", "weights4", "dynamic", "dynamic4"]


def lost(made: Model, model: Model) -> float:
    return float(np.square(answers(made) - answers(model)).mean())


def error(scheme: str, data: dict[str, Array] | None, *, uneven: bool, **choices: Any) -> float:
    """What a scheme loses of a network, through a RELU6 where there are data and a RELU else."""
    model = network(Act.RELU if data is None else Act.RELU6, uneven)
    return lost(luciole.quantize(model, data, scheme=scheme, proof=False, **choices).model, model)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("data", [records(), None])
def test_uneven_channels_cost_next_to_nothing(scheme: str, data: dict[str, Array] | None) -> None:
    plain = error(scheme, data, uneven=True, rescale="none")
    assert error(scheme, data, uneven=True) < plain / 3
    even = error(scheme, data, uneven=False, rescale="none")
    # made-up inputs tell less: with 4 bits 4.1 times as much is lost as with even channels
    assert error(scheme, data, uneven=True) < (5 if data is None else 3) * even


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("data", [records(), None])
def test_even_channels_are_no_worse_for_it(scheme: str, data: dict[str, Array] | None) -> None:
    plain = error(scheme, data, uneven=False, rescale="none")
    assert error(scheme, data, uneven=False) < 1.2 * plain


@pytest.mark.parametrize("rule", WITHOUT_RECORDS)
def test_a_rule_that_is_named_is_obeyed_without_records(rule: str) -> None:
    model = network(Act.RELU, uneven=True)
    choices: list[Any] = [rule, "none"]
    results = [luciole.quantize(model, scheme="weights", rescale=c, proof=False) for c in choices]
    names = [{value.name for value in result.model.graph.values} for result in results]
    assert {"y1/equalized", "y2/equalized"} <= names[0]
    assert not any("equalized" in name for name in names[1])


@pytest.mark.parametrize(("worse", "count"), [(1.001, 2), (1.05, 0)])
def test_channels_are_evened_out_where_made_up_inputs_cannot_tell(worse: float, count: int) -> None:
    """A depthwise layer has a scale for each channel: whatever its channels are multiplied by, the
    pair loses the same; but the next pair's inputs are made up with even channels.
    """
    twin = network(Act.RELU, uneven=True)
    pairs = list(pairs_of(twin.graph))

    def judge(_: Pair, tried: list[Floats], __: Array) -> list[float]:
        return [1.0 if (scales == 1).all() else worse for scales in tried]

    assert len(rescale(twin, pairs, None, 1, [RULES["weights"]], judge)) == count
    assert rescale(twin, pairs, records(), 8, [RULES["weights"]], judge) == []


@pytest.mark.parametrize("rule", WITHOUT_RECORDS)
def test_without_records_nothing_comes_nearer_to_where_it_is_cut_off(rule: str) -> None:
    """The first layer reads an input, of which nothing is known: its RELU6 may cut anything. What
    the second gives is bounded by the first one's 6: the channels that stay below 6 are scaled.
    """
    model = network(Act.RELU6, uneven=True)
    second = model.graph.ops[1]
    weights = second.operands[1]
    assert weights is not None
    assert weights.data is not None
    weights.set_data(weights.data * np.float32(0.1))
    first = model.graph.ops[0]
    assert isinstance(first, Conv2D)
    before = first.filter.data
    twin = model.clone()
    done = rescale(twin, list(pairs_of(twin.graph)), None, 1, [RULES[rule]], None)
    assert [pair.names for pair, _ in done] == [("y2", "y3")]
    (_, scales), *_ = done
    bounds = 6 * np.clip(weights.data, 0, None).sum((0, 1, 2))
    assert (scales[bounds >= 6] == 1).all()
    assert (bounds[bounds < 6] * scales[bounds < 6] < 6).all()
    assert (scales != 1).sum() > 4
    untouched = twin.graph.ops[0]
    assert isinstance(untouched, Conv2D)
    np.testing.assert_array_equal(untouched.filter.data, before)
    for size in (0.1, 1.0, 30.0):  # the float network stays what it is, whatever it is fed
        data = {name: array * np.float32(size) for name, array in records(7).items()}
        (wanted,), (found,) = (
            outputs_of(luciole.Interpreter(one), data).values() for one in (model, twin)
        )
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_the_quantizer_refuses_a_rule_that_asks_for_records_where_there_are_none() -> None:
    with pytest.raises(QuantizeError, match="rescale peaks learns from data: give some, or take"):
        luciole.quantize(network(Act.RELU, True), None, scheme="weights", rescale="peaks")


@pytest.mark.parametrize(
    ("scheme", "why"),
    [("float16", "whose weights have steps"), ("from_fake_quant", "whose ranges are those")],
)
def test_options_refuse_a_rule_that_a_scheme_does_not_obey(scheme: Any, why: str) -> None:
    with pytest.raises(QuantizeError, match=f"rescale does not go with the scheme {scheme}, {why}"):
        luciole.quantize(network(Act.RELU, True), None, scheme=scheme, rescale="weights")


def test_data_are_taken_by_every_scheme_of_weights(tmp_path: Path) -> None:
    from luciole.tools.quantize import main

    luciole.save(network(Act.RELU6, uneven=True), tmp_path / "m.tflite")
    np.save(tmp_path / "d.npy", records()["x"])
    for scheme in SCHEMES:
        files = [tmp_path / f"{scheme}{number}.tflite" for number in range(2)]
        words = [str(tmp_path / "m.tflite"), "--scheme", scheme, "--no-proof"]
        words += ["--data", str(tmp_path / "d.npy")]
        assert main([*words, "-o", str(files[0])]) == 0
        assert main([*words, "-o", str(files[1]), "--rescale", "none"]) == 0
        assert files[0].read_bytes() != files[1].read_bytes()
