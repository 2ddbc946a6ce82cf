"""The calls that LiteRT has: the same dictionaries, the same refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.interpreter import InputError
from luciole.ir import Array, Graph, Model, Signature
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.elementwise_unary import Abs
from tests.networks import network, random, two_inputs, value_named
from tests.support import data_path

MODELS = ["resnet8_fp32", "resnet8_int8", "mnist_lstm_fp32"]
CALLS = ["get_input_details", "get_output_details", "get_tensor_details"]


def both(name: str) -> tuple[luciole.Interpreter, Any]:
    """Our interpreter and LiteRT's of one file."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    path = str(data_path(f"models/{name}.tflite"))
    reference = OpResolverType.BUILTIN_REF
    return luciole.Interpreter(path), Interpreter(path, experimental_op_resolver_type=reference)


def plain(details: Any) -> Any:
    """Details as values that compare: arrays with their type."""
    if isinstance(details, dict):
        return {key: plain(value) for key, value in details.items()}
    if isinstance(details, np.ndarray):
        return details.dtype, details.tolist()
    return type(details), details


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("call", CALLS)
def test_details_are_litert_s(name: str, call: str) -> None:
    ours, theirs = (getattr(interpreter, call)() for interpreter in both(name))
    assert [list(d) for d in ours] == [list(d) for d in theirs]
    assert [plain(d) for d in ours] == [plain(d) for d in theirs]


@pytest.mark.parametrize("call", CALLS)
def test_details_after_a_resize_are_litert_s(call: str) -> None:
    ours, theirs = both("resnet8_fp32")
    found = []
    for interpreter in (ours, theirs):
        interpreter.resize_tensor_input(0, [5, 32, 32, 3])
        interpreter.allocate_tensors()
        found.append(getattr(interpreter, call)())
    names = {d["name"] for d in found[0]}
    kept = [[plain(d) for d in details if d["name"] in names] for details in found]
    assert kept[0] == kept[1]  # LiteRT adds its kernels' own temporary tensors
    assert any(d["shape"][0] == 5 for d in found[0])


@pytest.mark.parametrize(
    "given",
    [
        np.zeros((1, 32, 32, 3), np.float64),
        np.zeros((32, 32, 3), np.float32),
        np.zeros((1, 32, 32, 4), np.float32),
        np.zeros((2, 32, 32, 3), np.float32),
        np.zeros((), np.float32),
        np.zeros((1, 32, 32, 3), np.int8),
    ],
)
def test_set_tensor_refuses_in_the_words_of_litert(given: Array) -> None:
    texts = []
    for interpreter in both("resnet8_fp32"):
        interpreter.allocate_tensors()
        with pytest.raises(ValueError, match="Cannot set tensor") as raised:
            interpreter.set_tensor(0, given)
        texts.append(str(raised.value).strip().lower())  # it writes FLOAT64 where NumPy has float64
    assert texts[0] == texts[1]


def test_set_tensor_refuses_a_constant() -> None:
    model = network()
    interpreter = luciole.Interpreter(model)
    interpreter.allocate_tensors()
    place = model.graph.values.index(value_named(model, "fc1/bias"))
    with pytest.raises(InputError, match="'fc1/bias' is a constant"):
        interpreter.set_tensor(place, np.zeros(16, np.float32))


@pytest.mark.parametrize("index", [-1, 8, 10**6, 1.5, None, "x"])
def test_calls_refuse_tensors_that_are_not_there(index: Any) -> None:
    interpreter = luciole.Interpreter(network())
    interpreter.allocate_tensors()
    for call in (
        interpreter.get_tensor,
        interpreter.tensor,
        lambda i: interpreter.set_tensor(i, np.zeros(1, np.float32)),
        lambda i: interpreter.resize_tensor_input(i, [1]),
    ):
        with pytest.raises(
            InputError, match=f"there is no tensor {index!r}, they are numbered 0 to"
        ):
            call(index)


def test_calls_refuse_before_allocate_tensors() -> None:
    interpreter = luciole.Interpreter(network())
    for call in (
        interpreter.invoke,
        interpreter.reset_all_variables,
        lambda: interpreter.get_tensor(0),
        lambda: interpreter.set_tensor(0, np.zeros((1, 20), np.float32)),
    ):
        with pytest.raises(InputError, match=r"call allocate_tensors\(\) first"):
            call()


@pytest.mark.parametrize("size", [(1.5, 20), [None, 20], np.array([1.0, 20.0])])
def test_resize_refuses_what_are_no_whole_numbers(size: Any) -> None:
    interpreter = luciole.Interpreter(network())
    with pytest.raises(InputError, match="input 'x' is resized to whole numbers, found"):
        interpreter.resize_tensor_input(0, size)
    interpreter.resize_tensor_input(0, np.array([3, 20], np.int32))


def test_resize_refuses_a_tensor_that_is_no_input() -> None:
    interpreter = luciole.Interpreter(network())
    with pytest.raises(InputError, match="tensor 1 'fc1/weights' is no input: only inputs are"):
        interpreter.resize_tensor_input(1, [3, 3])


