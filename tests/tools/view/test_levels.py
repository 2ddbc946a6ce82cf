"""What is said of learned levels: against the format's own arithmetic and plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luciole
from luciole.drawing.blobs import Blobs
from luciole.drawing.levels import (
    InputHistogram,
    Original,
    error_json,
    layer_name,
    learned_weights,
    levels_json,
)
from luciole.ir import Array, Graph, learned_levels
from luciole.ir.analysis.widths import bits_of
from luciole.ir.ops import bcq_fully_connected
from luciole.ir.ops.bcq_fully_connected import BCQFullyConnected
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.tools.data import load_data
from luciole.watching import input_histograms
from tests.support import one_op
from tests.tools.view.conftest import Digits


def random(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def dense(o: int, kw: int, n: int, kx: int = 2) -> LQFullyConnected:
    words = learned_levels.pack(random(1, o, kw, n) > 0)
    operands = [random(0, 1, n), abs(random(2, kx)), random(3, o, kw), words, None, random(4, o)]
    op = one_op(LQFullyConnected, operands, range(1, 6), hidden_size=n, input_offset=0.25)
    found = op.graph.ops[0]
    assert isinstance(found, LQFullyConnected)
    return found


def array(blobs: Blobs, spec: dict[str, Any]) -> Array:
    return np.frombuffer(blobs.content(spec["blob"]), f"<{spec['type']}").reshape(spec["shape"])


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_weights_levels_and_counts_are_the_formats(bits: int) -> None:
    op, blobs = dense(5, bits, 70), Blobs()
    basis, words = op.weights_scales.data, op.weights_binary.data
    assert basis is not None
    assert words is not None
    assert op.weights_offsets is not None
    offsets = op.weights_offsets.data
    assert offsets is not None
    weights = learned_levels.decode(words, basis, 70, offsets)
    learned = learned_weights(op)
    assert learned is not None
    np.testing.assert_allclose(learned.values(), weights, atol=1e-12)

    facts = levels_json(op, None, {}, blobs)
    assert facts is not None
    np.testing.assert_allclose(
        array(blobs, facts["weights"]["values"]), weights, rtol=1e-5, atol=1e-6
    )
    levels = array(blobs, facts["weights"]["levels"])
    assert (np.diff(levels) >= 0).all()
    near = np.abs(weights[:, :, None] - levels[:, None, :]) < 1e-5
    np.testing.assert_array_equal(array(blobs, facts["weights"]["counts"]), near.sum(1))
    signs = (array(blobs, facts["weights"]["codes"])[..., None] >> np.arange(bits)) & 1
    spanned = ((signs * 2 - 1) * basis[:, None, :]).sum(-1) + offsets[:, None]
    np.testing.assert_allclose(levels, spanned, rtol=1e-5, atol=1e-6)


def test_the_inputs_levels_and_thresholds_are_the_formats() -> None:
    op = dense(3, 2, 40, kx=3)
    facts = levels_json(op, None, {op.name: InputHistogram(0, 1, [1, 2], "test")}, Blobs())
    assert facts is not None
    levels = np.array(facts["input"]["levels"])
    np.testing.assert_allclose(
        facts["input"]["thresholds"], (levels[1:] + levels[:-1]) / 2, rtol=1e-4, atol=1e-6
    )
    basis = np.array(facts["input"]["basis"])
    np.testing.assert_allclose(
        [levels.min(), levels.max()], [0.25 - basis.sum(), 0.25 + basis.sum()], rtol=1e-4
    )
    assert facts["input"]["histogram"]["counts"] == [1, 2]


def test_a_convolutions_weights_are_in_the_order_of_its_float_filter() -> None:
    o, kw, kh, width, c = 3, 2, 2, 3, 5
    signs = random(5, o, kw, kh, width, c) > 0
    scales = random(6, o, kw)
    operands = [
        random(7, 1, 8, 8, c),
        abs(random(8, 2)),
        scales,
        learned_levels.pack(signs),
        None,
        None,
    ]
    model = one_op(LQConv2D, operands, range(1, 4), input_channels=c, stride_w=1, stride_h=1)
    learned = learned_weights(model.graph.ops[0])
    assert learned is not None
    filter = np.einsum("okhwc,ok->ohwc", np.where(signs, 1.0, -1.0), scales.astype(np.float64))
    np.testing.assert_allclose(learned.values(), filter.reshape(o, -1), atol=1e-12)


def test_a_layer_with_two_widths_has_the_weights_that_its_operator_decodes() -> None:
    clusters = np.array([[2, 3], [1, 2]], np.int32)
    scales, words = random(1, 8), learned_levels.pack(random(2, 8, 64) > 0)
    operands = [random(3, 64, 1), scales, words, None, clusters]
    model = one_op(BCQFullyConnected, operands, (1, 2, 4), weights_hidden_size=64)
    learned = learned_weights(model.graph.ops[0])
    assert learned is not None
    assert learned.format.widths is not None
    assert learned.format.widths.tolist() == [2, 2, 2, 1, 1]
    wanted = bcq_fully_connected.decoded(scales, words, clusters, 64)
    np.testing.assert_allclose(learned.values(), wanted, atol=1e-6)
    assert bits_of(model.graph.ops[0]) == (2, 32)


def test_histograms_and_errors_are_those_of_the_original_weights(digits: Digits) -> None:
    model, original = luciole.load(digits.quantized), luciole.load(digits.float_model)
    op, float_op = model.graph.ops[1], original.graph.ops[2]
    weights = float_op.operands[1]
    assert weights is not None
    wanted = weights.data
    assert wanted is not None
    blobs = Blobs()
    facts = levels_json(op, Original(float_op, {}), {}, blobs)
    learned = learned_weights(op)
    assert facts is not None
    assert learned is not None
    ends, counts = (array(blobs, facts["weights"][k]) for k in ("ends", "histogram"))
    for row, (low, high), found in zip(wanted, ends.astype(np.float64), counts, strict=True):
        plain = np.histogram(row, len(found), (low, high))[0]
        assert found.sum() == len(row)
        assert abs(found.astype(np.int64) - plain).sum() <= 4, "float32 ends move few values"
    error = learned.values() - wanted
    assert facts["weights"]["error"]["mse"] == pytest.approx(np.square(error).mean(), rel=1e-4)
    np.testing.assert_allclose(
        array(blobs, facts["weights"]["channel_mse"]), np.square(error).mean(1), rtol=1e-5
    )
    levels = array(blobs, facts["weights"]["levels"])
    half = (levels[:, 1] - levels[:, 0]) / 2, (levels[:, -1] - levels[:, -2]) / 2
    beyond = (wanted < (levels[:, 0] - half[0])[:, None]) | (
        wanted > (levels[:, -1] + half[1])[:, None]
    )
    np.testing.assert_allclose(array(blobs, facts["weights"]["clipped"]), beyond.mean(1), atol=0.01)


def test_errors_of_known_numbers() -> None:
    found = error_json(np.array([3.0, -4.0]), np.array([3.0, -3.0]))
    assert found == {
        "mse": 0.5,
        "snr_db": pytest.approx(10 * np.log10(25), rel=1e-5),
        "cosine": pytest.approx(21 / (5 * 18**0.5), rel=1e-5),
        "peak": pytest.approx(1 / 7, rel=1e-5),
    }
    assert error_json(np.zeros(2), np.zeros(2)) == {
        "mse": 0.0,
        "snr_db": None,
        "cosine": None,
        "peak": None,
    }


def test_input_histograms_are_what_numpy_counts(digits: Digits) -> None:
    model = luciole.load(digits.quantized)
    records = load_data(digits.data, model.graph, limit=40, preprocess=digits.preprocess).records
    found = input_histograms(model, records, "test")
    first = found[model.graph.ops[0].name]
    values = next(iter(records.values())).reshape(-1).astype(np.float64)
    plain = np.histogram(values, len(first.counts), (first.low, first.high))[0]
    assert first.counts == plain.tolist()
    assert first.below + first.above + sum(first.counts) == values.size
    assert first.level_counts is not None
    assert sum(first.level_counts) == values.size
    facts = levels_json(model.graph.ops[0], None, {}, Blobs())
    assert facts is not None
    levels = np.array(facts["input"]["levels"])
    nearest = np.abs(values[:, None] - levels).argmin(1)
    assert first.level_counts == np.bincount(nearest, minlength=len(levels)).tolist()


def test_a_damaged_layer_has_no_levels_and_is_shown_all_the_same() -> None:
    op = dense(3, 2, 40)
    op.hidden_size = 500
    assert learned_weights(op) is None
    assert levels_json(op, None, {}, Blobs()) is None


def test_layers_of_more_bits_than_can_be_drawn_have_no_levels() -> None:
    """There would be 2^40 of them."""
    graph = Graph()
    x = graph.add_input("x", (32, 1))
    scales = graph.add_constant("s", np.ones(40, np.float32))
    words = graph.add_constant("w", np.zeros((40, 1), np.int32))
    clusters = graph.add_constant("c", np.array([[40, 1]], np.int32))
    op = BCQFullyConnected(x, scales, words, None, clusters, weights_hidden_size=32)
    graph.append(op, "y")
    assert levels_json(op, None, {}, Blobs()) is None


def test_layers_that_share_their_weights_are_summed_up_once() -> None:
    op, blobs = dense(3, 2, 40), Blobs()
    graph = op.graph
    assert graph is not None
    again = op.clone(op.operands)
    graph.append(again, "again")
    first, second = (levels_json(each, None, {}, blobs) for each in (op, again))
    assert first is not None
    assert second is not None
    assert first["weights"] is second["weights"]
    third = levels_json(dense(3, 2, 40), None, {}, blobs)
    assert third is not None
    assert third["weights"] is not first["weights"]


def test_a_layer_is_called_as_its_constants_are(digits: Digits) -> None:
    op = luciole.load(digits.quantized).graph.ops[0]
    assert (op.name, layer_name(op)) == ("hidden/tanh", "hidden")
    assert layer_name(dense(3, 2, 40)) == "y0"
