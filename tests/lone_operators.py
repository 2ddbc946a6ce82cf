"""A model of each operator alone."""

from __future__ import annotations

from typing import Any

from luciole.ir import Graph, Model, Op, TensorType, Value
from luciole.ir.fields import REQUIRED, Field


def value_for(graph: Graph, field: Field, name: str) -> Value:
    """A tensor of a type that the declaration takes, of any shape."""
    value = graph.add_input(name, (1, 2))
    value.dtype = field.dtypes[0] if field.dtypes else TensorType.FLOAT32
    return value


def slots_for(cls: type[Op], graph: Graph, optional: bool) -> list[Value | None]:
    """Operands as a file lists them: all of them, or only those that must be there."""
    slots: list[Value | None] = []
    for field in cls.operand_fields():
        if field.kind == "operands":
            slots += [value_for(graph, field, f"{field.name}/{i}") for i in range(3)]
        elif optional or field.default is REQUIRED:
            slots.append(value_for(graph, field, field.name))
        else:
            slots.append(None)
    while slots and slots[-1] is None:
        slots.pop()
    return slots


def alone(cls: type[Op], attributes: dict[str, Any], optional: bool, called: int = 1) -> Model:
    """A model of one operator whose results are given, not inferred. A graph that it calls is the
    one with the number ``called``: itself or an empty one.
    """
    model = Model()
    graph = model.add_graph(Graph("main"))
    model.add_graph(Graph("called"))
    inner, fields = model.graphs[called], [f for f in cls.attr_fields() if f.is_graph]
    attributes |= {f.name: (inner,) * (2 * called) if f.default == () else inner for f in fields}
    op = cls.from_operands(slots_for(cls, graph, optional), attributes)
    op.version = 5
    variadic = cls.variadic_results and cls.result_names
    names = ("first", "second") if variadic else cls.result_names
    results = [graph.add_value(Value(name, TensorType.INT8, (3, None))) for name in names]
    graph.append(op, results=results)
    graph.outputs = results
    return model