@pytest.mark.parametrize("size", [(2, 31, 32, 3), (2, 3), (1, 32, 32, 3, 1), (2, 32, 32, 4)])
def test_strict_resize_refuses_extents_that_the_model_fixes(size: tuple[int, ...]) -> None:
    for interpreter in both("resnet8_fp32"):
        with pytest.raises((InputError, RuntimeError)):
            interpreter.resize_tensor_input(0, size, strict=True)
        interpreter.resize_tensor_input(0, (2, 32, 32, 3), strict=True)


def test_resize_refuses_a_negative_extent() -> None:
    interpreter = luciole.Interpreter(network())
    with pytest.raises(InputError, match=r"input 'x' is \[1, 20\], it cannot be resized to \[-1"):
        interpreter.resize_tensor_input(0, [-1, 20])


def test_the_signature_list_is_litert_s() -> None:
    ours, theirs = both("mnist_lstm_fp32")
    assert ours.get_signature_list() == theirs.get_signature_list()
    ours, theirs = both("resnet8_fp32")
    assert ours.get_signature_list() == theirs.get_signature_list() == {}


@pytest.mark.parametrize("key", ["serving_default", None])
def test_a_signature_runner_is_litert_s(key: str | None) -> None:
    x = np.random.default_rng(0).random((1, 28, 28), np.float32)
    ours, theirs = (i.get_signature_runner(key) for i in both("mnist_lstm_fp32"))
    assert plain(ours.get_input_details()) == plain(theirs.get_input_details())
    assert plain(ours.get_output_details()) == plain(theirs.get_output_details())
    found, wanted = ours(fixed_input=x), theirs(fixed_input=x)
    assert found.keys() == wanted.keys() == {"sequential"}
    np.testing.assert_allclose(found["sequential"], wanted["sequential"], rtol=0, atol=1e-5)


def test_names_of_a_signature_are_sorted_as_in_litert() -> None:
    from ai_edge_litert.interpreter import Interpreter as LiteRT

    model = Model()
    graph = model.add_graph(Graph("main"))
    x, y = graph.add_input("x", (2,)), graph.add_input("y", (2,))
    results = [graph.append(cls(x, y), cls.__name__).output for cls in (Add, Mul)]
    graph.outputs = results
    names = [("z", x), ("B", y)], [("sum", results[0]), ("mul", results[1])]
    model.signatures.append(Signature("serve", graph, *names))
    content = to_bytes(model, "tflite")
    ours, theirs = luciole.Interpreter(model_content=content), LiteRT(model_content=content)
    assert ours.get_signature_list() == theirs.get_signature_list()
    assert ours.get_signature_list() == {"serve": {"inputs": ["B", "z"], "outputs": ["mul", "sum"]}}
    a, b = (i.get_signature_runner("serve") for i in (ours, theirs))
    assert list(a.get_input_details()) == list(b.get_input_details())
    given = {"z": np.array([1, 2], "f4"), "B": np.array([3, 4], "f4")}
    found, wanted = a(**given), b(**given)
    assert list(found) == list(wanted) == ["mul", "sum"]
    np.testing.assert_array_equal(found["mul"], wanted["mul"])


def test_a_signature_runner_resizes() -> None:
    model = network(shape=(None, 20))
    runner = luciole.Interpreter(model).get_signature_runner("serve")
    x = random(0, 6, 20)
    assert runner(a=x[:1])["b"].shape == (1, 4)
    np.testing.assert_array_equal(runner(a=x)["b"], luciole.Interpreter(model).run(x)["fc2"])


def test_a_signature_runner_refuses_other_names() -> None:
    runner = luciole.Interpreter(network()).get_signature_runner()
    for arguments in ({}, {"x": random(0, 1, 20)}, {"a": random(0, 1, 20), "c": 1}):
        with pytest.raises(InputError, match=r"serve takes \['a'\], given were "):
            runner(**arguments)


def test_get_signature_runner_refuses_a_key_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"there is no signature 'x', only \['serve'\]"):
        luciole.Interpreter(network()).get_signature_runner("x")
    with pytest.raises(InputError, match="there is no signature None, only"):
        luciole.Interpreter(two_inputs()).get_signature_runner()


def test_the_interpreter_refuses_two_models_and_none() -> None:
    for arguments in ({}, {"model_path": network(), "model_content": b""}):
        with pytest.raises(TypeError, match="give either a model or its bytes as model_content"):
            luciole.Interpreter(**arguments)  # type: ignore[arg-type]  # that is the point


def test_another_graph_of_a_model_runs() -> None:
    model = network()
    other = model.add_graph(Graph("other"))
    other.append(Abs(other.add_input("x", (3,))), "y")
    other.outputs = [other.ops[0].output]
    found = luciole.Interpreter(model, graph=other).run(np.array([-1, 2, -3], np.float32))
    assert found["y"].tolist() == [1, 2, 3]
