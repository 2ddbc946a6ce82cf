"""Constants folded, shapes known only at run time, and what a plan refuses."""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter, Plan, compile_graph
from luciole.interpreter.memory import MemoryLimitError
from luciole.ir import (
    Array,
    Graph,
    GraphError,
    Model,
    ShapeError,
    TensorType,
    UnknownOp,
    UnsupportedError,
    Value,
)
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.complex_parts import ComplexAbs
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.shape import Shape
from luciole.ir.ops.space_to_batch_nd import SpaceToBatchND
from tests.networks import dense, network, random, value_named

X = random(1, 6, 20)


def graph_of(shape: tuple[int | None, ...] = (1, 20)) -> Graph:
    graph = Model().add_graph(Graph("main"))
    graph.add_input("x", shape)
    return graph


def model_of(graph: Graph) -> Model:
    """The graph's model, its last tensor the output."""
    assert graph.model is not None
    graph.outputs = [graph.ops[-1].output]
    return graph.model


def names_of(plan: Plan) -> list[str]:
    return [step.op.name for step in plan.steps]


# ---------------------------------------------------------------------------------- folding
def with_computed_weights() -> Model:
    graph = graph_of()
    flat = graph.add_constant("flat", random(3, 80))
    shape = graph.add_constant("shape", np.array([4, 20], np.int32))
    graph.append(Reshape(flat, shape), "weights")
    graph.append(FullyConnected(graph.inputs[0], graph.values[-1], None), "fc")
    return model_of(graph)


def test_constants_are_computed_once() -> None:
    model = with_computed_weights()
    plan = compile_graph(model.graph, {model.graph.inputs[0]: (1, 20)})
    assert names_of(plan) == ["fc"]
    found = plan.array(value_named(model, "weights"))
    np.testing.assert_array_equal(found, random(3, 80).reshape(4, 20))


def test_folding_leaves_the_model_alone() -> None:
    model = with_computed_weights()
    before = to_bytes(model)
    interpreter = Interpreter(model)
    wanted = X @ random(3, 80).reshape(4, 20).T
    np.testing.assert_allclose(interpreter.run(X)["fc"], wanted, atol=1e-5)
    assert to_bytes(model) == before


def test_shapes_of_inputs_are_constants_until_a_resize() -> None:
    graph = graph_of((None, 4, 5))
    graph.append(Shape(graph.inputs[0], out_type=TensorType.INT32), "shape")
    graph.append(Reshape(graph.inputs[0], graph.values[-1]), "same")
    model = model_of(graph)
    plan = compile_graph(graph, {graph.inputs[0]: (2, 4, 5)})
    assert names_of(plan) == ["same"]
    for rows in (1, 3):
        x = random(0, rows, 4, 5)
        np.testing.assert_array_equal(Interpreter(model).run(x)["same"], x)


def test_a_layer_that_depends_on_constants_only_needs_no_step() -> None:
    graph = graph_of()
    graph.append(Tanh(graph.add_constant("c", random(2, 1, 20))), "t")
    dense(graph, graph.values[-1], (3, 20), "fc")
    model = model_of(graph)
    plan = compile_graph(graph, {graph.inputs[0]: (1, 20)})
    assert plan.steps == []
    weights, bias = (value_named(model, f"fc/{what}").data for what in ("weights", "bias"))
    assert weights is not None
    assert bias is not None
    wanted = np.tanh(random(2, 1, 20)) @ weights.T + bias
    np.testing.assert_allclose(Interpreter(model).run(X[:1])["fc"], wanted, atol=1e-5)


