"""Many records: in batches where the graph allows it, else one by one."""

from __future__ import annotations

import re

import numpy as np
import pytest

import luciole
from luciole.interpreter import InputError, Interpreter, evaluation, records
from luciole.interpreter.records import (
    BATCH,
    batch_size,
    batches_agree,
    check_records,
    outputs_of,
    run_records,
    threads_for,
    untracked,
)
from luciole.ir import Array, Graph, Model, Shape, TensorType, Value
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.softmax import Softmax
from luciole.ir.ops.transpose import Transpose
from luciole.ir.value import has_batch_axis
from tests.networks import network, random, two_inputs

X = random(1, 150, 20)


def one_by_one(model: Model, x: Array) -> Array:
    interpreter = Interpreter(model)
    name = model.graph.outputs[0].name
    return np.concatenate([interpreter.run(row[None])[name] for row in x])


@pytest.mark.parametrize("shape", [(1, 20), (None, 20)])
def test_batches_give_what_single_records_give(shape: Shape) -> None:
    model = network(shape=shape)
    interpreter = Interpreter(model)
    assert batch_size(interpreter, {"x": X}) == BATCH
    found = outputs_of(interpreter, {"x": X})["fc2"]
    np.testing.assert_allclose(found, one_by_one(model, X), rtol=0, atol=1e-5)


def test_quantized_models_run_in_batches() -> None:
    model = luciole.quantize(network(), X, encode_bits=2).model
    found = outputs_of(Interpreter(model), {"x": X})["fc2"]
    np.testing.assert_array_equal(found, one_by_one(model, X))


