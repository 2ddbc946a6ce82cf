"""Weights that are stored as levels: what layers without a learned form become where it is asked
for.
"""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import Array, Graph, Model, Op, Value
from luciole.ir.analysis.weights import learned_weights, weights_of
from luciole.ir.analysis.widths import bits_of
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.levelsdecode import LevelsDecode
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.ir.verify import verify
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.formats.stored_levels import fit_stored
from luciole.lquantizer.report import LayerReport
from luciole.schema.enums import ActivationFunctionType, Padding

RNG = np.random.default_rng(7)
RECORDS = RNG.normal(0, 1, (40, 6, 6, 4)).astype(np.float32)
RECORDS[..., 1] *= 9


def normal(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).normal(0, 0.3, shape).astype(np.float32)


def network() -> Model:
    """A depthwise convolution with two filters a channel, one of 1 x 1, a transposed one, a grouped
    one, and a product with a constant.
    """
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 6, 6, 4))

    def constant(name: str, array: Array) -> Value:
        return graph.add_constant(name, array)

    relu = ActivationFunctionType.RELU
    apart = DepthwiseConv2D(
        x,
        constant("apart/f", normal(1, 3, 3, 8)),
        constant("apart/b", normal(8)),
        stride_h=1,
        stride_w=1,
        depth_multiplier=2,
        activation=relu,
    )
    y = graph.append(apart, "apart").output
    point = Conv2D(y, constant("point/f", normal(12, 1, 1, 8)), stride_h=1, stride_w=1)
    y = graph.append(point, "point").output
    grouped = Conv2D(y, constant("grouped/f", normal(6, 3, 3, 4)), stride_h=1, stride_w=1)
    y = graph.append(grouped, "grouped").output
    sizes = constant("sizes", np.array([1, 12, 12, 5], np.int32))
    up = TransposeConv(
        sizes, constant("up/f", normal(5, 4, 4, 6)), y, padding=Padding.SAME, stride_h=2, stride_w=2
    )
    y = graph.append(up, "up").output
    graph.outputs = [
        graph.append(BatchMatMul(y, constant("w", normal(1, 1, 5, 3))), "product").output
    ]
    return model


def depthwise(model: Model) -> Op:
    """The layer: its result has another name where channels were rescaled."""
    return next(op for op in model.graph.ops if isinstance(op, DepthwiseConv2D))


STORED = ["apart", "grouped", "up", "product"]


@pytest.fixture(scope="module")
def quantized() -> luciole.Result:
    return luciole.quantize(network(), RECORDS, encode_bits=3, all_layers=True, proof=False)


def reports(result: luciole.Result) -> dict[str, LayerReport]:
    return {layer.name: layer for layer in result.report.layers}


def test_every_layer_is_stored_and_reported(quantized: luciole.Result) -> None:
    found = reports(quantized)
    assert [name for name in found if found[name].skipped] == []
    assert [name for name, layer in found.items() if layer.input_bits is None] == STORED
    for name in STORED:
        layer = found[name]
        assert layer.weight_bits == 3
        assert layer.snr_db is not None
        assert layer.snr_db > 5
        assert layer.bytes_after < layer.bytes_before
    floats = {name.rpartition("/")[0] for name in quantized.report.stays_float}
    assert not floats & set(STORED)


def test_files_hold_the_codes_that_run(quantized: luciole.Result) -> None:
    content = to_bytes(quantized.model)
    assert len(content) == quantized.report.bytes_after < quantized.report.bytes_before
    model = from_bytes(content)
    assert list(verify(model)) == []
    assert sum(isinstance(op, LevelsDecode) for op in model.graph.ops) == len(STORED)
    wanted, found = (
        luciole.Interpreter(m).run({"x": RECORDS[:1]})["product"] for m in (network(), model)
    )
    error = np.mean((wanted - found) ** 2) / np.mean(wanted**2)
    assert 0 < error < 0.2


