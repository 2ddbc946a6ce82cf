"""Which layer loses what: what was spoiled is found, and losses are those of whole networks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import luciole
from luciole.interpreter.records import first_output
from luciole.ir import Array, Model
from luciole.lquantizer import QuantizeError, Result
from luciole.lquantizer.judging.records import Split
from luciole.lquantizer.search.sensitivity import Sensitivity
from tests.lquantizer.networks import images, spoiled, with_sine
from tests.lquantizer.runs import COARSE, records


def noise(model: Model, made: Model, x: dict[str, Array]) -> float:
    outputs = [first_output(m, x) for m in (model, made)]
    return float(np.square(outputs[1] - outputs[0]).mean() / np.square(outputs[0]).mean())


@cache
def measured(make: Callable[[], Model]) -> Sensitivity:
    """What layers of a network lose, measured once for all tests."""
    model = make()
    return luciole.sensitivity(model, records(model), **COARSE)


def test_what_integers_do_not_suit_loses_more_and_no_other_layer_does() -> None:
    plain, found = (
        {layer.name: layer for layer in measured(make).layers} for make in (images, spoiled)
    )
    assert found.keys() == plain.keys() == {"t5", "t10", "t13", "t19", "t31", "t35"}
    grown = {name: found[name].weights.noise / plain[name].weights.noise for name in plain}
    assert grown.pop("t13") > 4
    assert grown == pytest.approx(dict.fromkeys(grown, 1.0), rel=1e-3)


def test_layers_come_by_what_they_lose_alone() -> None:
    found = measured(images)
    alone = [layer.only.noise for layer in found.layers]
    assert alone == sorted(alone, reverse=True)
    assert found.layers[0].others.noise < found.whole.noise
    assert len(found.spared) == 4
    assert found.between is not None
    assert found.lines()[1].startswith("operators without weights alone: ")
    assert found.between.noise > max(layer.activations.noise for layer in found.layers)
    assert found.spared[0].noise == found.layers[0].others.noise
    assert found.spared[3].noise < found.spared[0].noise


def test_losses_are_those_of_networks_quantized_that_way() -> None:
    model = spoiled()
    whole_data = records(model)
    found = measured(spoiled)
    split = Split.for_choices(whole_data)
    x = {name: np.asarray(array) for name, array in split.judges.records.items()}

    def quantized(*rules: dict[str, str]) -> Result:
        choices = {**COARSE, "config": {"layers": [*rules]}} if rules else COARSE
        return luciole.quantize(model, split.learned, proof=False, **choices)

    whole = quantized()
    assert found.whole.noise == pytest.approx(noise(model, whole.model, x), rel=1e-3)
    wide = {row.name for row in whole.report.layers if row.format == "int:w8a8"}
    assert wide, "small layers at the ends have 8 bits"
    for layer in (found.layers[0], next(one for one in found.layers if one.name in wide)):
        own = "int8" if layer.name in wide else "w4a8"
        nothing, rule = {"regex": ".*", "scheme": "float"}, {"name": layer.name, "scheme": own}
        alone = quantized(nothing, rule).model
        assert layer.only.noise == pytest.approx(noise(model, alone, x), rel=1e-3)
        ends = [{"name": name, "scheme": "int8"} for name in wide - {layer.name}]
        others = quantized({"name": layer.name, "scheme": "float"}, *ends).model
        assert layer.others.noise == pytest.approx(noise(model, others, x), rel=1e-3)


def test_rows_have_a_bar_each_and_the_first_is_the_longest() -> None:
    found = luciole.sensitivity(with_sine(), records(with_sine()), scheme="int8")
    head, *rows = found.rows()
    assert head[2] == "only it"
    bars = [len(row[1]) for row in rows]
    assert bars == sorted(bars, reverse=True)
    assert bars[0] == 24
    assert found.lines()[0].startswith("the whole network: ")
    assert found.between is None, "a sine stays float"
    text = str(found).splitlines()
    assert text[0].startswith("signal/noise of the output")
    assert [line.split()[0] for line in text[2 : 2 + len(rows)]] == [row[0] for row in rows]
    assert text[2 + len(rows) :] == found.lines()


@pytest.mark.parametrize("scheme", ["dynamic", "float16"])
def test_sensitivity_refuses_what_learns_nothing(scheme: str) -> None:
    with pytest.raises(QuantizeError, match=f"not of the scheme {scheme}"):
        luciole.sensitivity(images(), records(images()), scheme=scheme)


def test_sensitivity_refuses_learned_levels_and_no_data() -> None:
    with pytest.raises(QuantizeError, match="uniform integers"):
        luciole.sensitivity(images(), records(images()), scheme="learned")
    with pytest.raises(QuantizeError, match="give some"):
        luciole.sensitivity(images())