@pytest.mark.parametrize(("cores", "least", "threads"), [(2, 0, 2), (99, 0, 8), (2, 10**6, 1)])
def test_long_work_takes_the_cores_and_gives_the_same(
    cores: int, least: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = network()
    alone, _ = evaluation.evaluate_outputs(model, {"x": X}, None, None, None, untracked)
    monkeypatch.setattr(records, "LEAST_PRODUCTS", least)
    monkeypatch.setattr(records, "cores", lambda: cores)
    assert threads_for(model, {"x": X}) == threads
    shared, _ = evaluation.evaluate_outputs(model, {"x": X}, None, None, None, untracked)
    np.testing.assert_array_equal(shared[0].answers, alone[0].answers)


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 150])
def test_every_record_is_run_once_and_counted(count: int) -> None:
    done: list[int] = []
    parts = list(run_records(Interpreter(network()), {"x": X[:count]}, done.append))
    assert sum(len(p["fc2"]) for p in parts) == sum(done) == count
    assert len(parts) == -(-count // BATCH)


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_the_caller_may_choose_the_batch(batch: int) -> None:
    parts = list(run_records(Interpreter(network()), {"x": X}, batch=batch))
    assert len(parts[0]["fc2"]) == min(batch, 150)
    wanted = one_by_one(network(), X)
    np.testing.assert_allclose(np.concatenate([p["fc2"] for p in parts]), wanted, atol=1e-5)


def over_the_batch() -> Model:
    """A softmax along the first axis: records run together disturb each other."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    turned = graph.add_constant("turned", np.array([1, 0], np.int32))
    op = graph.append(Transpose(graph.add_input("x", (1, 20)), turned), "t")
    op = graph.append(Softmax(op.output, beta=1.0), "s")
    graph.append(Transpose(op.output, turned), "y")
    graph.outputs = [graph.values[-1]]
    return model


def fixed_to_one() -> Model:
    """A reshape to [1, 20]: two records do not go through."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 4, 5))
    graph.append(Reshape(x, graph.add_constant("s", np.array([1, 20], np.int32))), "y")
    graph.outputs = [graph.values[-1]]
    return model


def test_records_that_disturb_each_other_run_one_by_one() -> None:
    model = over_the_batch()
    interpreter = Interpreter(model)
    assert not batches_agree(interpreter, {"x": X})
    assert batch_size(interpreter, {"x": X}) == 1
    np.testing.assert_array_equal(outputs_of(interpreter, {"x": X[:5]})["y"], np.ones((5, 20)))


def test_a_graph_that_takes_one_record_runs_them_one_by_one() -> None:
    interpreter = Interpreter(fixed_to_one())
    x = X.reshape(150, 4, 5)
    assert batch_size(interpreter, {"x": x}) == 1
    np.testing.assert_array_equal(outputs_of(interpreter, {"x": x})["y"], X)


@pytest.mark.parametrize("shape", [(3, 20), (20,)])
def test_graphs_without_a_batch_axis_take_whole_records(shape: tuple[int, ...]) -> None:
    model = network(shape=shape)
    records = random(2, 4, *shape)
    assert batch_size(Interpreter(model), {"x": records}) == 1
    found = outputs_of(Interpreter(model), {"x": records})["fc2"]
    interpreter = Interpreter(model)
    wanted = [interpreter.run(record)["fc2"] for record in records]
    stacked = np.stack(wanted) if shape == (3, 20) else np.concatenate(wanted)
    np.testing.assert_array_equal(found, stacked)


def test_models_with_several_inputs_are_fed_side_by_side() -> None:
    model = two_inputs()
    records = {"left": random(1, 9, 6), "right": random(2, 9, 9)}
    found = outputs_of(Interpreter(model), records)["sum"]
    for i in range(9):
        one = Interpreter(model).run({name: array[i : i + 1] for name, array in records.items()})
        np.testing.assert_allclose(found[i : i + 1], one["sum"], atol=1e-5)


def test_an_infinity_does_not_make_other_differences_look_small() -> None:
    model = over_the_batch()
    graph = model.graph
    twice = graph.append(Add(graph.inputs[0], graph.inputs[0]), "twice").output
    graph.append(Add(graph.outputs[0], twice), "z")
    graph.outputs = [graph.values[-1]]
    x = X[:4].copy()
    x[:, 0] = 3e38
    assert not batches_agree(Interpreter(model), {"x": x})


def test_results_that_are_nan_in_the_same_places_agree() -> None:
    x = X[:4].copy()
    x[:, 0] = np.nan
    assert batches_agree(Interpreter(network()), {"x": x})


@pytest.mark.parametrize(
    ("shape", "batched"),
    [
        ((1, 3), True),
        ((None, 3), True),
        ((1,), True),
        ((2, 3), False),
        ((0, 3), False),
        ((), False),
    ],
)
def test_has_batch_axis(shape: Shape, batched: bool) -> None:
    assert has_batch_axis(Value("v", TensorType.FLOAT32, shape)) is batched


@pytest.mark.parametrize(
    ("records", "sentence"),
    [
        ({}, "the inputs are ['left', 'right'], the data has []"),
        ({"left": X[:, :6]}, "the inputs are ['left', 'right'], the data has ['left']"),
        ({"left": X[:3, :6], "right": X[:4, :9]}, "the same number of records and at least one"),
        ({"left": X[:0, :6], "right": X[:0, :9]}, "at least one, found [0]"),
        ({"left": X[:3, :6], "right": X[:3, :8]}, "a record of 'right' is [9], the data has [8]"),
        ({"left": X[:3], "right": X[:3, :9]}, "a record of 'left' is [6], the data has [20]"),
        ({"left": X[:3, 0], "right": X[:3, :9]}, "a record of 'left' is [6], the data has []"),
        ({"left": X[0, 0], "right": X[:3, :9]}, "first axis counts records"),
    ],
)
def test_check_records_refuses_what_does_not_fit(records: dict[str, Array], sentence: str) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        check_records(two_inputs().graph, records)


def test_run_records_refuses_another_type() -> None:
    with pytest.raises(InputError, match="Got value of type int64 but expected type float32"):
        list(run_records(Interpreter(network()), {"x": X.astype(np.int64)}))
