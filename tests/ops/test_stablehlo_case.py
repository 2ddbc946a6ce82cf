"""STABLEHLO_CASE against LiteRT, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Graph, Model, Op, ShapeError, TensorType
from luciole.ir.ops.control_flow import StablehloCase
from luciole.ir.ops.elementwise_binary import Add, Mul, Sub
from luciole.ir.passes.canonical.inline_calls import inline_calls
from luciole.ir.text.ssa import show
from tests.support import invoked_again, litert

X, Y = np.array([[1, 2, 3]], np.float32), np.array([[10, 20, 40]], np.float32)


def branches(*classes: type[Op]) -> Model:
    """One operator of x and y in each branch; a file's model, as users have it."""
    model = Model()
    main = model.add_graph(Graph("main"))
    index = main.add_input("index", (), TensorType.INT32)
    operands = [main.add_input(name, X.shape) for name in "xy"]
    graphs = []
    for number, cls in enumerate(classes):
        graph = model.add_graph(Graph(f"branch {number}"))
        inputs = [graph.add_input(f"{number}/{name}", X.shape) for name in "xy"]
        graph.outputs = [graph.append(cls(*inputs), f"{number}/z").output]
        graphs.append(graph)
    op = StablehloCase(index, tuple(operands), branches=tuple(graphs))
    main.outputs = [main.append(op, "z").output]
    return from_bytes(to_bytes(model))


@pytest.mark.parametrize("index", [0, 1, 2, 3, -1, 100])
def test_the_branch_of_a_number_runs_as_in_litert(index: int) -> None:
    model, number = branches(Add, Mul, Sub), np.array(index, np.int32)
    (found,) = invoked_again(Interpreter(model), [number, X, Y])
    (wanted,) = litert(to_bytes(model, "tflite"), [number, X, Y], "AUTO")
    np.testing.assert_array_equal(found, wanted, strict=True)
    np.testing.assert_array_equal(found, [X + Y, X * Y, X - Y][index if 0 <= index < 3 else 2])


def test_branches_survive_files_copies_and_texts() -> None:
    model = branches(Add, Mul)
    copy = model.clone()
    (op,) = copy.graph.ops
    assert op.called_graphs() == tuple(copy.graphs[1:])
    assert to_bytes(copy) == to_bytes(model)
    assert "['branch 0', 'branch 1']" in show(model.graph)
    assert not inline_calls(copy.graph)


def test_case_refuses_no_branches() -> None:
    graph = Graph()
    index = graph.add_input("index", (), TensorType.INT32)
    with pytest.raises(ShapeError, match="it has no branches"):
        StablehloCase(index, (), branches=()).result_shapes()


def test_case_refuses_branches_of_other_numbers_of_outputs() -> None:
    model = branches(Add, Mul)
    model.graphs[2].outputs = model.graphs[2].outputs * 2
    with pytest.raises(ShapeError, match="outputs: a branch has 2, the first one has 1"):
        model.graph.ops[0].result_shapes()
