"""Shapes follow from operands; what no rule knows keeps what the file says."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Graph, ShapeError, TensorType, UnknownOp, Value
from luciole.ir.infer import infer_op
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.reshape import Reshape
from luciole.ir.passes.canonical.infer_shapes import infer_shapes
from luciole.ir.text.listing import show


def dense() -> Graph:
    """Two dense layers whose batch is open."""
    graph = Graph("main")
    x = graph.add_input("x", (None, 3))
    w1 = graph.add_constant("w1", np.ones((4, 3), np.float32))
    w2 = graph.add_constant("w2", np.ones((2, 4), np.float32))
    hidden = graph.append(FullyConnected(x, w1), "hidden").output
    graph.outputs = [graph.append(FullyConnected(hidden, w2), "y").output]
    return graph


BEFORE = """\
graph 'main'(%0: float32[?,3] 'x') -> (%4)
%1: float32[4,3] = constant 'w1'
%2: float32[2,4] = constant [[1, 1, 1, 1], [1, 1, 1, 1]] 'w2'
%3: float32[?,4] = FULLY_CONNECTED(%0, %1, none) 'hidden'
%4: float32[?,2] = FULLY_CONNECTED(%3, %2, none) 'y'
"""


def test_a_new_input_shape_reaches_every_result() -> None:
    graph = dense()
    assert show(graph) == BEFORE
    graph.inputs[0].shape = (8, 3)
    assert infer_shapes(graph) is True
    assert show(graph) == BEFORE.replace("[?,", "[8,")
    assert infer_shapes(graph) is False


def test_an_input_may_be_opened_again_by_forgetting_the_file() -> None:
    graph = dense()
    graph.inputs[0].shape = (8, 3)
    infer_shapes(graph)
    graph.inputs[0].shape = (None, 3)
    assert infer_shapes(graph) is False, "8 is what the results' own shapes say"
    assert [v.shape for v in graph.values[3:]] == [(8, 4), (8, 2)]
    assert all(infer_op(op, declared=False) for op in graph.ops)
    assert show(graph) == BEFORE


def test_extents_that_no_rule_knows_stay() -> None:
    graph = Graph()
    x, shape = graph.add_input("x", (2, 6)), graph.add_input("shape", (2,), TensorType.INT32)
    y = graph.add_value(Value("y", TensorType.FLOAT32, (3, 4)))
    graph.append(Reshape(x, shape), results=[y])
    assert infer_shapes(graph) is False
    assert repr(y) == "<FLOAT32 [3,4] 'y'>"
    assert infer_op(graph.ops[0], declared=False) is True
    assert repr(y) == "<FLOAT32 [?,?] 'y'>"


def test_a_rank_that_the_file_has_wrong_is_replaced() -> None:
    graph = dense()
    graph.values[3].shape = (1, 1, None)
    assert infer_shapes(graph) is True
    assert show(graph) == BEFORE


def test_the_extents_that_a_file_gives_open_axes_stay() -> None:
    graph = dense()
    hidden = graph.values[3]
    hidden.dims = (5, 4)
    assert infer_shapes(graph) is False
    assert (hidden.dims, hidden.shape_signature) == ((5, 4), (-1, 4))


def test_an_unknown_operator_keeps_its_shapes() -> None:
    graph = Graph()
    op = UnknownOp(32, [graph.add_input("x", (2,))])
    graph.append(op, results=[graph.add_value(Value("y", TensorType.INT8, (7, None)))])
    assert infer_shapes(graph) is False
    assert op.output.shape == (7, None)


def test_inference_refuses_operands_that_do_not_fit_and_names_the_operator() -> None:
    graph = Graph()
    x, y = graph.add_input("x", (2, 3)), graph.add_input("y", (2, 1))
    graph.append(Abs(graph.append(Add(x, y), "sum").output), "abs")
    y.shape = (2, 2)
    with pytest.raises(
        ShapeError, match=r"^Add 'sum': shapes \[2,3\] and \[2,2\] do not broadcast"
    ):
        infer_shapes(graph)
