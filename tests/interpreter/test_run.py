"""``run`` and the memory behind it: shapes, batches, views, every tensor readable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.interpreter import InputError, Interpreter, Observer
from luciole.ir import Array, Graph, Model, Op, ShapeError, Signature
from luciole.ir.ops.elementwise_binary import Add
from tests.networks import network, random, two_inputs, value_named

X = random(1, 6, 20)


def expected(model: Model, x: Array) -> dict[str, Array]:
    """Every computed tensor of ``network()`` by plain NumPy."""
    found: dict[str, Array] = {}
    for i in (1, 2):
        weights, bias = (value_named(model, f"fc{i}/{what}").data for what in ("weights", "bias"))
        assert weights is not None
        assert bias is not None
        found[f"fc{i}"] = x.astype(np.float64) @ weights.T + bias
        x = found[f"act{i}"] = np.tanh(found[f"fc{i}"])
    del found["act2"]
    return found


def test_run_takes_and_gives_arrays_by_name() -> None:
    model = network()
    outputs = Interpreter(model).run({"x": X[:1]})
    assert list(outputs) == ["fc2"]
    np.testing.assert_allclose(outputs["fc2"], expected(model, X[:1])["fc2"], atol=1e-6)
    np.testing.assert_array_equal(Interpreter(model).run(X[:1])["fc2"], outputs["fc2"])


def test_run_by_a_signature_s_names_gives_results_by_them() -> None:
    model = network()
    interpreter, wanted = Interpreter(model), expected(model, X)["fc2"]
    for rows in (slice(0, 1), slice(0, 1), slice(1, 3), slice(3, 4)):  # first, known, resized
        found = interpreter.run({"a": X[rows]})
        assert list(found) == ["b"]
        np.testing.assert_allclose(found["b"], wanted[rows], atol=1e-6)
        assert list(interpreter.run({"x": X[rows]})) == ["fc2"]


def test_tensors_own_names_come_before_a_signature_s() -> None:
    model = two_inputs()
    graph = model.graph
    left, right = graph.inputs
    model.signatures = [
        Signature("crossed", graph, [("left", right), ("right", left)], [("s", graph.outputs[0])]),
        Signature("half", graph, [("l", left)], [("s", graph.outputs[0])]),
        Signature("whole", graph, [("l", left), ("r", right)], [("s", graph.outputs[0])]),
    ]
    interpreter, x, y = Interpreter(model), X[:1, :6], X[:1, :9]
    own = interpreter.run({"left": x, "right": y})
    found = interpreter.run({"r": y, "l": x})
    np.testing.assert_array_equal(found["s"], own["sum"])
    with pytest.raises(InputError, match=r"the inputs are .*left.* or \['l', 'r'\], given were"):
        interpreter.run({"l": x, "right": y})


def test_inputs_that_share_a_name_are_told_apart_by_a_signature() -> None:
    model = two_inputs()
    graph = model.graph
    wanted = Interpreter(model).run({"left": X[:1, :6], "right": X[:1, :9]})["sum"]
    for value in graph.inputs:
        value.name = "in"
    with pytest.raises(InputError, match="inputs share a name"):
        Interpreter(model).run({"in": X[:1, :6]})
    pairs = list(zip(("l", "r"), graph.inputs, strict=True))
    model.signatures = [Signature("serve", graph, pairs, [("s", graph.outputs[0])])]
    found = Interpreter(model).run({"l": X[:1, :6], "r": X[:1, :9]})
    np.testing.assert_array_equal(found["s"], wanted)


def test_run_refuses_a_shape_that_does_not_fit_and_names_the_input() -> None:
    with pytest.raises(ShapeError, match=r"^input 'a' is \[1,20\], given was \[1,21\]: FullyConn"):
        Interpreter(network()).run({"x": np.zeros((1, 21), np.float32)})


def test_run_takes_lists() -> None:
    found = Interpreter(two_inputs()).run({"left": X[:2, :6], "right": X[2:4, :9]})
    assert found["sum"].shape == (2, 5)


@pytest.mark.parametrize("shape", [(1, 20), (None, 20), (None, None)])
def test_run_resizes_by_what_it_is_given(shape: tuple[int | None, ...]) -> None:
    model = network(shape=shape)
    interpreter = Interpreter(model)
    wanted = expected(model, X)["fc2"]
    for rows in (1, 6, 3, 3, 1):
        found = interpreter.run(X[:rows])["fc2"]
        np.testing.assert_allclose(found, wanted[:rows], atol=1e-6)


def test_runs_of_one_shape_in_a_row_give_results_of_their_own() -> None:
    interpreter, model = Interpreter(network()), network()
    wanted = expected(model, X)["fc2"]
    found = [interpreter.run({"x": X[i : i + 1]})["fc2"] for i in (0, 1, 2, 1)]
    for y, i in zip(found, (0, 1, 2, 1), strict=True):
        np.testing.assert_allclose(y, wanted[i : i + 1], atol=1e-6)


@pytest.mark.parametrize("given", [{"x": X[1:2]}, X[1:2]], ids=["by name", "alone"])
def test_a_second_run_of_one_shape_takes_the_short_way(
    monkeypatch: pytest.MonkeyPatch, given: Any
) -> None:
    interpreter = Interpreter(network())
    (wanted,) = interpreter.run(given).values()
    monkeypatch.delattr(Interpreter, "computed")
    (found,) = interpreter.run(given).values()
    np.testing.assert_array_equal(found, wanted)


def test_a_second_run_refuses_what_the_first_would_and_tells_observers() -> None:
    interpreter = Interpreter(network())
    interpreter.run({"x": X[:1]})
    with pytest.raises(InputError, match="type int64 but expected type"):
        interpreter.run({"x": X[:1].astype(np.int64)})
    with pytest.raises(InputError, match=r"the inputs are \['x'\] or \['a'\], given were \['y'\]"):
        interpreter.run({"y": X[:1]})
    seen: list[str] = []

    class Names(Observer):
        def after_operator(self, op: Op) -> None:
            seen.append(op.name)

    interpreter.attach_observer(Names())
    interpreter.run({"x": X[:1]})
    assert seen == ["fc1", "act1", "fc2"]


def test_an_empty_batch_gives_an_empty_result() -> None:
    assert Interpreter(network()).run(X[:0])["fc2"].shape == (0, 4)


def test_resize_and_allocate_and_set_and_invoke() -> None:
    model = network()
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, np.array([6, 20]))
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, X)
    interpreter.invoke()
    output = interpreter.get_output_details()[0]
    assert output["shape"].tolist() == [6, 4]
    found = interpreter.get_tensor(output["index"])
    np.testing.assert_allclose(found, expected(model, X)["fc2"], atol=1e-6)


def test_a_resize_to_the_same_shape_keeps_memory_and_contents() -> None:
    interpreter = Interpreter(network())
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, X[:1])
    interpreter.resize_tensor_input(0, [1, 20])
    np.testing.assert_array_equal(interpreter.get_tensor(0), X[:1])


def test_invoke_refuses_after_a_resize() -> None:
    interpreter = Interpreter(network())
    interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, [2, 20])
    with pytest.raises(InputError, match=r"call allocate_tensors\(\) first"):
        interpreter.invoke()


def test_every_tensor_can_be_read() -> None:
    model = network()
    interpreter = Interpreter(model)
    interpreter.run(X)
    wanted = expected(model, X)
    for index, value in enumerate(model.graph.values):
        found = interpreter.get_tensor(index)
        if value.is_constant:
            np.testing.assert_array_equal(found, value.data)
        else:
            want = X if value.name == "x" else wanted[value.name]
            np.testing.assert_allclose(found, want, atol=1e-6)


def test_get_tensor_is_a_copy_and_tensor_is_a_view() -> None:
    interpreter = Interpreter(network())
    interpreter.allocate_tensors()
    view = interpreter.tensor(0)
    view()[...] = X[:1]
    copy = interpreter.get_tensor(0)
    np.testing.assert_array_equal(copy, X[:1])
    copy[...] = 0
    np.testing.assert_array_equal(view(), X[:1])
    assert np.shares_memory(view(), view())


def test_a_view_follows_a_resize() -> None:
    interpreter = Interpreter(network())
    interpreter.allocate_tensors()
    view = interpreter.tensor(0)
    interpreter.resize_tensor_input(0, [3, 20])
    interpreter.allocate_tensors()
    assert view().shape == (3, 20)


def test_constants_cannot_be_written_through_a_view() -> None:
    interpreter = Interpreter(network())
    interpreter.allocate_tensors()
    with pytest.raises(ValueError, match="read-only"):
        interpreter.tensor(1)()[...] = 0


def test_results_are_the_callers_own() -> None:
    interpreter = Interpreter(network())
    first = interpreter.run(X[:1])["fc2"]
    kept = first.copy()
    interpreter.run(X[1:2])
    np.testing.assert_array_equal(first, kept)


def test_the_callers_input_may_change_after_set_tensor() -> None:
    interpreter = Interpreter(network())
    x = X[:1].copy()
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    x[...] = 0
    np.testing.assert_array_equal(interpreter.get_tensor(0), X[:1])


def test_an_input_that_is_an_output() -> None:
    model = network()
    model.graph.outputs = [*model.graph.outputs, model.graph.inputs[0]]
    outputs = Interpreter(model).run(X)
    np.testing.assert_array_equal(outputs["x"], X)


def test_a_model_may_come_as_path_bytes_or_model(tmp_path: Path) -> None:
    model = network()
    path = tmp_path / "m.circle"
    luciole.save(model, path)
    wanted = luciole.Interpreter(model).run(X)["fc2"]
    for interpreter in (
        luciole.Interpreter(path),
        luciole.Interpreter(str(path)),
        luciole.Interpreter(model_content=to_bytes(model)),
    ):
        np.testing.assert_array_equal(interpreter.run(X)["fc2"], wanted)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"y": X}, "the inputs are ['x'] or ['a'], given were ['y']"),
        ({}, "the inputs are ['x'] or ['a'], given were []"),
        ({"x": X, "y": X}, "the inputs are ['x'] or ['a'], given were ['x', 'y']"),
        ({"x": X.astype(np.int64)}, "Got value of type int64 but expected type float32"),
        ({"x": np.full((1, 20), "text")}, "an array of numbers is needed, found <U4"),
    ],
)
def test_run_refuses_what_the_model_does_not_take(given: Any, sentence: str) -> None:
    with pytest.raises(luciole.LucioleError) as raised:
        Interpreter(network()).run(given)
    assert sentence in str(raised.value)


def test_run_refuses_a_shape_that_does_not_go_through() -> None:
    with pytest.raises(
        luciole.LucioleError, match=r"FullyConnected 'fc1': input .*divide into rows"
    ):
        Interpreter(network()).run(X[:, :19])


def test_an_interpreter_goes_on_after_a_refusal() -> None:
    interpreter = Interpreter(network())
    wanted = interpreter.run(X)["fc2"]
    with pytest.raises(luciole.LucioleError):
        interpreter.run(X[:, :19])
    np.testing.assert_array_equal(interpreter.run(X)["fc2"], wanted)


def test_run_refuses_one_array_for_two_inputs() -> None:
    with pytest.raises(InputError, match=r"has 2 inputs \['left', 'right'\]: give a dictionary"):
        Interpreter(two_inputs()).run(X)


def test_run_refuses_inputs_that_share_a_name() -> None:
    graph = Graph("main")
    model = Model()
    model.add_graph(graph)
    graph.append(Add(graph.add_input("x", (1, 2)), graph.add_input("x", (1, 2))), "sum")
    graph.outputs = [graph.values[-1]]
    interpreter = Interpreter(model)
    with pytest.raises(InputError, match="inputs share a name"):
        interpreter.run({"x": X[:1, :2]})
    interpreter.allocate_tensors()
    for place in (0, 1):
        interpreter.set_tensor(place, X[:1, :2])
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(2), 2 * X[:1, :2])
