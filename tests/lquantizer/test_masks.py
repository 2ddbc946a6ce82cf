"""Masks: constants of -inf, or that stand for it, bound no range, and integers stand for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.interpreter.records import outputs_of
from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.comparisons import Equal
from luciole.ir.ops.elementwise_binary import Add, Maximum, Minimum, Mul, Sub
from luciole.ir.ops.elementwise_unary import Exp
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.pad import PadV2
from luciole.ir.ops.pool_2d import MaxPool2D
from luciole.ir.ops.quantize import Quantize
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.select import SelectV2
from luciole.ir.ops.softmax import LogSoftmax, Softmax
from luciole.ir.quantization import Affine
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.rewrite.rounded import saturate
from luciole.schema.enums import Padding
from tests.networks import random
from tests.support import data_path, litert, litert_records

INF = float(np.inf)
LEAST = float(np.finfo(np.float32).min)
ROWS, COUNT = 6, 80
Mask = Callable[[Graph, Value, Value], Value]


def constant(graph: Graph, array: Any) -> Value:
    return graph.add_constant(graph.unique_name("c"), np.asarray(array, np.float32))


def put(graph: Graph, op: Op) -> Value:
    return graph.append(op, graph.unique_name(op.kind.lower())).output


def _selected(number: float) -> Mask:
    return lambda graph, scores, mask: put(
        graph, SelectV2(mask, scores, constant(graph, np.full((), number)))
    )


def _added(number: float) -> Mask:
    def added(graph: Graph, scores: Value, mask: Value) -> Value:
        row = put(graph, SelectV2(mask, constant(graph, 0), constant(graph, number)))
        return put(graph, Add(scores, row))

    return added


def _subtracted(graph: Graph, scores: Value, mask: Value) -> Value:
    row = put(graph, SelectV2(mask, constant(graph, 0), constant(graph, INF)))
    return put(graph, Sub(scores, row))


def _product(number: float) -> Mask:
    """Keras and transformers of HuggingFace write masks so."""

    def product(graph: Graph, scores: Value, mask: Value) -> Value:
        kept = put(graph, Cast(mask, in_data_type=TensorType.BOOL))
        left = put(graph, Sub(constant(graph, 1), kept))
        return put(graph, Add(scores, put(graph, Mul(left, constant(graph, number)))))

    return product


def _causal(graph: Graph, scores: Value, mask: Value) -> Value:
    del mask
    above = np.triu(np.full((ROWS, ROWS), -INF), 1)
    return put(graph, Add(scores, constant(graph, np.nan_to_num(above, neginf=-INF))))


def _reshaped(graph: Graph, scores: Value, mask: Value) -> Value:
    masked = _selected(-1e9)(graph, scores, mask)
    shape = graph.add_constant("shape", np.array([ROWS, ROWS], np.int32))
    return put(graph, Reshape(masked, shape))


MASKS: dict[str, Mask] = {
    "selected": _selected(-INF),
    "selected, the least float": _selected(LEAST),
    "added": _added(-INF),
    "added, the least float": _added(LEAST),
    "subtracted": _subtracted,
    "product, the least float": _product(LEAST),
    "product, -1e9": _product(-1e9),
    "product, -1e4": _product(-1e4),
    "causal": _causal,
    "reshaped": _reshaped,
}


def attention(masked: Mask) -> Model:
    """Build scores of queries and keys, a mask, a softmax, and what it picks of values."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, ROWS, 8))
    mask = graph.add_input("mask", (1, 1, ROWS), TensorType.BOOL)
    queries, keys, values = (
        put(
            graph, FullyConnected(x, constant(graph, random(n, 8, 8) / 3), None, keep_num_dims=True)
        )
        for n in range(3)
    )
    scores = put(graph, BatchMatMul(queries, keys, adjoint_rhs=True))
    shares = put(graph, Softmax(masked(graph, scores, mask), beta=1.0))
    if len(shares.dims) == 2:
        shape = graph.add_constant("whole", np.array([1, ROWS, ROWS], np.int32))
        shares = put(graph, Reshape(shares, shape))
    graph.outputs = [put(graph, BatchMatMul(shares, values)), shares]
    return model


