"""Channels between two layers are rescaled: floats stay what they are, integers come closer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luciole
from luciole.interpreter.compare import compare
from luciole.interpreter.records import outputs_of
from luciole.ir import Model
from luciole.ir.equalization import equalized
from luciole.ir.ops.conv_2d import Conv2D
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.calibration.saved import Rescaled
from luciole.lquantizer.network.rescale import RULES, pairs_of, rescale, rescale_again
from luciole.schema.enums import ActivationFunctionType as Act
from tests.fuzz.rewriting.anywhere import uneven
from tests.fuzz.rewriting.maker import Maker
from tests.fuzz.rewriting.sequences import lstm
from tests.lquantizer.rescale_support import answers, network, records
from tests.networks import random


def error(uneven: bool, **choices: Any) -> float:
    model = network(Act.RELU6, uneven)
    made = luciole.quantize(model, records(), scheme="int8", **choices).model
    return float(np.square(answers(made) - answers(model)).mean())


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("activation", [Act.NONE, Act.RELU, Act.RELU6])
def test_the_float_network_stays_what_it_is(activation: Act, rule: str) -> None:
    model = network(activation, uneven=True)
    before = [v.data for v in model.graph.values if v.data is not None]
    wanted = answers(model)
    rescale(model, list(pairs_of(model.graph)), records(), 16, [RULES[rule]], None)
    np.testing.assert_allclose(answers(model), wanted, atol=1e-5)
    after = [op.operands[1].data for op in model.graph.ops if op.operands[1] is not None]
    same = [a is not None and any(np.array_equal(a, b) for b in before) for a in after]
    assert not any(same)


@pytest.mark.parametrize("granularity", ["channel", "tensor"])
def test_uneven_channels_cost_next_to_nothing(granularity: str) -> None:
    lost = error(True, granularity=granularity, rescale="none")
    repaired = error(True, granularity=granularity)
    even = error(False, granularity=granularity, rescale="none")
    assert repaired < lost / 4
    assert repaired < 2.5 * even


def test_a_channel_that_is_cut_off_is_left_alone_and_none_is_lifted_there() -> None:
    model = network(Act.RELU6, uneven=False)
    first = model.graph.ops[0]
    assert isinstance(first, Conv2D)
    weights = first.filter.data
    assert weights is not None
    larger = weights.copy()
    larger[0] *= 60
    first.filter.set_data(larger)
    wanted = answers(model)
    rescale(model, list(pairs_of(model.graph)), records(), 16, [RULES["weights"]], None)
    kept = first.filter.data
    assert kept is not None
    np.testing.assert_array_equal(kept[0], larger[0])
    (reached,) = outputs_of(luciole.Interpreter(_up_to_first(model)), records()).values()
    assert reached[..., 1:].max() < 6
    np.testing.assert_allclose(answers(model), wanted, atol=1e-4)


def _up_to_first(model: Model) -> Model:
    copy = model.clone()
    copy.graph.outputs = [copy.graph.ops[0].output]
    return copy


def test_even_channels_are_no_worse_for_it() -> None:
    assert error(False) < 1.1 * error(False, rescale="none")


def test_another_rule_is_refused() -> None:
    choices: Any = {"scheme": "int8", "rescale": "some"}
    with pytest.raises(QuantizeError, match="rescale is 'some'"):
        luciole.quantize(network(Act.RELU, False), records(), **choices)


def test_what_is_not_rescaled_is_left_alone() -> None:
    """Where none is best no constant is copied: a file made again from saved ranges is the same."""
    model = network(Act.RELU6, uneven=True)
    errors = iter(range(100))
    pairs, rules = list(pairs_of(model.graph)), list(RULES.values())
    done = rescale(
        model, pairs, records(), 16, rules, lambda _, tried, __: [next(errors) for _ in tried]
    )
    assert done == []
    names = [value.name for op in model.graph.ops for value in op.operands[1:] if value is not None]
    assert names == ["w1", "b1", "w2", "w3", "b3"]


def test_a_network_is_rescaled_again_as_it_was() -> None:
    first, second = (network(Act.RELU6, uneven=True) for _ in range(2))
    pairs = list(pairs_of(first.graph))
    done = rescale(first, pairs, records(), 16, [RULES["weights"]], None)
    assert [pair.names for pair, _ in done] == [("y1", "y2"), ("y2", "y3")]
    again = [Rescaled(*pair.names, tuple(scales.tolist())) for pair, scales in done]
    rescale_again(second.graph, pairs_of(second.graph), again)
    for op, twin in zip(first.graph.ops, second.graph.ops, strict=True):
        for one, other in zip(op.operands[1:], twin.operands[1:], strict=True):
            if one is not None and other is not None:
                np.testing.assert_array_equal(one.data, other.data)


def test_rescaled_layers_are_compared_with_what_they_were() -> None:
    model = network(Act.RELU6, uneven=True)
    made = luciole.quantize(model, records(), scheme="int8").model
    found = compare(model, made, records())
    assert {note.original for note in equalized(made.graph).values()} == {"y1", "y2"}
    assert [layer.name for layer in found.layers] == ["y1", "y2", "y3"]
    assert all(layer.measures.snr_db > 15 for layer in found.layers if layer.measures.snr_db)


def test_layers_behind_one_with_state_are_rescaled() -> None:
    maker = Maker((1,))
    x = maker.input((1, 4, 6))
    maker.graph.outputs = [uneven(maker, lstm(maker, x))]
    data = {"x0": random(8, 20, 4, 6)}
    result = luciole.quantize(maker.model, data, scheme="int8", proof=False)
    one, other = (outputs_of(luciole.Interpreter(m), data) for m in (maker.model, result.model))
    (wanted,), (rounded,) = one.values(), other.values()
    assert np.square(rounded - wanted).mean() < 0.01 * np.square(wanted).mean()
    assert result.ranges is not None
    assert len(result.ranges.rescaled) == 1
