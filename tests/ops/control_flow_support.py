"""Graphs with loops and branches."""

from __future__ import annotations

from typing import Any

import numpy as np

from luciole.ir import Array, Graph, Model, TensorType, Value
from luciole.ir.ops.comparisons import Less
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.control_flow import CallOnce, If, While
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.variables import AssignVariable, ReadVariable, VarHandle


def f32(numbers: Any) -> Array:
    return np.array(numbers, np.float32)


X, Y = f32([[1, 2, 3]]), f32([[10], [20]])
BOOL = TensorType.BOOL


def add_graph(model: Model, name: str, *shapes: tuple[int, ...]) -> Graph:
    """An empty graph with inputs of the given shapes."""
    graph = model.add_graph(Graph(name))
    for i, shape in enumerate(shapes):
        graph.add_input(f"{name}/{i}", shape)
    return graph


def finish(graph: Graph, cls: Any, *operands: Value, **attributes: Any) -> None:
    """Append an operator whose results are the graph's outputs."""
    op = cls.from_operands(operands, attributes)
    graph.append(op, *[f"{graph.name}/y{i}" for i in range(len(op.result_shapes()))])
    graph.outputs = list(op.results)


def branches() -> Model:
    """x + y where the condition is true, else x * y."""
    model = Model()
    main = model.add_graph(Graph("main"))
    condition = main.add_input("condition", (), BOOL)
    x, y = main.add_input("x", X.shape), main.add_input("y", Y.shape)
    graphs = [add_graph(model, name, X.shape, Y.shape) for name in ("sum", "product")]
    for graph, cls in zip(graphs, (Add, Mul), strict=True):
        finish(graph, cls, *graph.inputs)
    finish(main, If, condition, x, y, then_graph=graphs[0], else_graph=graphs[1])
    return model


def growing(limit: float) -> Model:
    """Doubles x, and puts rows of y under each other, while the only element of x is small."""
    model = Model()
    main = model.add_graph(Graph("main"))
    x, y = main.add_input("x", (1,)), main.add_input("y", (1, 3))
    condition, body = (add_graph(model, name, (1,), (1, 3)) for name in ("condition", "body"))
    finish(condition, Less, condition.inputs[0], condition.add_constant("end", f32([limit])))
    body.append(Add(body.inputs[0], body.inputs[0]), "twice")
    body.append(Concatenation((body.inputs[1],) * 2, axis=0), "rows")
    body.outputs = [op.output for op in body.ops]
    finish(main, While, x, y, condition_graph=condition, body_graph=body)
    return model


def counter() -> Model:
    """Adds x to a variable that starts at 5, and returns it."""
    model = Model()
    main = model.add_graph(Graph("main"))
    begin = model.add_graph(Graph("begin"))
    for graph in (main, begin):
        graph.append(VarHandle(container="", shared_name="total"), f"{graph.name}/handle")
    begin.append(AssignVariable(begin.ops[0].output, begin.add_constant("five", f32([5]))))
    main.append(CallOnce(init_graph=begin))
    x = main.add_input("x", (1,))
    handle = main.ops[0].output
    held = main.add_value(Value("held", TensorType.FLOAT32, (1,)))
    main.append(ReadVariable(handle), results=[held])
    main.append(Add(held, x), "total")
    main.append(AssignVariable(handle, main.ops[-1].output))
    main.outputs = [main.ops[-2].output]
    return model
