"""The three stages on small networks, and the report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter
from luciole.interpreter.errors import InputError
from luciole.ir import Array, Model, learned_levels
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.lquantizer import (
    Choice,
    Config,
    Published,
    QuantizeError,
    Settings,
    quantize_records,
)
from luciole.lquantizer.formats.levels import Samples, fit
from luciole.lquantizer.report import LayerReport, Report
from luciole.schema.enums import ActivationFunctionType
from tests.lquantizer.runs import QUICK
from tests.networks import dense, network, random, two_inputs, value_named

X = random(50, 120, 20)
TWO = Config(Choice(2, 2))


def seen(model: Model, name: str, x: Array = X) -> Array:
    """What a tensor of a network holds for a batch."""
    interpreter = Interpreter(model)
    interpreter.run({model.graph.inputs[0].name: x})
    return interpreter.get_tensor(model.graph.values.index(value_named(model, name)))


def lq(model: Model, place: int) -> LQFullyConnected:
    op = model.graph.ops[place]
    assert isinstance(op, LQFullyConnected)
    return op


def data(op: LQFullyConnected, operand: int) -> Array:
    value = op.operands[operand]
    assert value is not None
    assert value.data is not None
    return value.data


def test_the_float_model_stays_as_it_is() -> None:
    model = network()
    before = to_bytes(model)
    result = quantize_records(model, {"x": X}, Published())
    assert to_bytes(model) == before
    assert [op.kind for op in result.model.graph.ops] == ["LQ_FULLY_CONNECTED"] * 2
    assert [v.name for v in result.model.graph.outputs] == ["fc2"]


def test_weights_are_fitted_output_by_output() -> None:
    model = network()
    op = lq(quantize_records(model, {"x": X}, Published(Settings(seed=3)), TWO).model, 0)
    weights = value_named(model, "fc1/weights").data
    assert weights is not None
    wanted = fit(Samples.of(weights), 2, Settings(seed=3)).basis.astype(np.float32)
    np.testing.assert_array_equal(data(op, 2), wanted)
    levels, _ = learned_levels.levels(wanted)
    nearest = np.abs(weights[:, :, None] - levels[:, None, :]).min(-1)
    found = learned_levels.decode(data(op, 3), data(op, 2), 20)
    np.testing.assert_allclose(np.abs(weights - found), nearest, atol=1e-6)


def test_the_first_input_basis_is_fitted_to_the_data() -> None:
    op = lq(quantize_records(network(), {"x": X}, Published(), TWO).model, 0)
    wanted = fit(Samples.compressed(X), 2, Settings()).basis[0]
    np.testing.assert_array_equal(data(op, 1), wanted.astype(np.float32))


@pytest.mark.parametrize(("place", "name"), [(1, "act1"), (2, "act2")])
def test_later_input_bases_are_refitted_on_the_quantized_networks_activations(
    place: int, name: str
) -> None:
    """Codes come from what the quantized network computes, targets from the float network."""
    model = network((20, 16, 12, 4))
    result = quantize_records(model, {"x": X}, Published(), TWO)
    own, wanted_values = seen(result.model, name), seen(model, name)
    start = fit(Samples.compressed(wanted_values), 2, Settings()).basis
    wanted = fit(Samples.compressed(own, wanted_values), 2, Settings(), start).basis
    found = data(lq(result.model, place), 1)
    np.testing.assert_allclose(found, wanted[0], rtol=1e-3)
    assert np.abs(found - start[0]).max() > 0.01 * np.abs(start).max()  # the refit did something


def test_the_report_says_what_was_done() -> None:
    model = network()
    config = Config.parse({"layers": [{"name": "fc2", "input_bits": 4}]}, Choice(3, 2))
    result = quantize_records(model, {"x": X}, Published(), config)
    first, last = result.report.layers
    assert (first.name, first.input_bits, first.weight_bits) == ("fc1", 3, 2)
    assert (last.name, last.input_bits, last.weight_bits) == ("fc2", 4, 2)
    assert first.skipped is None
    assert first.bytes_before == 4 * (16 * 20 + 16)
    assert first.bytes_after == 4 * (3 + 16 * 2 + 16 * 2 * 1 + 16)
    wanted, found = (seen(m, "fc2").astype(np.float64) for m in (model, result.model))
    mse = np.mean((wanted - found) ** 2)
    assert last.mse == pytest.approx(mse, rel=1e-3)
    assert last.snr_db == pytest.approx(10 * np.log10(np.mean(wanted**2) / mse), abs=0.01)
    assert result.report.warnings == []


def test_the_report_has_the_errors_of_weights_and_inputs() -> None:
    model = network()
    result = quantize_records(model, {"x": X}, Published(), TWO)
    op, report = lq(result.model, 1), result.report.layers[1]
    weights = value_named(model, "fc2/weights").data
    assert weights is not None
    error = np.mean((weights - learned_levels.decode(data(op, 3), data(op, 2), 16)) ** 2)
    assert report.weights_mse == pytest.approx(error, rel=1e-4)
    levels, _ = learned_levels.levels(data(op, 1))
    index = learned_levels.encode(seen(result.model, "act1"), learned_levels.thresholds(levels))
    error = np.mean((levels[index] - seen(model, "act1")) ** 2)
    assert report.input_mse == pytest.approx(error, rel=1e-3)


def test_layers_left_alone_are_in_the_report_in_execution_order() -> None:
    config = Config.parse({"layers": [{"name": "fc2", "skip": True}]}, Choice())
    result = quantize_records(network((20, 16, 8, 4)), {"x": X}, Published(), config)
    assert [(r.name, r.skipped) for r in result.report.layers] == [
        ("fc1", None),
        ("fc2", "skipped by the config"),
        ("fc3", None),
    ]
    left = result.report.layers[1]
    assert (left.input_bits, left.mse, left.bytes_before) == (None, None, left.bytes_after)
    kinds = [op.kind for op in result.model.graph.ops]
    assert kinds == ["LQ_FULLY_CONNECTED", "FULLY_CONNECTED", "TANH", "LQ_FULLY_CONNECTED"]


def test_the_report_has_no_row_for_an_operator_that_shares_a_layers_name() -> None:
    model = network()
    value_named(model, "act1").name = "fc1"
    names = [layer.name for layer in quantize_records(model, {"x": X}, Published()).report.layers]
    assert names == ["fc1", "fc2"]


def test_a_layer_that_sees_the_same_for_every_record_is_left_alone() -> None:
    model = network()
    still = model.graph.add_constant("still", random(3, 1, 20))
    model.graph.insert_before(model.graph.ops[0], Tanh(still), "computed")
    op = model.graph.ops[1]
    op.set_operand(0, model.graph.ops[0].output)
    dense(model.graph, model.graph.inputs[0], (4, 20), "fc3")
    model.graph.outputs = [value_named(model, "fc2"), value_named(model, "fc3")]
    report = quantize_records(model, {"x": X}, Published()).report
    assert [(r.name, r.skipped) for r in report.layers] == [
        ("fc1", "its input is constant"),
        ("fc2", "its input is constant"),
        ("fc3", None),
    ]


def test_more_bits_come_closer() -> None:
    errors = []
    for bits in (1, 2, 3, 4):
        report = luciole.quantize(network(), X, encode_bits=bits, proof=False).report
        errors.append(report.layers[-1].mse)
    assert errors == sorted(errors, reverse=True)  # type: ignore[type-var]  # figures, not None
    assert len(set(errors)) == 4


@pytest.mark.parametrize("method", ["gradient", "least_squares"])
@pytest.mark.parametrize("initialisation", ["random", "greedy"])
def test_the_same_settings_give_the_same_file(method: Any, initialisation: Any) -> None:
    settings = Settings(method, initialisation, seed=4)
    first, again = (
        luciole.quantize(network(), X, method="published", settings=settings, proof=False)
        for _ in range(2)
    )
    assert to_bytes(first.model) == to_bytes(again.model)


def test_quantize_reports_file_sizes() -> None:
    model = network()
    result = luciole.quantize(model, X, encode_bits=1, proof=False)
    assert result.report.bytes_before == len(to_bytes(model))
    assert result.report.bytes_after == len(to_bytes(result.model))


@pytest.mark.parametrize(
    ("given", "widths"),
    [
        ({"method": "fit"}, (3, 3)),
        ({"encode_bits": 2}, (2, 2)),
        ({"encode_bits": "w2a4"}, (4, 2)),
        ({"encode_bits": "levels:w2", "input_bits": 4}, (4, 2)),
        ({"encode_bits": 2, "input_bits": 4}, (4, 2)),
        ({"weight_bits": 4}, (3, 4)),
        ({"encode_bits": 4, "config": {"weight_bits": 2}}, (4, 2)),
        ({"encode_bits": 4, "recipe": {"weight_bits": 2}}, (4, 2)),  # its old name
    ],
)
def test_quantize_takes_widths(given: dict[str, Any], widths: tuple[int, int]) -> None:
    report = luciole.quantize(network(), X, proof=False, **given).report.layers[0]
    assert (report.input_bits, report.weight_bits) == widths


def test_models_with_several_inputs() -> None:
    model = two_inputs()
    records = {"right": random(1, 40, 9) * 5, "left": random(2, 40, 6)}
    result = luciole.quantize(model, records, encode_bits=4, method="published", proof=False)
    wanted, found = (Interpreter(m).run(records)["sum"] for m in (model, result.model))
    assert np.mean((wanted - found) ** 2) < 0.02 * np.mean(wanted**2)
    for place, name in enumerate(("left", "right")):
        basis = fit(Samples.compressed(records[name]), 4, Settings()).basis[0]
        np.testing.assert_array_equal(data(lq(result.model, place), 1), basis.astype(np.float32))


def test_models_whose_first_axis_is_no_batch() -> None:
    """Each record is [3, 20]; they run one at a time."""
    model = network(shape=(3, 20))
    result = luciole.quantize(model, X.reshape(40, 3, 20), encode_bits=2, proof=False)
    same = luciole.quantize(network(), X, encode_bits=2, proof=False)
    np.testing.assert_array_equal(data(lq(result.model, 0), 1), data(lq(same.model, 0), 1))


def test_progress_reaches_every_total() -> None:
    done: dict[str, list[int]] = {}

    def track(what: str, total: int) -> Any:
        done[what] = [total, 0]

        def advance(count: int) -> None:
            done[what][1] += count

        return advance

    quantize_records(network(), {"x": X}, Published(), track=track)
    assert done == {
        "float network": [120, 120],
        "learning layers": [2, 2],
        "quantized network": [120, 120],
    }


def test_one_bit_for_inputs_that_are_never_negative_is_warned_about() -> None:
    published: dict[str, Any] = {"method": "published", "proof": False}
    report = luciole.quantize(network(), np.abs(X), encode_bits=1, **published).report
    (warning,) = report.warnings
    assert warning.startswith("layer 'fc1': ")
    assert "inputs lie between" in warning
    assert "standardise the data" in warning
    for x, bits in ((np.abs(X), 2), (X, 1)):
        result = luciole.quantize(network(), x, encode_bits=bits, **published)
        assert result.report.warnings == []


def test_tables_show_names_on_one_line_and_widths() -> None:
    layers = [
        LayerReport("a\nb", snr_db=12.34, bytes_before=4000, bytes_after=300, format="int:w8a8"),
        LayerReport("float inputs", format="levels:w1"),
        LayerReport("c", skipped="too small"),
        LayerReport("d", skipped="too small"),
    ]
    assert Report(layers).rows() == [
        ("layer", "format", "signal/noise", "bytes"),
        (r"a\nb", "int:w8a8", "12.3", "4,000 -> 300"),
        ("float inputs", "levels:w1", "", "0 -> 0"),
    ]
    assert Report(layers).left_alone() == {"too small": ["c", "d"]}
    assert Report().rows() == [("layer", "format", "signal/noise", "bytes")]


def test_tables_show_the_stages_that_there_are() -> None:
    whole = {"baseline": 1.0, "offset": None, "output_aware": 3.0, "fine_tuned": 4.0}
    rows = Report([LayerReport("a", 1, 1, stages=whole), LayerReport("b", 1, 1)]).rows()
    assert rows[0] == ("layer", "format", "baseline", "offset", "fit", "tuned", "bytes")
    assert rows[1][2:6] == ("1.0", "", "3.0", "4.0")
    assert rows[2][2:6] == ("", "", "", "")


def test_the_published_method_takes_layers_right_behind_each_other() -> None:
    """A fused RELU: the second layer's input is what the first layer's operator makes itself."""
    model = network((20, 16, 4))
    graph = model.graph
    first, second = graph.ops[0], graph.ops[2]
    assert isinstance(first, FullyConnected)
    second.set_operand(0, first.output)
    graph.remove(graph.ops[1])
    first.activation = ActivationFunctionType.RELU
    result = luciole.quantize(model, X, encode_bits=4, method="published", proof=False)
    assert [op.kind for op in result.model.graph.ops] == ["LQ_FULLY_CONNECTED"] * 2
    wanted, found = (seen(m, "fc2") for m in (model, result.model))
    assert np.mean((wanted - found) ** 2) < 0.2 * np.mean(wanted**2)


@pytest.mark.parametrize(
    ("choices", "sentence"),
    [
        ({"method": "banana"}, "method is 'banana': 'fit' and 'published' are possible"),
        (
            {"method": "published", "target_size": 9},
            "target_size does not go with the method 'published'",
        ),
        (
            {"method": "published", "weights_only": True},
            "weights_only does not go with the method 'published'",
        ),
        (
            {"method": "published", "unroll_lstms": True},
            "unroll_lstms does not go with the method 'published'",
        ),
        ({"settings": Settings()}, "settings does not go with the method 'fit'"),
        ({"target_size": 9, "target_drop": 1.0}, "target_drop does not go with target_size"),
        ({"target_drop": 0.0, "weights_only": True}, "target_drop does not go with weights_only"),
        ({"target_size": 9, "input_bits": 8}, "target_size does not go with input_bits"),
        (
            {"target_size": 9, "encode_bits": 1},
            "target_size finds the bits: encode_bits does not go with it",
        ),
        (
            {"target_drop": 9.0, "scheme": "even:w4a4"},
            "target_drop finds the bits: scheme 'even:w4a4' does not go with it",
        ),
        (
            {"scheme": "levels:w2a4", "encode_bits": 3},
            "scheme 'levels:w2a4' says the bits: leave encode_bits out",
        ),
        (
            {"scheme": "levels:w2a4", "input_bits": 3},
            "scheme 'levels:w2a4' says the bits: leave input_bits out",
        ),
        (
            {"encode_bits": "w2a4", "weight_bits": 3},
            "encode_bits 'w2a4' says the bits: leave weight_bits out",
        ),
        ({"scheme": ""}, "scheme is '': leave it out, or name one"),
        ({"judges": X, "proof": False}, "judges prove the file: leave them out, or proof=False"),
    ],
)
def test_quantize_refuses_choices_that_it_would_pass_over(
    choices: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(QuantizeError) as error:
        luciole.quantize(network(), X, **choices)
    assert str(error.value) == sentence


def test_images_and_float64_are_data_too() -> None:
    images = np.random.default_rng(0).integers(0, 256, (60, 20), np.uint8)
    wanted = to_bytes(luciole.quantize(network(), images.astype(np.float32), **QUICK).model)
    for data in (images, images.astype(np.float64), {"x": images}):
        assert to_bytes(luciole.quantize(network(), data, **QUICK).model) == wanted


def test_quantize_refuses_data_that_the_model_does_not_take() -> None:
    with pytest.raises(InputError, match=r"the inputs are \['x'\], the data has \['y'\]"):
        luciole.quantize(network(), {"y": X})
    with pytest.raises(InputError, match=r"a record of 'x' is \[20\], the data has \[19\]"):
        luciole.quantize(network(), X[:, :19])
    with pytest.raises(InputError, match="int32"):
        luciole.quantize(network(), X.astype(np.int32))
