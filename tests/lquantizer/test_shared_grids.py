"""Tensors that share a scale and a zero point: results of what only moves elements, and what
saturating readers tell apart.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.ops.activations import Logistic, Relu, Tanh
from luciole.ir.ops.elementwise_binary import Add, Maximum, Minimum, Mul
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.split import Split
from luciole.ir.ops.split_v import SplitV
from luciole.ir.ops.unpack import Unpack
from luciole.ir.quantization import Affine
from luciole.lquantizer.calibration.saturated import Saturated
from luciole.lquantizer.network.grids import choose_grids
from tests.networks import random
from tests.support import data_path, litert, litert_records

SCHEMES = ["int8", "uint8", "w4a8", "int16x8"]
Parts = Callable[[Graph, Value], Op]


def _split(graph: Graph, x: Value) -> Op:
    return Split(graph.add_constant("axis", np.array(1, np.int32)), x, num_splits=4)


def _split_v(graph: Graph, x: Value) -> Op:
    sizes = graph.add_constant("sizes", np.array([5, 3, 4, 4], np.int32))
    return SplitV(x, sizes, graph.add_constant("axis", np.array(1, np.int32)), num_splits=4)


def _unpack(graph: Graph, x: Value) -> Op:
    shape = graph.add_constant("shape", np.array([1, 4, 4], np.int32))
    return Unpack(graph.append(Reshape(x, shape), "rows").output, num=4, axis=1)


def parted(parts: Parts) -> Model:
    """Build a dense layer whose result goes into four parts, of which the first is three times as
    large as the others; each times a constant of its own.
    """
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 8))
    rows = random(3, 16, 8) * np.repeat(np.array([3, 1], np.float32), [4, 12])[:, None]
    weights = graph.add_constant("weights", rows)
    y = graph.append(FullyConnected(x, weights, None), "y").output
    op = graph.append(parts(graph, y), "p0", "p1", "p2", "p3")
    for number, part in enumerate(op.results):
        factor = graph.add_constant(f"f{number}", random(9 + number, *part.dims))
        graph.append(Mul(part, factor), f"s{number}")
    graph.outputs = [op.output for op in graph.ops if isinstance(op, Mul)]
    return model


def normal(count: int = 300) -> dict[str, Array]:
    return {"x": random(7, count, 8)}


def decibels(found: Array, reference: Array) -> float:
    error = np.square(found.astype(np.float64) - reference).sum()
    return float(10 * np.log10(np.square(reference, dtype=np.float64).sum() / error))


def outputs(model: Model, records: dict[str, Array]) -> list[Array]:
    """Run records one by one."""
    interpreter, (x,) = Interpreter(model), records.values()
    runs = [list(interpreter.run({"x": one[None]}).values()) for one in x]
    return [np.concatenate([np.array(run[n]) for run in runs]) for n in range(len(runs[0]))]


def in_litert(content: bytes, records: dict[str, Array]) -> list[Array]:
    (x,) = records.values()
    return litert_records(content, [x], "AUTO")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("parts", [_split, _split_v, _unpack])
def test_all_results_of_what_moves_elements_have_the_scale_of_its_operand(
    parts: Parts, scheme: str
) -> None:
    model, records = parted(parts), normal()
    content = to_bytes(
        luciole.quantize(model, records, scheme=scheme, ranges="percentile:99", proof=False).model,
        "tflite",
    )
    made = from_bytes(content)  # which refuses anything else
    (op,) = (op for op in made.graph.ops if len(op.results) == 4)
    x = next(v for v in op.operands if v is not None and v.dtype != TensorType.INT32)
    grid = Affine.of(x, "x")
    assert all(Affine.of(value, value.name).same_numbers(grid) for value in op.results)
    small = {"x": records["x"][:60]}
    expected = outputs(model, small)
    for found in (outputs(made, small), in_litert(content, small)):
        for own, reference in zip(found, expected, strict=True):
            assert decibels(own, reference) > 14


@pytest.mark.parametrize(("scheme", "least"), [("int8", 29), ("uint8", 28)])
def test_gates_of_heavy_tailed_inputs_are_close_to_the_float_network(
    scheme: str, least: float
) -> None:
    """A dense layer, SPLIT, and TANH or LOGISTIC behind each part: 18 to 23 dB where each part had
    a scale of its own, 18 behind TANH where the layer's result reached as far as its extremes, and
    27.6 where ranges were of the least error in the tensor itself.
    """
    model = luciole.load(data_path("found/grids/glu.tflite"))
    records = {"x": np.load(data_path("found/grids/glu.npy"))}
    content = to_bytes(luciole.quantize(model, records, scheme=scheme, proof=False).model, "tflite")
    expected = outputs(model, records)
    for found in (outputs(from_bytes(content), records), in_litert(content, records)):
        close = [decibels(own, whole) for own, whole in zip(found, expected, strict=True)]
        assert min(close) > least  # the weights on UINT8 have one scale
        assert min(close[1], close[3]) > 33


def gated(*kinds: type[Op], output: bool = False) -> Model:
    """Build a dense layer with large results, and saturating readers of them."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 8))
    weights = graph.add_constant("weights", random(3, 8, 8) * np.float32(8))
    y = graph.append(FullyConnected(x, weights, None), "y").output
    graph.outputs = [graph.append(kind(y), kind.__name__).output for kind in kinds]
    graph.outputs += [y] if output else []
    return model


