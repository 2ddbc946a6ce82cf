"""Models are pickled and copied whole, however deep; parts of them with the whole."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import (
    CUSTOM_OPS,
    OPS,
    Buffer,
    Graph,
    GraphError,
    LucioleError,
    Model,
    Op,
    Signature,
    TensorType,
    UnsupportedError,
    Value,
)
from luciole.ir.graph import all_ops
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.elementwise_unary import Exp
from tests.fuzz.models import kinds, random_model
from tests.networks import network, random, value_named
from tests.ops.control_flow_support import X, branches, growing
from tests.round_trip_support import imported
from tests.support import data_path

DEEP = 4_000


def pickled(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


both_ways = pytest.mark.parametrize("way", [pickled, copy.deepcopy], ids=["pickled", "copied"])
Way = Callable[[Any], Any]


def links(model: Model) -> list[Any]:
    """Who makes and who uses each tensor, what each operator is given, in what order."""
    values = {v: (g, i) for g, graph in enumerate(model.graphs) for i, v in enumerate(graph.values)}
    ops = {op: (g, i) for g, graph in enumerate(model.graphs) for i, op in enumerate(graph.ops)}
    graphs = {graph: number for number, graph in enumerate(model.graphs)}
    assert all(v.graph is model.graphs[g] for v, (g, _) in values.items())
    assert all(op.graph is model.graphs[g] for op, (g, _) in ops.items())
    assert all(graph.model is model for graph in model.graphs)
    return [
        [(v.producer and (ops[v.producer.op], v.producer.slot)) for v in values],
        [[(ops[use.op], use.slot) for use in v.users] for v in values],
        [[v and values[v] for v in (*op.operands, *op.results, *op.intermediates)] for op in ops],
        [[graphs[called] for called in op.called_graphs()] for op in ops],
        [[values[v] for v in (*graph.inputs, *graph.outputs)] for graph in model.graphs],
        [(s.key, graphs[s.graph], [values[v] for _, v in (*s.inputs, *s.outputs)])
         for s in model.signatures],
        [number_of(model, v.buffer) for v in values],
    ]  # fmt: skip


def number_of(model: Model, buffer: Buffer | None) -> int | None:
    """Which of the model's buffers a tensor has, by identity."""
    return next((n for n, other in enumerate(model.buffers) if other is buffer), None)


def check(model: Model, found: Model) -> None:
    """Another model that is the same."""
    assert found is not model
    assert links(found) == links(model)
    assert [n for n, _ in found.metadata] == [n for n, _ in model.metadata]
    assert to_bytes(found, check=False) == to_bytes(model, check=False)


@both_ways
def test_everything_a_file_holds_is_kept(way: Way) -> None:
    check(imported(), way(imported()))


@both_ways
@pytest.mark.parametrize("name", ["mnist_lstm_fp32", "resnet8_int8"])
def test_real_models_are_kept(way: Way, name: str) -> None:
    model = luciole.load(data_path(f"models/{name}.tflite"))
    check(model, way(model))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol_will_do(protocol: int) -> None:
    for model in (network(), branches(), growing(3)):
        check(model, pickle.loads(pickle.dumps(model, protocol)))


@pytest.fixture(scope="module")
def every_operator() -> list[Model]:
    """Random models with all operators among them."""
    models: list[Model] = []
    seen: set[type[Op]] = set()
    for number, (cls, signature) in enumerate(kinds()):
        if cls not in seen:
            models.append(random_model(np.random.default_rng(number), cls, signature)[0])
            seen |= {type(op) for op in all_ops(models[-1].graphs)}
    assert seen >= {*OPS.values(), *CUSTOM_OPS.values()}
    return models


@both_ways
def test_every_operator_is_kept(way: Way, every_operator: list[Model]) -> None:
    for model in every_operator:
        check(model, way(model))


@both_ways
def test_graphs_that_are_called_are_those_of_the_new_model(way: Way) -> None:
    model = way(branches())
    (found,) = model.graph.ops
    assert found.called_graphs() == tuple(model.graphs[1:])
    for condition in (True, False):
        runs = [
            Interpreter(m).run({"condition": np.array(condition), "x": X, "y": X.T[:2]})
            for m in (branches(), model)
        ]
        assert runs[0].keys() == runs[1].keys()
        for name, array in runs[0].items():
            np.testing.assert_array_equal(runs[1][name], array)


def chain() -> Model:
    model = Model()
    graph = model.add_graph(Graph("main"))
    value = graph.add_input("x", (1, 3))
    for number in range(DEEP):
        value = graph.append(Exp(value), f"y{number}").output
    graph.outputs = [value]
    return model


@both_ways
def test_long_chains_are_not_too_deep(way: Way) -> None:
    model = chain()
    found = way(model)
    assert links(found) == links(model)
    end = way(model.graph.values[-1])
    assert end.name == f"y{DEEP - 1}"
    assert end.graph.values[-1] is end


@both_ways
def test_shared_buffers_stay_shared(way: Way) -> None:
    model = network()
    first, second = model.graph.values[1:3]
    second.buffer = first.buffer
    model.buffers.append(first.buffer or Buffer())
    model.metadata.append(("copy", model.buffers[-1]))
    found = way(model)
    graph = found.graph
    assert graph.values[1].buffer is graph.values[2].buffer is found.buffers[-1]
    assert found.metadata[-1][1] is found.buffers[-1]
    assert found.buffers[-1] is not model.buffers[-1]