def test_folded_constants_lie_in_memory_as_compiled_kernels_walk_them() -> None:
    """The kernel that is folded here gives a view whose axes were exchanged."""
    graph = Model().add_graph(Graph("main"))
    pixels = random(3, 1, 2, 6, 3)
    block = graph.add_constant("block", np.array([1, 3], np.int32))
    pads = graph.add_constant("pads", np.zeros((2, 2), np.int32))
    space = SpaceToBatchND(graph.add_constant("c", pixels), block, pads)
    folded = graph.append(space, "folded").output
    x = graph.add_input("x", (3, 2, 2, 3))
    graph.append(Add(x, folded), "sum")
    model = model_of(graph)
    plan = compile_graph(graph, {x: (3, 2, 2, 3)})
    assert [step.native is not None for step in plan.steps] == [True]
    given = random(4, 3, 2, 2, 3)
    wanted = pixels.reshape(1, 2, 1, 2, 3, 3).transpose(2, 4, 0, 1, 3, 5).reshape(3, 2, 2, 3)
    np.testing.assert_array_equal(Interpreter(model).run(given)["sum"], given + wanted)


# -------------------------------------------------------------- shapes known only at run time
def with_computed_shape() -> Model:
    """x reshaped to what the second input says, then TANH, then back to rows of 20 and a layer."""
    graph = graph_of((6, 20))
    wanted = graph.add_input("wanted", (2,), TensorType.INT32)
    op = Reshape(graph.inputs[0], wanted)
    result = graph.add_value(Value("reshaped", TensorType.FLOAT32, (None, None)))
    graph.append(op, results=[result])
    tanh = graph.append(Tanh(result), "tanh").output
    rows = graph.add_constant("rows", np.array([-1, 20], np.int32))
    graph.append(Reshape(tanh, rows), "back")
    dense(graph, graph.ops[-1].output, (3, 20), "fc")
    return model_of(graph)


@pytest.mark.parametrize("reread", [False, True])
def test_shapes_that_are_inputs_may_change_from_run_to_run(reread: bool) -> None:
    model = with_computed_shape()
    model = from_bytes(to_bytes(model)) if reread else model
    interpreter = Interpreter(model)
    weights, bias = (value_named(model, f"fc/{what}").data for what in ("weights", "bias"))
    assert weights is not None
    assert bias is not None
    wanted = np.tanh(X) @ weights.T + bias
    tanh = model.graph.values.index(value_named(model, "tanh"))
    for extents in ([6, 20], [2, 60], [120, 1], [3, -1]):
        y = interpreter.run({"x": X, "wanted": np.array(extents, np.int32)})["fc"]
        np.testing.assert_allclose(y, wanted, atol=1e-5)
        assert interpreter.get_tensor(tanh).shape == X.reshape(extents).shape


def test_a_compiled_kernel_waits_for_a_shape_that_is_not_known() -> None:
    model = with_computed_shape()
    records = {"x": X[None], "wanted": np.array([[2, 60]], np.int32)}
    quantized = luciole.quantize(model, records, encode_bits=4).model
    plan = compile_graph(quantized.graph, {v: v.dims for v in quantized.graph.inputs})
    assert any(plan.shape(op.output) is None for op in quantized.graph.ops)
    given = {"x": X, "wanted": np.array([2, 60], np.int32)}
    wanted, found = (Interpreter(m).run(given)["fc"] for m in (model, quantized))
    assert np.mean((wanted - found) ** 2) < 0.05 * np.mean(wanted**2)


def test_a_tensor_without_contents_refuses_to_be_read() -> None:
    interpreter = Interpreter(with_computed_shape())
    interpreter.allocate_tensors()
    place = interpreter.graph.values.index(value_named(interpreter.model, "tanh"))
    with pytest.raises(luciole.LucioleError, match="tensor 'tanh' has no contents: nothing"):
        interpreter.get_tensor(place)


def test_running_refuses_a_shape_that_does_not_fit() -> None:
    interpreter = Interpreter(with_computed_shape())
    with pytest.raises(luciole.LucioleError, match=r"Reshape 'reshaped': .*\[7, 20\]"):
        interpreter.run({"x": X, "wanted": np.array([7, 20], np.int32)})
    good = {"x": X, "wanted": np.array([2, 60], np.int32)}
    assert interpreter.run(good)["fc"].shape == (6, 3)


# ---------------------------------------------------------------------------------- refusals
def test_the_interpreter_refuses_more_memory_than_allowed() -> None:
    interpreter = Interpreter(network(), memory_limit=1000)
    interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, [50, 20])
    with pytest.raises(
        MemoryLimitError, match=r"'x' \[50,20\] needs memory beyond the limit of 10"
    ):
        interpreter.allocate_tensors()