def reach_of_y(model: Model, scheme: str) -> tuple[float, float]:
    result = luciole.quantize(model, normal(), scheme=scheme)
    (tensor,) = (tensor for tensor in result.report.tensors if tensor.name == "y")
    return tensor.least, tensor.most


@pytest.mark.parametrize(
    ("kinds", "scheme", "most"),
    [
        ((Tanh,), "int8", np.arctanh(1 - 1 / 256)),
        ((Logistic,), "int8", np.log(511)),
        ((Tanh, Logistic), "uint8", np.log(511)),
        ((Tanh, Logistic), "int16x8", np.log(65535)),
    ],
)
def test_integers_reach_no_further_than_saturating_readers_tell_apart(
    kinds: tuple[type[Op], ...], scheme: str, most: float
) -> None:
    low, high = reach_of_y(gated(*kinds), scheme)
    np.testing.assert_allclose((low, high), (-most, most), rtol=0.02)


@pytest.mark.parametrize("is_output", [False, True])
def test_a_range_is_judged_by_what_saturating_readers_give(is_output: bool) -> None:
    """Rare large inputs move a gate no further: integers need not reach them, unless what they
    make is an output, too.
    """
    model = luciole.load(data_path("found/grids/glu.tflite"))
    records = np.load(data_path("found/grids/glu.npy"))
    if is_output:
        model.graph.outputs.append(model.graph.ops[0].results[0])
    report = luciole.quantize(model, {"x": records}, scheme="int8").report
    (x,) = (tensor for tensor in report.tensors if tensor.name == "x")
    assert (x.most < 0.65 * records.max()) != is_output


def test_results_of_the_network_and_other_readers_keep_the_whole_range() -> None:
    assert reach_of_y(gated(Tanh, output=True), "int8")[1] > 20
    assert reach_of_y(gated(Tanh, Relu), "int8")[1] > 20


