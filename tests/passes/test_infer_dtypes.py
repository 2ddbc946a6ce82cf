"""Element types follow from operands."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.ir import Graph, ShapeError, TensorType, UnknownOp, Value
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.elementwise_unary import Abs, Neg
from luciole.ir.ops.shape import Shape
from luciole.ir.ops.split import Split
from luciole.ir.passes.canonical.infer_dtypes import infer_dtypes
from luciole.ir.text.listing import show


def test_a_new_input_type_reaches_what_follows_it() -> None:
    graph = Graph("main")
    x = graph.add_input("x", (2,))
    cast = Cast(x, in_data_type=TensorType.FLOAT32, out_data_type=TensorType.INT64)
    graph.append(Abs(graph.append(cast, "whole").output), "whole/abs")
    graph.outputs = [graph.append(Neg(x), "neg").output]
    assert infer_dtypes(graph) is False
    before = show(graph)
    x.dtype = TensorType.INT8
    assert infer_dtypes(graph) is True
    assert show(graph) == (
        "graph 'main'(%0: int8[2] 'x') -> (%3)\n"
        "%1: int64[2] = CAST(%0) {out_data_type=INT64} 'whole'\n"
        "%2: int64[2] = ABS(%1) 'whole/abs'\n"
        "%3: int8[2] = NEG(%0) 'neg'\n"
    )
    assert infer_dtypes(graph) is False
    x.dtype = TensorType.FLOAT32
    assert infer_dtypes(graph) is True
    assert show(graph) == before


def test_all_results_of_an_operator_get_their_type() -> None:
    graph = Graph()
    axis = graph.add_constant("axis", np.array(0, np.int32))
    x = graph.add_input("x", (4,), TensorType.INT16)
    op = graph.append(Split(axis, x, num_splits=2), "a", "b")
    assert [v.dtype for v in op.results] == [TensorType.INT16] * 2
    x.dtype = TensorType.UINT8
    assert infer_dtypes(graph) is True
    assert [v.dtype for v in op.results] == [TensorType.UINT8] * 2


def test_an_unknown_operator_keeps_its_types() -> None:
    graph = Graph()
    op = UnknownOp(32, [graph.add_input("x", (2,))])
    graph.append(op, results=[graph.add_value(Value("y", TensorType.INT8, (2,)))])
    assert infer_dtypes(graph) is False
    assert op.output.dtype is TensorType.INT8


def test_inference_refuses_an_operator_without_a_type_and_names_it() -> None:
    graph = Graph()
    value = graph.add_value(Value("y", TensorType.INT32, (1,)))
    graph.append(Shape(graph.add_input("x", (2,))), results=[value])
    with pytest.raises(
        ShapeError, match=r"^Shape 'y': out_type is FLOAT32, INT32 or INT64 is needed"
    ):
        infer_dtypes(graph)
