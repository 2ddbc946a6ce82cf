"""What a model may ask for: shapes that are computed, scratch, and tensors without contents."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.interpreter import ExecutionError, Interpreter
from luciole.interpreter.memory import MemoryLimitError
from luciole.ir import Buffer, Graph, LucioleError, Model, TensorType, UnsupportedError
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.fill import Fill
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.pool_2d import L2Pool2D, MaxPool2D
from luciole.ir.ops.reduce import ReduceMax
from luciole.ir.ops.reshape import Reshape
from luciole.kernels.core import evaluation, limits, registry
from luciole.kernels.core.meter import SLACK, Meter
from luciole.schema.enums import Padding
from luciole.schema.tables import QuantizationParameters, SparsityParameters
from tests.samples import floats, octets
from tests.support import make_sparse

LIMIT = 1 << 16


def fill(constant: bool, extent: int) -> Model:
    """A tensor of so many zeros."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    if constant:
        dims = graph.add_constant("dims", np.array([extent], np.int32))
    else:
        dims = graph.add_input("dims", (1,), TensorType.INT32)
    graph.outputs = [
        graph.append(Fill(dims, graph.add_constant("0", np.zeros((), np.float32))), "y").output
    ]
    return model


@pytest.mark.parametrize(("extent", "fits"), [(LIMIT // 4, True), (LIMIT // 4 + 1, False)])
def test_a_run_refuses_a_shape_that_it_computes_and_that_is_too_large(
    extent: int, fits: bool
) -> None:
    interpreter = Interpreter(fill(constant=False, extent=extent), memory_limit=LIMIT)
    dims = np.array([extent], np.int32)
    if fits:
        assert interpreter.run(dims)["y"].shape == (extent,)
        return
    with pytest.raises(ExecutionError, match="would take 65540 bytes, 65536 are allowed where the"):
        interpreter.run(dims)


def test_a_plan_refuses_to_fold_what_is_too_large() -> None:
    """Elements would fit, their bytes do not."""
    interpreter = Interpreter(fill(constant=True, extent=LIMIT // 2), memory_limit=LIMIT)
    with pytest.raises(MemoryLimitError, match=r"'y' \[32768\] needs memory beyond the limit"):
        interpreter.allocate_tensors()


@pytest.mark.parametrize("cls", [MaxPool2D, L2Pool2D])
def test_a_run_refuses_scratch_that_is_too_large(cls: type[MaxPool2D]) -> None:
    """A small image with a huge window: what SAME pads must fit, too."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    op = cls(graph.add_input("x", (1, 1, 1, 1)), padding=Padding.SAME)
    op.stride_h = op.stride_w = op.filter_width = 1
    op.filter_height = LIMIT
    graph.outputs = [graph.append(op, "y").output]
    kernel, x = registry.find_reference(op), np.ones((1, 1, 1, 1), np.float32)
    refused = pytest.raises(ExecutionError, match=r"padded image would take .* 65536 are allowed")
    with Meter(LIMIT), refused:
        evaluation.call(kernel, op, [x])


def test_the_limit_of_a_kernel_ends_with_it() -> None:
    with Meter(10):
        with Meter(5), pytest.raises(MemoryLimitError):
            limits.room(6, "something")
        limits.room(10, "something")
    limits.room(1 << 20, "something")


@pytest.mark.parametrize(("size", "fits"), [(SLACK, True), (SLACK + LIMIT, False)])
def test_what_a_library_takes_is_counted_while_it_does(size: int, fits: bool) -> None:
    with Meter(LIMIT) as meter:
        if not fits:
            with pytest.raises(MemoryError), limits.set_aside(size):
                pass
            return
        with limits.set_aside(size):
            assert meter.taken >= size
        assert meter.taken == 0


def test_a_plan_refuses_an_extent_that_an_empty_tensor_hides() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    graph.outputs = [graph.append(Abs(graph.add_input("x", (0, 2**31))), "y").output]
    with pytest.raises(MemoryLimitError, match=r"'x' \[0,2147483648\] needs memory beyond"):
        Interpreter(model).allocate_tensors()


def test_a_plan_refuses_a_sparse_constant_that_grows_beyond_the_limit() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    weights = graph.add_constant("w", np.zeros(0, np.float32))
    weights.shape, weights.sparsity = (1 << 30,), SparsityParameters()
    weights.buffer = Buffer(octets(0))
    graph.outputs = [graph.append(Add(graph.add_input("x", (1,)), weights), "y").output]
    with pytest.raises(MemoryLimitError, match=f"takes {4 << 30} bytes .* {LIMIT} are allowed"):
        Interpreter(model, memory_limit=LIMIT).allocate_tensors()


@pytest.mark.parametrize(("limit", "fits"), [(3 * 400, True), (3 * 400 - 1, False)])
def test_sparse_constants_share_the_limit(limit: int, fits: bool) -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    for name in "abc":
        make_sparse(graph.add_constant(name, np.ones(100, np.float32)))
    graph.outputs = graph.values[:1]
    if fits:
        Interpreter(model, memory_limit=limit).allocate_tensors()
        return
    with pytest.raises(MemoryLimitError, match=r"'c' \[100\] takes 400 bytes .* 399 are allowed"):
        Interpreter(model, memory_limit=limit).allocate_tensors()


def test_sparse_constants_count_as_they_are_unpacked() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    make_sparse(graph.add_constant("c", np.ones(100, np.int8), TensorType.INT2))
    graph.outputs = graph.values[:1]
    with pytest.raises(MemoryLimitError, match="takes 100 bytes with all its elements, 99 are"):
        Interpreter(model, memory_limit=99).allocate_tensors()


def test_folded_constants_share_the_limit_with_the_arena() -> None:
    """Each of three would fit alone: what does not fit any more is refused before it is made."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    zero = graph.add_constant("0", np.zeros((), np.float32))
    dims = graph.add_constant("dims", np.array([100], np.int32))
    graph.outputs = [graph.append(Fill(dims, zero), f"y{i}").output for i in range(3)]
    interpreter = Interpreter(model, memory_limit=3 * 400)
    interpreter.allocate_tensors()
    assert interpreter.plan.steps == []
    with pytest.raises(MemoryLimitError, match=r"'y2' .* needs memory beyond the limit"):
        Interpreter(model, memory_limit=3 * 400 - 1).allocate_tensors()


def test_a_plan_refuses_an_operand_without_an_array_form() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 2), TensorType.INT8)
    weights = graph.add_constant("w", np.zeros((1, 2), np.int8), TensorType.INT4)
    weights.is_variable = True
    for value in (x, weights):
        value.quantization = QuantizationParameters(scale=floats(1))
    op = graph.append(FullyConnected(x, weights), "y")
    op.output.quantization = x.quantization
    graph.outputs = [op.output]
    with pytest.raises(UnsupportedError, match=r"^cannot run .* 'y': operand 'w' is INT4$"):
        Interpreter(model).allocate_tensors()


def test_variables_without_an_array_form_stay_out_of_the_way() -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    graph.outputs = [graph.append(Abs(graph.add_input("x", (2,))), "y").output]
    state = graph.add_constant("state", np.zeros(2, np.int8), TensorType.INT4)
    state.is_variable, state.buffer = True, Buffer(octets(0))
    assert Interpreter(model).run(np.ones(2, np.float32))["y"].tolist() == [1, 1]


def test_a_run_refuses_a_shape_of_no_axes_for_several_elements() -> None:
    """The rank alone is known before, and settles the shape: the tensors must not share a place."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    shape = graph.add_input("shape", (0,), TensorType.INT32)
    y = graph.append(Reshape(graph.append(Abs(graph.add_input("x", (3,))), "a").output, shape), "y")
    graph.outputs = [y.output]
    given = {"x": np.zeros(3, np.float32), "shape": np.zeros(0, np.int32)}
    with pytest.raises(LucioleError, match=r"\[3\] does not reshape to \[\]"):
        Interpreter(model).run(given)


@pytest.mark.parametrize(("rows", "fits"), [(LIMIT // 4, True), (LIMIT // 4 + 1, False)])
def test_a_run_refuses_a_result_that_grows_out_of_an_empty_tensor(rows: int, fits: bool) -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    dims = graph.add_input("dims", (2,), TensorType.INT32)
    nothing = graph.append(Fill(dims, graph.add_constant("0", np.zeros((), np.float32))), "nothing")
    axis = graph.add_constant("axis", np.array([1], np.int32))
    graph.outputs = [graph.append(ReduceMax(nothing.output, axis), "y").output]
    interpreter = Interpreter(model, memory_limit=LIMIT)
    given = np.array([rows, 0], np.int32)
    if fits:
        assert interpreter.run(given)["y"].shape == (rows,)
        return
    with pytest.raises(ExecutionError, match="would take 65540 bytes, 65536 are allowed where the"):
        interpreter.run(given)