def test_a_range_of_large_records_is_judged_by_elements_spread_over_them() -> None:
    """A record has more elements than the sample that saturating readers judge."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 100, 100))
    graph.outputs = [graph.append(Logistic(x), "y").output]
    records = 40 * random(1, 4, 100, 100)
    report = luciole.quantize(model, {"x": records}, scheme="int8").report
    (x_range,) = (tensor for tensor in report.tensors if tensor.name == "x")
    np.testing.assert_allclose(
        (x_range.least, x_range.most), (-np.log(511), np.log(511)), rtol=0.05
    )


@pytest.mark.parametrize("extent", [0, 10_000])
def test_readers_judge_no_range_without_elements_that_can_be_kept(extent: int) -> None:
    graph = gated(Tanh).graph
    dense = graph.ops[0]
    one = Saturated(dense.required(0), [dense, graph.ops[1]])
    one.add(np.ones((2, extent), np.float32))
    assert one.range() is None


def test_symmetric_ranges_stay_symmetric_in_front_of_saturating_readers() -> None:
    made = luciole.quantize(gated(Tanh), normal(), scheme="int8", symmetric=True).model
    (op,) = (op for op in made.graph.ops if isinstance(op, Tanh))
    assert Affine.of(op.x, "x").is_symmetric


def test_the_report_says_which_readers_set_a_range() -> None:
    result = luciole.quantize(gated(Tanh, Logistic), normal(), scheme="int8")
    (tensor,) = (tensor for tensor in result.report.tensors if tensor.name == "y")
    assert tensor.rule == "mse, as far as LOGISTIC, TANH tell numbers apart"


def summed(size: float, *, zeros: bool) -> Model:
    """Build two dense layers of a ``size``, whose sum only LOGISTIC reads; the second reads what is
    0 throughout or what the first one reads.
    """
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 8))
    factor = graph.add_constant("factor", np.float32(0 if zeros else 1).reshape(1))
    others = graph.append(Mul(x, factor), "others").output
    rows = [graph.add_constant(f"w{n}", random(n, 8, 8) * np.float32(size)) for n in (3, 4)]
    layers = [FullyConnected(v, w, None) for v, w in zip((x, others), rows, strict=True)]
    y, z = (graph.append(op, name).output for op, name in zip(layers, "yz", strict=True))
    graph.outputs = [graph.append(Logistic(graph.append(Add(y, z), "sum").output), "s").output]
    return model


@pytest.mark.parametrize("scheme", ["int8", "int16x8", "w4a16"])
def test_no_layer_makes_up_for_what_is_cut_off_of_another(scheme: str) -> None:
    """What LOGISTIC does not tell apart is lost of one term, and would be most of the other."""
    model, records = summed(20, zeros=False), normal()
    result = luciole.quantize(model, records, scheme=scheme, proof=False)
    assert min(layer.snr_db or 0 for layer in result.report.layers) > 10
    (found,), (expected,) = outputs(result.model, records), outputs(model, records)
    assert decibels(found, expected) > (10 if scheme == "w4a16" else 20)


def test_a_term_that_is_0_throughout_reaches_as_far_as_the_sum() -> None:
    """LiteRT ends its process where a term's steps are much coarser than those of the sum."""
    model, records = summed(1e-3, zeros=True), normal()
    made = luciole.quantize(model, records, scheme="int16x8").model
    (op,) = (op for op in made.graph.ops if isinstance(op, Add))
    terms, total = (Affine.of(v, "it").scale[0] for v in (op.y, op.output))
    assert terms < 8 * total
    (found,), (expected,) = in_litert(to_bytes(made, "tflite"), records), outputs(model, records)
    assert decibels(found, expected) > 60


def test_terms_of_16_bits_reach_as_far_as_the_sum_s_integers_do() -> None:
    """A rule may choose less on one side of 0, where integers reach as far as on the other."""
    model = summed(0.1, zeros=False)
    graph = model.graph
    types = dict.fromkeys(graph.ops, TensorType.INT16)
    reach = {"sum": (-3.0, 0.1), "y": (-0.1, 3.0), "z": (-0.1, 0.1)}
    grids = choose_grids(graph, types, lambda v, _: reach.get(v.name, (-1.0, 1.0)), {}, {})
    (y,) = (op.output for op in graph.ops if op.name == "y")
    assert grids.tensors[y].range[1] == pytest.approx(3.0, rel=1e-4)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("kind", "limit"), [(Minimum, -0.5), (Maximum, 1.5)])
def test_a_result_beyond_what_an_operand_s_fixed_integers_reach_has_integers_of_its_own(
    scheme: str, kind: type[Minimum | Maximum], limit: float
) -> None:
    """LOGISTIC's integers reach from 0 to 1; its minimum with -0.5 lies below."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 8))
    weights = graph.add_constant("w", random(4, 6, 8))
    y = graph.append(FullyConnected(x, weights, None), "y").output
    gate = graph.append(Logistic(y), "gate").output
    bound = graph.add_constant("bound", np.array(limit, np.float32))
    graph.outputs = [graph.append(kind(gate, bound), "bounded").output]
    records = random(5, 40, 8)
    result = luciole.quantize(model, records, scheme=scheme)
    written = to_bytes(result.model, "tflite")
    answers = Interpreter(from_bytes(written)).run(records[:1])["bounded"]
    np.testing.assert_allclose(answers, limit, atol=0.01)
    np.testing.assert_allclose(litert(written, [records[:1]])[0], answers, atol=1e-6)