def test_parts_are_pickled_with_the_whole() -> None:
    model = network()
    graph, op = model.graph, model.graph.ops[1]
    parts = (op, op.output, op.output.users, op.output.producer, graph, model.signatures, model)
    found_op, output, users, producer, found_graph, signatures, found = pickled(parts)
    assert found_op is found.graph.ops[1]
    assert output is found_op.output
    assert users == output.users
    assert (producer, producer.op) == (output.producer, found_op)
    assert found_graph is found.graph
    assert signatures == found.signatures
    check(model, found)
    again = pickled(op)
    assert to_bytes(again.graph.model) == to_bytes(model)
    assert again is again.graph.ops[1]


def test_a_graph_of_no_model_is_kept() -> None:
    graph = network().clone().graph.clone()[0]
    found = pickled(graph)
    assert found.model is None
    whole, other = Model(), Model()
    whole.add_graph(graph)
    other.add_graph(found)
    check(whole, other)


def test_tensors_and_operators_of_no_graph_are_kept() -> None:
    value = Value("x", TensorType.FLOAT32, (None, 3))
    value.make_constant(np.ones((2, 3), np.float32))
    found = pickled(value)
    assert (found.name, found.shape, found.graph, found.users) == ("x", (2, 3), None, [])
    np.testing.assert_array_equal(found.data, value.data)
    op = Add(value, value)
    found = pickled(op)
    assert found.operands[0] is found.operands[1]
    assert [(use.op, use.slot) for use in found.operands[0].users] == [(found, 0), (found, 1)]
    assert (found.graph, found.results, found.version) == (None, (), op.version)


def test_an_operator_that_is_not_in_the_graph_yet_is_left_out() -> None:
    model = network()
    op = Exp(model.graph.values[0])
    found = pickled(model)
    assert [use.op for use in found.graph.values[0].users] == found.graph.ops[:1]
    assert op.operands[0] is not None
    found_op = pickled(op)
    assert found_op.operands[0].users[-1].op is found_op
    assert found_op.operands[0].graph.model.graphs


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_constants_stay_read_only(tmp_path: Path, protocol: int) -> None:
    luciole.save(network(), tmp_path / "a.circle")
    model = luciole.load(tmp_path / "a.circle")
    found = pickle.loads(pickle.dumps(model, protocol))
    (tmp_path / "a.circle").unlink()
    data = value_named(found, "fc1/weights").data
    assert data is not None
    with pytest.raises(ValueError, match="read-only"):
        data[0] = 1
    check(model, found)


def test_a_deep_copy_shares_the_bytes_of_constants() -> None:
    model = from_bytes(to_bytes(network()))
    buffers = [value_named(m, "fc1/weights").buffer for m in (model, copy.deepcopy(model))]
    assert buffers[0] is not buffers[1]
    first, second = (b.data for b in buffers if b is not None and b.data is not None)
    assert np.shares_memory(first, second)


def test_bytes_that_can_be_written_are_copied() -> None:
    data = np.arange(3, dtype=np.uint8)
    buffer = Buffer(data)
    ways: tuple[Way, ...] = (copy.copy, copy.deepcopy, pickled)
    shallow, deep, found = (way(buffer).data for way in ways)
    assert shallow is data
    data[0] = 7
    assert (deep.tolist(), found.tolist()) == ([0, 1, 2], [0, 1, 2])
    assert (data.flags.writeable, deep.flags.writeable) == (True, True)
    assert not found.flags.writeable


def test_a_shallow_copy_is_a_clone() -> None:
    model = network()
    check(model, copy.copy(model))
    graph = copy.copy(model.graph)
    assert (graph.model, len(graph.ops)) == (None, len(model.graph.ops))
    op = model.graph.ops[0]
    value = copy.copy(op.output)
    assert (value.graph, value.producer, value.users) == (None, None, [])
    assert (value.name, value.shape) == (op.output.name, op.output.shape)
    twin = copy.copy(op)
    assert (twin.graph, twin.results, twin.operands) == (None, (), op.operands)
    assert model.graph.values[0].users[-1].op is twin


def test_pickling_refuses_what_is_not_whole() -> None:
    model = network()
    model.graph.values.remove(model.graph.ops[0].output)
    with pytest.raises(GraphError, match=r"graph 'main': <.*'fc1'> is not of this graph"):
        pickle.dumps(model)
    model = network()
    model.signatures.append(Signature("odd", Graph("other")))
    with pytest.raises(GraphError, match="signature 'odd' is of a graph that is not in the model"):
        pickle.dumps(model)


def outputs(model: Model) -> Any:
    """What another process computes."""
    return Interpreter(model).run(random(5, 1, 20))["fc2"], model


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_other_processes_take_models(method: str) -> None:
    model = network()
    with multiprocessing.get_context(method).Pool(1) as pool:
        found, returned = pool.apply(outputs, (model,))
    np.testing.assert_array_equal(found, outputs(model)[0])
    check(model, returned)


def test_errors_reach_other_processes() -> None:
    for error in (UnsupportedError("no", ["A", "B"]), GraphError("wrong"), LucioleError("odd")):
        found = pickled(error)
        assert (type(found), str(found), vars(found)) == (type(error), str(error), vars(error))


def test_results_of_the_quantizer_are_kept() -> None:
    result = luciole.quantize(network(), {"x": random(1, 40, 20)}, encode_bits=2)
    found = pickled(result)
    check(result.model, found.model)
    assert found.report.to_json() == result.report.to_json()
