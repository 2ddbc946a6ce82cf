"""Operators whose result is known become constants."""

from __future__ import annotations

import numpy as np

from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Graph, LucioleError, Model, Op, Signature, TensorType, UnknownOp, Value
from luciole.ir.dtypes import Array
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.elementwise_unary import Abs, Neg
from luciole.ir.ops.pack import Pack
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.shape import Shape
from luciole.ir.ops.split import Split
from luciole.ir.ops.strided_slice import StridedSlice
from luciole.ir.passes.folding.fold_constants import SHAPE_ARITHMETIC, FoldConstants, folded
from luciole.ir.text.listing import show
from luciole.kernels.core.evaluation import evaluate
from luciole.schema.tables import QuantizationParameters
from tests.samples import floats

fold_constants = FoldConstants(evaluate)


def flattening(batch: int | None) -> Model:
    """What converters make of ``reshape(x, (shape(x)[0], -1))``."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (batch, 2, 3))
    zero, one = (graph.add_constant(f"{n}", np.array([n], np.int32)) for n in (0, 1))
    shape = graph.append(Shape(x, out_type=TensorType.INT32), "shape").output
    n = graph.append(StridedSlice(shape, zero, one, one, shrink_axis_mask=1), "n").output
    rest = graph.add_constant("rest", np.array(-1, np.int32))
    target = graph.append(Pack((n, rest), values_count=2, axis=0), "target").output
    graph.outputs = [graph.append(Reshape(x, target), "flat").output]
    return model


def test_shape_arithmetic_becomes_one_constant() -> None:
    model = flattening(4)
    x = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    before = Interpreter(model.clone()).run(x)
    assert fold_constants(model.graph) is True
    assert show(model.graph) == (
        "graph 'main'(%0: float32[4,2,3] 'x') -> (%4)\n"
        "%7: int32[2] = constant [4, -1] 'target'\n"
        "%4: float32[4,6] = RESHAPE(%0, %7) 'flat'\n"
    )
    np.testing.assert_array_equal(Interpreter(model).run(x)["flat"], before["flat"])
    assert fold_constants(model.graph) is False
    assert len(from_bytes(to_bytes(model)).graph.ops) == 1


def test_an_open_shape_is_not_folded() -> None:
    model = flattening(None)
    assert fold_constants(model.graph) is False
    kinds = [op.kind for op in model.graph.ops]
    assert kinds == ["SHAPE", "STRIDED_SLICE", "PACK", "RESHAPE"]


def constants() -> tuple[Model, Graph]:
    """y = |c * c|, all of it known, and z = x + y."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    c = graph.add_constant("c", np.array([-2, 3], np.float32))
    square = graph.append(Mul(c, c), "square").output
    y = graph.append(Abs(square), "y").output
    z = graph.append(Add(graph.add_input("x", (2,)), y), "z").output
    graph.outputs = [y, z]
    model.signatures.append(Signature("serve", graph, [("x", graph.inputs[0])], [("y", y)]))
    return model, graph


def test_outputs_and_signatures_keep_their_names() -> None:
    model, graph = constants()
    x = np.ones(2, np.float32)
    before = Interpreter(model.clone()).run(x)
    assert fold_constants(graph) is True
    assert show(graph) == (
        "graph 'main'(%1: float32[2] 'x') -> (%4, %2)\n"
        "%4: float32[2] = constant [4, 9] 'y'\n"
        "%2: float32[2] = ADD(%1, %4) 'z'\n"
    )
    assert model.signatures[0].outputs == [("y", graph.outputs[0])]
    after = Interpreter(model).run(x)
    assert after.keys() == before.keys() == {"y", "z"}
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)


def test_a_result_keeps_its_quantization() -> None:
    _, graph = constants()
    parameters = QuantizationParameters(scale=floats(0.5))
    graph.outputs[0].quantization = parameters
    assert fold_constants(graph) is True
    assert graph.outputs[0].quantization is parameters


def test_every_result_of_an_operator_is_folded() -> None:
    graph = Graph("main")
    axis = graph.add_constant("axis", np.array(0, np.int32))
    c = graph.add_constant("c", np.arange(4, dtype=np.int32))
    op = graph.append(Split(axis, c, num_splits=2), "a", "b")
    graph.outputs = list(op.results)
    assert fold_constants(graph) is True
    assert graph.ops == []
    assert [(v.name, v.data.tolist()) for v in graph.outputs if v.data is not None] == [
        ("a", [0, 1]),
        ("b", [2, 3]),
    ]


def large(count: int) -> Graph:
    graph = Graph("main")
    c = graph.add_constant("c", np.ones(count, np.float32))
    graph.outputs = [graph.append(Neg(c), "y").output]
    return graph


def test_a_large_result_is_folded_only_where_that_is_wanted() -> None:
    assert fold_constants(large(SHAPE_ARITHMETIC)) is True
    assert fold_constants(large(SHAPE_ARITHMETIC + 1)) is False
    assert FoldConstants(evaluate, most_elements=None)(large(SHAPE_ARITHMETIC + 1)) is True
    assert FoldConstants(evaluate, most_elements=2)(large(3)) is False


def test_inputs_variables_and_unknown_operators_are_not_folded() -> None:
    graph = Graph("main")
    state = graph.add_constant("state", np.ones(2, np.float32))
    state.is_variable = True
    c = graph.add_constant("c", np.ones(2, np.float32))
    unknown = UnknownOp(32, [c], custom_code="Mine")
    graph.append(unknown, results=[graph.add_value(Value("u", TensorType.FLOAT32, (2,)))])
    graph.append(Neg(state), "s")
    graph.append(Neg(graph.add_input("x", (2,))), "n")
    before = show(graph)
    assert fold_constants(graph) is False
    assert show(graph) == before


def test_an_operator_that_cannot_be_computed_stays() -> None:
    def refuse(op: Op) -> list[Array]:
        raise LucioleError(f"{op}: no kernel")

    graph = large(3)
    assert FoldConstants(refuse)(graph) is False
    assert folded(graph.ops[0], refuse) is None
    assert len(graph.ops) == 1


def test_kernels_are_not_asked_for_what_shapes_decide() -> None:
    def refuse(op: Op) -> list[Array]:
        raise AssertionError(f"{op} was evaluated")

    graph = Graph("main")
    shape = graph.append(Shape(graph.add_input("x", (2, 3)), out_type=TensorType.INT64), "shape")
    graph.outputs = [shape.output]
    assert FoldConstants(refuse)(graph) is True
    assert show(graph) == "graph 'main'(%0: float32[2,3] 'x') -> (%1)\n"
    assert graph.outputs[0].data is not None
    assert graph.outputs[0].data.tolist() == [2, 3]