def records(model: Model, count: int = COUNT) -> dict[str, Array]:
    """Draw records whose rows are of 1 to 6 elements."""
    drawn = {v.name: random(5, count, *v.dims[1:]) for v in model.graph.inputs}
    if "mask" in drawn:
        lengths = np.random.default_rng(3).integers(1, ROWS + 1, count)
        drawn["mask"] = (np.arange(ROWS) < lengths[:, None])[:, None]
    return drawn


def decibels(made: Array, reference: Array) -> float:
    error = max(np.square(made.astype(np.float64) - reference).sum(), 1e-12)
    return float(10 * np.log10(np.square(reference, dtype=np.float64).sum() / error))


def in_litert(content: bytes, data: dict[str, Array]) -> list[Array]:
    names = [value.name for value in from_bytes(content).graph.inputs]
    return litert_records(content, [data[name] for name in names], "AUTO")


def both(model: Model, data: dict[str, Array], **options: Any) -> list[list[Array]]:
    """Quantize, and compute the outputs of the file here and in LiteRT."""
    return of_file(luciole.quantize(model, data, proof=False, **options).model, data)


def of_file(model: Model, data: dict[str, Array]) -> list[list[Array]]:
    """Compute the outputs of a network's file here and in LiteRT."""
    content = to_bytes(model, "tflite")
    here = outputs_of(Interpreter(from_bytes(content)), data)
    return [list(here.values()), in_litert(content, data)]


def kinds_on_integers(model: Model) -> set[str]:
    return {op.kind for op in model.graph.ops if op.output.dtype == TensorType.INT8}


@pytest.mark.parametrize(("scheme", "least"), [("int8", 29), ("w4a8", 19)])
@pytest.mark.parametrize("masked", MASKS.values(), ids=MASKS)
def test_attention_is_as_close_as_without_a_mask(masked: Mask, scheme: str, least: float) -> None:
    """What is masked counts for nothing, also in rows whose only other score is the smallest."""
    model = attention(masked)
    data = records(model)
    expected = list(outputs_of(Interpreter(model), data).values())
    for made in both(model, data, scheme=scheme):
        assert not made[1][expected[1] == 0].any()
        assert min(map(decibels, made, expected)) > least


@pytest.mark.parametrize(
    ("options", "least"),
    [
        ({"scheme": "int8"}, 38),
        ({"scheme": "int8", "symmetric": True}, 36),
        ({"scheme": "int8", "ranges": "entropy"}, 33),
        ({"scheme": "int8", "ranges": "record_percentile:99"}, 36),
        ({"scheme": "w4a8"}, 20),
        ({"scheme": "uint8"}, 36),
        ({"scheme": "int16x8"}, 48),
        ({"scheme": "mixed"}, 20),
        ({"scheme": "weights"}, 45),
        ({"scheme": "dynamic"}, 40),
    ],
)
def test_scores_where_a_mask_lets_them_pass(options: dict[str, Any], least: float) -> None:
    """A file of another program."""
    model = luciole.load(data_path("found/masks/inf_small.onnx"))
    data = dict(np.load(data_path("found/masks/inf_small.npz")))
    (expected,) = outputs_of(Interpreter(model), data).values()
    for (made,) in both(model, data, **options):
        assert decibels(made, expected) > least


def test_scores_are_integers_down_to_where_masked_ones_count_for_nothing() -> None:
    model = attention(_selected(-INF))
    data = records(model)
    made = luciole.quantize(model, data, scheme="int8", proof=False)
    (softmax,) = (op for op in made.model.graph.ops if isinstance(op, Softmax))
    low, high = (float(n[0]) for n in Affine.of(softmax.logits, "logits").range)
    scores = next(op.output for op in model.graph.ops if isinstance(op, BatchMatMul))
    model.graph.outputs = [scores]
    (real,) = outputs_of(Interpreter(model), data).values()
    peaks = np.where(data["mask"], real, -INF).max(-1)
    smallest = peaks[~np.broadcast_to(data["mask"], real.shape).all(-1)].min()
    np.testing.assert_allclose(low, smallest - np.log(512 * ROWS), atol=0.1)
    assert high < real.max() + 0.1
    assert {"SELECT_V2", "SOFTMAX"} <= kinds_on_integers(made.model)


