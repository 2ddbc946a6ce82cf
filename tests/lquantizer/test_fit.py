"""Whole networks through the fit: what is learned in which order, what is left alone and why."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import Graph, Model, Op
from luciole.ir.analysis.constancy import constant_bytes
from luciole.ir.equalization import SUFFIX
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.ir.ops.reshape import Reshape
from luciole.lquantizer import Choice, Config, LayerReport, OutputAware, QuantizeError
from luciole.lquantizer.network.branches import Branches
from luciole.lquantizer.network.preparation import prepare
from luciole.schema.enums import ActivationFunctionType
from tests.lquantizer.networks import RELU, RELU6, classifier, conv, residual, twice
from tests.lquantizer.runs import IMAGES, VECTORS, error, seen
from tests.networks import dense, random, value_named

SPARED_FIRST = (
    "the first convolution: --all-layers (all_layers) or a config that names it gives it levels"
)
SPARED_DENSE = (
    "a dense layer behind convolutions: --all-layers (all_layers) or a config that names it gives "
    "it levels"
)


SHORTLY: dict[str, Any] = {"encode_bits": 2, "spared": "float", "proof": False}
MODELS = {"dense": (classifier, VECTORS), "convolutions": (residual, IMAGES)}


@cache
def fitted(name: str, bits: int) -> luciole.Result:
    """A network with learned levels whose spared layers stay float, made once for all tests."""
    model, records = MODELS[name]
    return luciole.quantize(model(), records, encode_bits=bits, spared="float", proof=False)


def spared_alone() -> luciole.Result:
    """A network of convolutions."""
    return fitted("convolutions", 2)


def op_named(model: Model, name: str) -> Op:
    (found,) = [op for op in model.graph.ops if op.name.removesuffix(SUFFIX) == name]
    return found


@pytest.mark.parametrize("asked", [{"all_layers": True}, {"config": {"all_layers": True}}])
def test_all_layers_are_quantized_where_asked(asked: dict[str, Any]) -> None:
    usual = spared_alone().report
    sizes = {op.name: constant_bytes(op) for op in residual().graph.ops}
    assert usual.stays_float == {name: sizes[name] for name in ("logits", "stem")}
    found = luciole.quantize(
        residual(), IMAGES[:12], encode_bits=2, spared="float", proof=False, **asked
    ).report
    assert found.left_alone() == {}
    assert found.stays_float == {}


# ------------------------------------------------------------------------------ dense networks
def test_a_dense_network() -> None:
    model, result = classifier(), fitted("dense", 3)
    kinds = [(op.kind, op.name) for op in result.model.graph.ops]
    assert kinds == [
        ("LQ_FULLY_CONNECTED", "act1"),
        ("LQ_FULLY_CONNECTED", "fc2"),
        ("SOFTMAX", "answer"),
    ]
    first = result.model.graph.ops[0]
    assert isinstance(first, LQFullyConnected)
    assert first.activation is ActivationFunctionType.TANH
    assert error(model, result.model, "answer", random(60, 200, 20)) < 0.1


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_the_fit_comes_closer_than_the_published_method(bits: int) -> None:
    model, fresh = classifier(), random(60, 200, 20)
    ours = fitted("dense", bits)
    published = luciole.quantize(model, VECTORS, encode_bits=bits, method="published", proof=False)
    assert error(model, ours.model, "fc2", fresh) < 0.9 * error(
        model, published.model, "fc2", fresh
    )
    assert all(list(r.stages) == ["baseline", "offset", "output_aware"] for r in layers(ours))
    assert all(r.stages == {} and r.way is None for r in layers(published))


def layers(result: luciole.Result) -> list[LayerReport]:
    return [r for r in result.report.layers if r.skipped is None]


def test_names_and_signatures_stay() -> None:
    found = fitted("dense", 3).model
    assert [v.name for v in found.graph.inputs] == ["x"]
    assert [v.name for v in found.graph.outputs] == ["answer"]
    (signature,) = found.signatures
    assert signature.key == "serve"
    assert signature.inputs == [("a", found.graph.inputs[0])]
    assert signature.outputs == [("b", found.graph.outputs[0])]


@pytest.mark.parametrize("bits", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_the_file_gives_the_same_outputs(name: str, bits: int) -> None:
    x, found = MODELS[name][1][:8], fitted(name, bits).model
    again = from_bytes(to_bytes(found))
    np.testing.assert_array_equal(seen(again, "answer", x), seen(found, "answer", x))


@pytest.mark.parametrize("name", MODELS)
def test_the_same_seed_gives_the_same_file_and_the_float_model_is_not_touched(name: str) -> None:
    model, records = MODELS[name][0](), MODELS[name][1]
    before = to_bytes(model)
    again = luciole.quantize(model, records, encode_bits=1, spared="float", proof=False)
    assert to_bytes(again.model) == to_bytes(fitted(name, 1).model)
    assert to_bytes(model) == before


@pytest.mark.parametrize("records", [1, 4])
def test_few_records(records: int) -> None:
    result = luciole.quantize(classifier(), VECTORS[:records], encode_bits=2)
    assert np.isfinite(seen(result.model, "answer", VECTORS)).all()


# --------------------------------------------------------------------------------- convolutions
def test_dense_layers_behind_the_first_convolution_alone_get_levels() -> None:
    """A vision transformer's do: all that is left of it otherwise."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    patches = conv(graph, graph.add_input("x", (1, 8, 6, 3)), (4, 3, 3), "patches", RELU)
    extents = graph.add_constant("extents", np.array([-1, 192], np.int32))
    flat = graph.append(Reshape(patches, extents, new_shape=(-1, 192)), "flat").output
    graph.outputs = [dense(graph, flat, (4, 192), "answer").output]
    result = luciole.quantize(model, IMAGES, encode_bits=4, spared="float", proof=False)
    assert [(r.name, r.skipped) for r in result.report.layers] == [
        ("patches", SPARED_FIRST),
        ("answer", None),
    ]
    assert error(model, result.model, "answer", random(60, 40, 8, 6, 3)) < 0.1