def test_weights_of_a_stored_layer_are_learned_levels(quantized: luciole.Result) -> None:
    op = depthwise(quantized.model)
    learned, both = learned_weights(op), weights_of(op)
    assert learned is not None
    assert both is not None
    assert learned.codes.shape == (8, 9)
    bits = bits_of(op)
    assert bits is not None
    assert (bits.weights, bits.input) == (3, 32)
    np.testing.assert_array_equal(learned.values(), both.values())


def test_a_rule_names_the_layers_and_their_bits() -> None:
    rule = {"operator": "DEPTHWISE_CONV_2D", "weight_bits": 4}
    config = {"encode_bits": 2, "layers": [rule]}
    result = luciole.quantize(network(), RECORDS, config=config, spared="float", proof=False)
    found = reports(result)
    assert found["apart"].weight_bits == 4
    assert found["up"].skipped is not None
    assert "--all-layers (all_layers) or a config that names it" in found["up"].skipped


def test_layers_beside_them_become_integers() -> None:
    rule = {"operator": "DEPTHWISE_CONV_2D", "weight_bits": 4}
    config = {"encode_bits": 3, "layers": [rule]}
    config = {"encode_bits": 2, "layers": [rule]}
    result = luciole.quantize(network(), RECORDS, config=config, spared="int8", proof=False)
    assert learned_weights(depthwise(result.model)) is not None
    assert any(v.dtype.name == "INT8" for v in result.model.graph.values if v.producer)
    wanted, found = (
        luciole.Interpreter(m).run({"x": RECORDS[:1]})["product"] for m in (network(), result.model)
    )
    assert np.mean((wanted - found) ** 2) < 0.2 * np.mean(wanted**2)


def test_a_network_of_stored_layers_alone() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 6, 6, 4))
    f = graph.add_constant("f", normal(1, 3, 3, 4))
    graph.outputs = [graph.append(DepthwiseConv2D(x, f, stride_h=1, stride_w=1), "only").output]
    with pytest.raises(QuantizeError, match="nothing to quantize"):
        luciole.quantize(model, RECORDS, encode_bits=3)
    result = luciole.quantize(model, RECORDS, all_layers=True, proof=False)
    assert [layer.way for layer in result.report.layers] == ["stored as levels"]


def test_codes_mind_what_rows_meet() -> None:
    """The error in the metric of the moments is smaller than that of the nearest levels."""
    weights = RNG.normal(0, 1, (16, 9))
    seen = RNG.normal(0, 1, (16, 9, 4)) * np.array([5, 3, 1, 0.3])
    moments = seen @ seen.transpose(0, 2, 1)
    aware, plain = (fit_stored(weights, m, 2).values() - weights for m in (moments, None))
    loss = [np.einsum("oi,oij,oj->", e, moments, e) for e in (aware, plain)]
    assert loss[0] < 0.5 * loss[1]
    assert np.mean(plain**2) < np.mean(aware**2)


def test_a_row_of_zeros_stays_finite() -> None:
    weights = RNG.normal(0, 1, (3, 9))
    weights[1] = 0
    found = fit_stored(weights, None, 2).values()
    assert np.abs(found[1]).max() < 1e-20
    assert np.mean((found - weights) ** 2) < 0.2


def test_layers_beside_stored_ones_are_tuned() -> None:
    pytest.importorskip("tensorflow")
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 6, 6, 4))
    f = graph.add_constant("f", normal(1, 3, 3, 4))
    y = graph.append(DepthwiseConv2D(x, f, stride_h=1, stride_w=1), "apart").output
    f = graph.add_constant("point/f", normal(5, 1, 1, 4))
    graph.outputs = [graph.append(Conv2D(y, f, stride_h=1, stride_w=1), "point").output]
    result = luciole.quantize(model, RECORDS, encode_bits=2, all_layers=True, proof=False)
    found = luciole.finetune(result.model, model, RECORDS, epochs=1, latents=result.latents)
    kept = [learned_weights(depthwise(m)) for m in (result.model, found.model)]
    assert kept[0] is not None
    assert kept[1] is not None
    np.testing.assert_array_equal(kept[0].values(), kept[1].values())
    assert found.history[-1].held_back_loss is not None