def test_the_logarithm_of_a_masked_softmax_stays_float() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 8))
    mask = graph.add_input("mask", (1, 8), TensorType.BOOL)
    scores = put(graph, FullyConnected(x, weights(graph, 1), None))
    masked = put(graph, SelectV2(mask, scores, constant(graph, -INF)))
    graph.outputs = [put(graph, LogSoftmax(masked))]
    data = {"x": random(2, 40, 8), "mask": random(3, 40, 8) > -1}
    data["mask"][:, 0] = True
    (expected,) = outputs_of(Interpreter(model), data).values()
    for (made,) in both(model, data, scheme="int8"):
        np.testing.assert_array_equal(np.isneginf(made), np.isneginf(expected))
        real = np.isfinite(expected)
        assert np.abs(made[real] - expected[real]).max() < 0.1


def beside(*ops: Callable[[Graph, Value], Op]) -> Model:
    """Build a layer, operators, and a layer."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    value = put(graph, FullyConnected(graph.add_input("x", (1, 8)), weights(graph, 1), None))
    for op in ops:
        value = put(graph, op(graph, value))
    graph.outputs = [put(graph, FullyConnected(value, weights(graph, 2), None))]
    return model


def weights(graph: Graph, seed: int) -> Value:
    return constant(graph, random(seed, 8, 8) / 3)


@pytest.mark.parametrize(("kind", "number"), [(Maximum, -INF), (Minimum, INF)])
def test_bounds_that_bound_nothing_are_integers(kind: type[Op], number: float) -> None:
    model = beside(lambda g, x: kind(x, constant(g, number)))
    data = records(model)
    (expected,) = outputs_of(Interpreter(model), data).values()
    result = luciole.quantize(model, data, scheme="int8", proof=False)
    assert result.report.floats == []
    for (made,) in of_file(result.model, data):
        assert decibels(made, expected) > 33


def test_a_border_below_all_is_integers_in_front_of_a_pool() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 4, 4, 2))
    border = graph.add_constant("border", np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    padded = put(graph, PadV2(x, border, constant(graph, [-INF])))
    how: dict[str, Any] = {"filter_width": 3, "filter_height": 3, "stride_w": 1, "stride_h": 1}
    pool = put(graph, MaxPool2D(padded, padding=Padding.VALID, **how))
    flat = put(graph, Reshape(pool, graph.add_constant("s", np.array([1, 32], np.int32))))
    graph.outputs = [put(graph, FullyConnected(flat, constant(graph, random(4, 3, 32)), None))]
    data = records(model)
    result = luciole.quantize(model, data, scheme="int8", proof=False)
    assert result.report.floats == []
    (expected,) = outputs_of(Interpreter(model), data).values()
    for (made,) in of_file(result.model, data):
        assert decibels(made, expected) > 33


def _exponential(graph: Graph, x: Value) -> Op:
    keep = put(graph, Equal(x, put(graph, Maximum(x, constant(graph, 0)))))
    return Exp(put(graph, SelectV2(keep, x, constant(graph, -INF))))


def _product_with_infinity(graph: Graph, x: Value) -> Op:
    above = put(graph, Maximum(x, constant(graph, 0.1)))
    return Minimum(put(graph, Mul(above, constant(graph, INF))), constant(graph, 4))


@pytest.mark.parametrize(
    ("op", "kinds"),
    [
        (_exponential, {"SELECT_V2", "EXP"}),
        (_product_with_infinity, {"MUL", "MINIMUM", "FULLY_CONNECTED"}),
    ],
)
def test_what_takes_an_infinity_for_one_stays_float(
    op: Callable[[Graph, Value], Op], kinds: set[str]
) -> None:
    model = beside(op)
    data = records(model)
    result = luciole.quantize(model, data, scheme="int8", proof=False)
    told = [line for line in result.report.floats if "infinities of a constant" in line]
    assert {line.split()[0] for line in told} == kinds
    (expected,) = outputs_of(Interpreter(model), data).values()
    for (made,) in of_file(result.model, data):
        assert decibels(made, expected) > 20


def test_an_output_that_holds_infinities_stays_float() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 8))
    mask = graph.add_input("mask", (1, 8), TensorType.BOOL)
    y = put(graph, FullyConnected(x, weights(graph, 1), None))
    graph.outputs = [put(graph, SelectV2(mask, y, constant(graph, -INF)))]
    data = {"x": random(2, 30, 8), "mask": random(3, 30, 8) > 0}
    (expected,) = outputs_of(Interpreter(model), data).values()
    for (made,) in both(model, data, scheme="int8"):
        np.testing.assert_array_equal(np.isneginf(made), np.isneginf(expected))


def test_a_constant_that_is_no_number_stays_where_nothing_picks_it() -> None:
    model = beside(lambda g, x: SelectV2(put(g, Equal(x, x)), x, constant(g, np.nan)))
    data = records(model)
    result = luciole.quantize(model, data, scheme="int8", proof=False)
    assert any(line.startswith("SELECT_V2") for line in result.report.floats)
    (made,) = outputs_of(Interpreter(result.model), data).values()
    (expected,) = outputs_of(Interpreter(model), data).values()
    assert decibels(made, expected) > 30


def test_quantize_refuses_infinities_that_are_of_no_constant() -> None:
    model = beside(lambda g, x: Exp(put(g, Mul(x, constant(g, 1e4)))))
    with pytest.raises(QuantizeError, match="becomes NaN or infinite on the calibration data"):
        luciole.quantize(model, records(model), scheme="int8")


@pytest.mark.parametrize("name", ["selected", "added", "product, -1e9"])
def test_saved_ranges_give_the_same_file(name: str, tmp_path: Path) -> None:
    model = attention(MASKS[name])
    result = luciole.quantize(model, records(model), scheme="int8", rounding="nearest", proof=False)
    assert result.ranges is not None
    result.ranges.save(tmp_path / "ranges.json")
    ranges: Any = tmp_path / "ranges.json"
    again = luciole.quantize(model, None, scheme="int8", rounding="nearest", ranges_from=ranges)
    data = records(model, 20)
    first, second = (outputs_of(Interpreter(one.model), data) for one in (result, again))
    for own, other in zip(first.values(), second.values(), strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("name", ["selected", "added", "causal"])
def test_minifloats_stand_for_masks(name: str, scaled: bool) -> None:
    model = attention(MASKS[name])
    data = records(model)
    options: dict[str, Any] = {"scheme": "minifloat", "exponent": 4, "mantissa": 4}
    made = luciole.quantize(model, data, scaled=scaled, proof=False, **options).model
    expected = outputs_of(Interpreter(model), data)
    for own, reference in zip(
        outputs_of(Interpreter(made), data).values(), expected.values(), strict=True
    ):
        assert decibels(own, reference) > 27


@pytest.mark.parametrize("name", ["selected", "causal"])
def test_networks_with_masks_are_tuned(name: str) -> None:
    pytest.importorskip("tensorflow")
    model = attention(MASKS[name])
    model.graph.outputs = model.graph.outputs[:1]
    data = records(model)
    result = luciole.quantize(model, data, scheme="int8", proof=False)
    tuned = luciole.finetune(result, model, data, epochs=1).model
    (expected,) = outputs_of(Interpreter(model), data).values()
    (made,) = outputs_of(Interpreter(from_bytes(to_bytes(tuned))), data).values()
    assert decibels(made, expected) > 29


@pytest.mark.parametrize("number", [LEAST, -1e9])
@pytest.mark.parametrize("zero_point", [-128, -1, 0, 127])
def test_a_mask_becomes_the_least_integer_in_every_runtime(number: float, zero_point: int) -> None:
    """LiteRT adds a zero point below 0 to the least int32, and comes around to the largest."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 4))
    quantize = Quantize(put(graph, Mul(x, constant(graph, number))))
    graph.append(quantize, "integers")
    affine = Affine.single(0.125, zero_point, TensorType.INT8)
    quantize.output.dtype, quantize.output.quantization = affine.dtype, affine.table()
    graph.outputs = [quantize.output]
    saturate(graph)
    assert (len(graph.ops) == 3) == (zero_point < 0)
    data = np.array([[0, 1, 0, 1]], np.float32)
    wanted = np.where(data, -128, zero_point).astype(np.int8)
    for made in (litert(to_bytes(model, "tflite"), [data])[0], run(model, data)):
        np.testing.assert_array_equal(made, wanted)


def run(model: Model, data: Array) -> Array:
    (made,) = Interpreter(model).run({"x": data}).values()
    return made
