"""One layer: the learned form against the baseline, stages, and data that is short or odd."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from luciole.ir import Array
from luciole.lquantizer.assignment.config import Choice
from luciole.lquantizer.calibration.rows import Rows
from luciole.lquantizer.methods.output_aware import OutputAware
from luciole.lquantizer.network.even_inputs import quantized_rows
from luciole.lquantizer.network.problem import LayerProblem, LearnedLayer


@dataclass(frozen=True)
class Task(LayerProblem):
    """A layer, and how many bits to learn it with."""

    input_bits: int = 2
    weight_bits: int = 2


def learn(given: Task) -> LearnedLayer:
    """The fit's method on a task."""
    return OutputAware().learn(given, Choice(given.input_bits, given.weight_bits))


def task(
    records: int = 300, inputs: int = 24, outputs: int = 6, bits: int = 2, seed: int = 0
) -> Task:
    """Rows as behind a TANH, from four sources; one row for each record."""
    generator = np.random.default_rng(seed)
    mixed = generator.normal(size=(records, 4)) @ generator.normal(size=(4, inputs))
    rows = np.tanh(mixed + 0.5 * generator.normal(size=(records, inputs))).astype(np.float32)
    weights = (generator.normal(size=(outputs, inputs)) / inputs**0.5).astype(np.float32)
    bias = generator.normal(size=outputs).astype(np.float32)
    targets = rows @ weights.T + bias
    given = (Rows(rows, None), targets, weights, bias, np.arange(records))
    return Task(*given, seed=seed, input_bits=bits, weight_bits=bits)


def with_rows(given: Task, rows: Array) -> Task:
    """The same layer on other inputs."""
    targets = rows @ given.weights.T + given.bias
    return replace(given, rows=Rows(rows, None), targets=targets, records=np.arange(len(rows)))


def error(learned: LearnedLayer, rows: Array, targets: Array) -> float:
    """Mean squared error of the quantized layer's outputs."""
    z = quantized_rows(Rows(rows, None), learned.inputs)
    y = z @ learned.weights.values() + learned.bias
    return float(np.mean(np.square(y - targets, dtype=np.float64)))


def assert_usable(learned: LearnedLayer, given: Task) -> None:
    """Every number is finite, and the layer is no worse than answering with the targets' mean."""
    assert np.isfinite(learned.weights.values()).all()
    assert np.isfinite(learned.bias).all()
    assert all(np.isfinite(mse) for mse in learned.stages.values())
    spread = float(np.mean(np.var(given.targets.astype(np.float64), axis=0)))
    tiny = 1e-6 * float(np.mean(given.targets.astype(np.float64) ** 2))
    assert error(learned, given.rows.values, given.targets) <= 1.1 * spread + tiny


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_a_learned_layer_beats_the_baseline_on_rows_it_has_not_seen(bits: int) -> None:
    given = task(600, bits=bits)
    rows, fresh = given.rows.values[:400], given.rows.values[400:]
    learned = learn(with_rows(given, rows))
    wanted = fresh @ given.weights.T + given.bias
    assert learned.stages["output_aware"] < 0.8 * learned.stages["baseline"]
    assert error(learned, fresh, wanted) < 0.8 * learned.stages["baseline"]


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_stages_are_in_order_and_the_best_way_is_taken(bits: int) -> None:
    """Inputs are never negative, as behind a RELU: an offset helps."""
    given = task(bits=bits)
    learned = learn(with_rows(given, np.maximum(given.rows.values, 0)))
    assert list(learned.stages) == ["baseline", "offset", "output_aware"]
    assert learned.stages["output_aware"] < learned.stages["offset"] < learned.stages["baseline"]
    assert learned.way.startswith("output-aware")


def test_the_bias_gives_outputs_their_mean() -> None:
    given = task()
    learned = learn(given)
    assert learned.inputs is not None
    y = quantized_rows(given.rows, learned.inputs) @ learned.weights.values() + learned.bias
    np.testing.assert_allclose(y.mean(0), given.targets.mean(0), atol=1e-5)