@pytest.mark.parametrize("rows", [2**31 - 1, 2**40])
def test_the_interpreter_refuses_absurd_sizes_before_taking_memory(rows: int) -> None:
    interpreter = Interpreter(network())
    interpreter.resize_tensor_input(0, [rows, 20])
    with pytest.raises(MemoryLimitError, match="needs memory beyond the limit of 4294967296 byte"):
        interpreter.allocate_tensors()


def add_unknown(graph: Graph, number: int, name: str, **given: str) -> None:
    x: Value = graph.values[-1] if graph.ops else graph.inputs[0]
    result = graph.add_value(Value(name, TensorType.FLOAT32, (1, 20)))
    graph.append(UnknownOp(number, [x], **given), results=[result])


def test_the_interpreter_refuses_and_lists_every_unsupported_operator() -> None:
    graph = graph_of()
    for number, name in ((32, "a"), (32, "b"), (125, "c")):
        add_unknown(graph, number, name, custom_code="Mystery")
    with pytest.raises(UnsupportedError) as raised:
        Interpreter(model_of(graph)).allocate_tensors()
    text = str(raised.value)
    assert text.startswith("cannot run CUSTOM(Mystery) (2x), ")
    assert len(raised.value.missing) == 2
    assert raised.value.missing[0] == "CUSTOM(Mystery)"


def test_the_interpreter_refuses_types_without_kernel_and_says_what_there_is() -> None:
    graph = graph_of()
    graph.inputs[0].dtype = TensorType.BOOL
    graph.append(Tanh(graph.inputs[0]), "t")
    with pytest.raises(UnsupportedError, match=r"Tanh 't': no kernel for BOOL; there is .*FLOAT32"):
        Interpreter(model_of(graph)).allocate_tensors()


def test_values_that_overflow_raise_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    model = network()
    x: Array = np.full((1, 20), 3e38, np.float32)
    Interpreter(model).run(x)
    assert list(recwarn) == []


def test_a_folded_number_without_axes_feeds_a_compiled_kernel() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    size = graph.append(ComplexAbs(graph.add_constant("z", np.array(3 + 4j, np.complex64))), "size")
    graph.outputs = [graph.append(Add(graph.add_input("x", ()), size.output), "y").output]
    assert Interpreter(model).run(np.float32(1))["y"] == 6


@pytest.mark.parametrize("variable", [False, True])
@pytest.mark.parametrize("extent", [4096, None])
def test_the_interpreter_refuses_contents_that_do_not_fit_under_an_open_signature(
    variable: bool, extent: int | None
) -> None:
    """A compiled kernel would read behind the contents."""
    graph = graph_of((extent,))
    given = graph.add_constant("c", np.ones(4, np.float32))
    given.shape_signature, given.is_variable = (-1,), variable
    graph.append(Tanh(graph.inputs[0]), "x1")
    op = Add(graph.values[-1], given)
    graph.append(op, results=[graph.add_value(Value("y", TensorType.FLOAT32, (None,)))])
    interpreter = Interpreter(model_of(graph))
    interpreter.resize_tensor_input(0, (4096,))
    with pytest.raises(ShapeError, match=r"Add 'y': shapes \[4096\] and \[4\] do not broadcast"):
        interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, (4,))
    interpreter.allocate_tensors()
    assert interpreter.plan.shape(op.output) == (4,)


@pytest.mark.parametrize("what", ["an input", "a variable"])
def test_the_interpreter_refuses_an_operator_that_computes_what_is_given(what: str) -> None:
    graph = graph_of()
    result = graph.append(Tanh(graph.inputs[0]), "y").output
    result.is_variable = what == "a variable"
    if what == "an input":
        graph.inputs.append(result)
    with pytest.raises(GraphError, match=f"Tanh 'y' computes 'y', which is {what} and no result"):
        Interpreter(model_of(graph)).allocate_tensors()