def test_a_network_of_convolutions() -> None:
    model = residual()
    result = spared_alone()
    assert [(r.name, r.skipped) for r in result.report.layers] == [
        ("stem", SPARED_FIRST),
        ("body", None),
        ("large", None),
        ("shortcut", None),
        ("logits", SPARED_DENSE),
    ]
    assert [op.kind for op in result.model.graph.ops] == [
        "CONV_2D",
        *["LQ_CONV_2D"] * 3,
        *["ADD", "RESHAPE", "FULLY_CONNECTED", "SOFTMAX"],
    ]
    assert error(model, result.model, "answer", random(61, 40, 8, 6, 3)) < 0.05


def test_fused_activations_come_back_fused() -> None:
    found = spared_alone().model
    names = {op: op.name.removesuffix(SUFFIX) for op in found.graph.ops}
    fused = {names[op]: op.attributes().get("activation") for op in found.graph.ops}
    assert (fused["stem"], fused["body"], fused["sum"]) == (RELU, RELU6, RELU)
    assert isinstance(op_named(found, "body"), LQConv2D)


def test_a_config_that_names_spared_layers_quantizes_them() -> None:
    config = {"layers": [{"name": "stem", "input_bits": 8}, {"regex": "log.*"}]}
    result = luciole.quantize(
        residual(), IMAGES[:12], config=config, encode_bits=2, spared="float", proof=False
    )
    assert [r.skipped for r in result.report.layers] == [None] * 5
    assert result.report.layers[0].input_bits == 8
    assert isinstance(op_named(result.model, "stem"), LQConv2D)
    assert isinstance(op_named(result.model, "logits"), LQFullyConnected)


def test_spared_layers_get_the_mean_back_that_they_had() -> None:
    model, found = residual(), fitted("convolutions", 1).model
    wanted, mean = (seen(m, "logits", IMAGES).mean(0) for m in (model, found))
    np.testing.assert_allclose(mean, wanted, atol=1e-4)


def test_of_two_branches_the_smaller_is_learned_first() -> None:
    prepared = prepare(residual(), {"x": IMAGES}, Config(Choice(2, 2)), OutputAware(), False)
    names = [job.name for job in prepared.jobs]
    assert names == ["body", "large", "shortcut"]
    branches = prepared.network.branches
    order = [names[n] for n in branches.order([job.ops for job in prepared.jobs])]
    assert order == ["body", "shortcut", "large"]