def test_weights_have_offsets_at_one_bit_only() -> None:
    """All weights are positive: one bit without an offset would be far off."""
    given = task(bits=1)
    positive = with_rows(replace(given, weights=np.abs(given.weights)), given.rows.values)
    learned = learn(positive)
    assert learned.way.endswith(", offset")
    assert np.all(learned.weights.offset != 0)
    for bits in (2, 3, 4):
        learned = learn(replace(positive, input_bits=bits, weight_bits=bits))
        assert "offset" not in learned.way
        assert np.all(learned.weights.offset == 0)


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_a_last_layer_is_refitted_at_one_bit_only(bits: int) -> None:
    """Coarse inputs that are correlated: refitted weights are best, where they may be."""
    given = replace(task(bits=bits), input_bits=1)
    assert "refit" in learn(given).way
    assert ("refit" in learn(replace(given, is_last=True)).way) == (bits == 1)


def test_the_same_seed_gives_the_same_layer() -> None:
    first, again = learn(task(bits=1)), learn(task(bits=1))
    assert first.way == again.way
    assert first.stages == again.stages
    np.testing.assert_array_equal(first.weights.code, again.weights.code)
    np.testing.assert_array_equal(first.weights.basis, again.weights.basis)
    np.testing.assert_array_equal(first.bias, again.bias)


def test_elements_outside_the_image_do_not_shape_the_levels_and_stay_zero() -> None:
    given = task()
    shifted = given.rows.values + np.float32(5)
    inside = np.ones(shifted.shape, np.bool_)
    inside[::2, :4] = False
    rows = np.where(inside, shifted, np.float32(0))
    learned = learn(replace(with_rows(given, rows), rows=Rows(rows, inside)))
    assert learned.inputs is not None
    z = quantized_rows(Rows(rows, inside), learned.inputs)
    assert np.all(z[~inside] == 0)
    assert z[inside].min() > 3


# -------------------------------------------------------------------------------- odd data
@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize("records", [1, 2, 4, 5, 9])
def test_few_records(records: int, bits: int) -> None:
    """Fewer records than the layer has inputs, and too few to hold one back."""
    given = task(records, bits=bits)
    assert_usable(learn(given), given)


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_one_huge_element(bits: int) -> None:
    given = task(bits=bits)
    rows = given.rows.values.copy()
    rows[7, 3] = 1e4
    given = with_rows(given, rows)
    learned = learn(given)
    assert_usable(learned, given)
    assert learned.inputs is not None
    level = quantized_rows(given.rows, learned.inputs)
    assert level[7, 3] == pytest.approx(1e4, rel=0.1)
    assert np.abs(np.delete(level, 7, axis=0)).max() < 100


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_an_input_channel_that_never_varies(bits: int) -> None:
    given = task(bits=bits)
    rows = given.rows.values.copy()
    rows[:, 5], rows[:, 9] = 0.7, 0
    given = with_rows(given, rows)
    learned = learn(given)
    assert_usable(learned, given)
    assert learned.stages["output_aware"] < learned.stages["baseline"]


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_a_row_of_zero_weights_gives_its_bias(bits: int) -> None:
    given = task(bits=bits)
    weights = given.weights.copy()
    weights[2] = 0
    given = with_rows(replace(given, weights=weights), given.rows.values)
    learned = learn(given)
    assert_usable(learned, given)
    z = quantized_rows(given.rows, learned.inputs)
    y = z @ learned.weights.values() + learned.bias
    np.testing.assert_allclose(y[:, 2], given.bias[2], atol=1e-4)


@pytest.mark.parametrize("bits", [1, 2, 3])
@pytest.mark.parametrize("value", [0.0, 0.3, -2.0])
def test_inputs_that_are_all_equal(bits: int, value: float) -> None:
    given = task(bits=bits)
    given = with_rows(given, np.full_like(given.rows.values, value))
    learned = learn(given)
    assert np.isfinite(learned.weights.values()).all()
    y = quantized_rows(given.rows, learned.inputs) @ learned.weights.values() + learned.bias
    np.testing.assert_allclose(y, given.targets, atol=1e-4)


@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (1, 4), (24, 1)])
@pytest.mark.parametrize("bits", [1, 3])
def test_one_input_or_one_output(inputs: int, outputs: int, bits: int) -> None:
    given = task(200, inputs, outputs, bits)
    assert_usable(learn(given), given)