def test_a_branch_makes_up_for_the_error_of_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer at one bit and a fine one see the same, so that the fine one can do much."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.append(Tanh(graph.add_input("x", (1, 20))), "squashed").output
    coarse, fine = (dense(graph, x, (12, 20), name, seed=len(name)) for name in ("coarse", "fine"))
    graph.append(Add(coarse.output, fine.output), "sum")
    graph.outputs = [graph.values[-1]]
    config = {"encode_bits": 4, "layers": [{"name": "coarse", "weight_bits": 1}]}
    with_it = luciole.quantize(model, VECTORS, config=config, proof=False).model
    monkeypatch.setattr(Branches, "in_work", lambda *_: None)
    without = luciole.quantize(model, VECTORS, config=config, proof=False).model
    fresh = random(60, 200, 20)
    assert error(model, with_it, "sum", fresh) < 0.5 * error(model, without, "sum", fresh)


def test_other_kinds_of_convolutions_are_left_alone() -> None:
    model = residual()
    graph = model.graph
    x = graph.ops[0].output
    f = graph.add_constant("f", random(1, 1, 3, 3, 4))
    apart = graph.append(DepthwiseConv2D(x, f, stride_h=1, stride_w=1), "apart").output
    grouped = conv(graph, x, (4, 3, 2), "grouped")
    graph.outputs += [apart, grouped]
    report = luciole.quantize(model, IMAGES[:12], **SHORTLY).report
    assert {r.name: r.skipped for r in report.layers[-2:]} == {
        "apart": "DEPTHWISE_CONV_2D has no learned form but for its weights: --all-layers "
        "(all_layers) or a config that names it gives it levels",
        "grouped": "it is a grouped convolution",
    }


def test_a_convolution_that_sees_the_same_for_every_record_is_left_alone() -> None:
    model = residual()
    graph = model.graph
    still = graph.append(Tanh(graph.add_constant("still", random(1, 1, 8, 6, 3))), "still/tanh")
    graph.outputs.append(conv(graph, still.output, (4, 3, 3), "fixed"))
    report = luciole.quantize(model, IMAGES[:12], **SHORTLY).report
    assert [r.skipped for r in report.layers if r.name == "fixed"] == ["its input is constant"]


def test_fit_refuses_a_network_that_becomes_nan_and_says_where() -> None:
    model = residual()
    value_named(model, "large/bias").set_data(np.full(6, np.nan, np.float32))
    with pytest.raises(QuantizeError, match="tensor 'large' becomes NaN or infinite"):
        luciole.quantize(model, IMAGES, encode_bits=3, spared="float")


# ------------------------------------------------------------------------------- shared weights


def test_shared_weights_are_learned_once_and_shared_in_the_file() -> None:
    model = twice()
    result = luciole.quantize(model, VECTORS, encode_bits=3, proof=False)
    assert [r.name for r in result.report.layers] == ["step1", "answer"]
    found = from_bytes(to_bytes(result.model))
    first, second = (op_named(found, name) for name in ("hidden", "step2"))
    assert isinstance(first, LQFullyConnected)
    assert isinstance(second, LQFullyConnected)
    assert first.operands[1:] == second.operands[1:]
    assert (first.activation, second.activation) == (ActivationFunctionType.TANH, RELU)
    assert error(model, result.model, "answer", random(60, 200, 20)) < 0.3


@pytest.mark.parametrize("named", ["step1", "step2"])
def test_a_rule_for_any_of_the_layers_that_share_weights_counts(named: str) -> None:
    config = {"encode_bits": 2, "layers": [{"name": named, "weight_bits": 4}]}
    report = luciole.quantize(twice(), VECTORS, config=config, proof=False).report
    assert [(r.name, r.weight_bits) for r in report.layers] == [("step1", 4), ("answer", 2)]


def test_fit_refuses_rules_that_differ_for_shared_weights() -> None:
    rules = [{"name": f"step{n}", "weight_bits": n} for n in (1, 2)]
    with pytest.raises(QuantizeError, match="config: 'step1' and 'step2' share their weights, but"):
        luciole.quantize(twice(), VECTORS, config={"layers": rules})


def test_the_report_shows_what_input_levels_were_learned_from() -> None:
    x = VECTORS
    first, second = (r.input_histogram for r in layers(fitted("dense", 3)))
    assert first is not None
    assert second is not None
    assert (first.low, first.high) == (x.min(), x.max())
    assert len(first.counts) == len(second.counts) == 64
    assert sum(first.counts) % 20 == 0
    assert sum(second.counts) > 0
