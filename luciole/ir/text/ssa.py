"""A graph as one line per operator, short enough to compare before and after a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any

from luciole.ir.errors import GraphError
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.text.common import one_line, scalar, shortened
from luciole.ir.unknown_op import UnknownOp
from luciole.ir.value import Value, element_count, shape_text

MOST_VALUES = 8
"""Elements of a constant up to which its values are shown."""

LONGEST_NAME = 80
"""Characters of a name that are shown: converters join the names of all that they fused."""

Indices = Mapping[Value, int]


def show(graph: Graph) -> str:
    """Write inputs and outputs, then the constants that operators use, then the operators in order.

    ``%9: float32[1,10] = FULLY_CONNECTED(%0, %1, none) {activation=RELU} 'logits'``: tensor index,
    type and shape (``?`` for an unknown extent), kind, operands (``none`` for an absent one), the
    attributes that are not the default, and the results' names.
    """
    return "\n".join(_lines(graph)) + "\n"


def show_op(op: Op) -> str:
    """Write an operator's line in ``show``; tensors of an operator that is in no graph have no
    number.
    """
    values = op.graph.values if op.graph is not None else ()
    return _operator(op, {value: i for i, value in enumerate(values)})


def _lines(graph: Graph) -> Iterator[str]:
    indices = {value: i for i, value in enumerate(graph.values)}
    name = "" if graph.name is None else f" {_quoted(graph.name)}"
    inputs = ", ".join(f"{_typed(v, indices)} {_quoted(v.name)}" for v in graph.inputs)
    yield f"graph{name}({inputs}) -> ({_references(graph.outputs, indices)})"
    for value in graph.values:
        if value.users and value.producer is None and not value.is_input:
            yield f"{_typed(value, indices)} = {_source(value)} {_quoted(value.name)}"
    for op in graph.ops:
        yield _operator(op, indices)


def _operator(op: Op, indices: Indices) -> str:
    results = ", ".join(_typed(value, indices) for value in op.results)
    call = f"{one_line(op.kind)}({_references(op.operands, indices)})"
    names = ", ".join(_quoted(value.name) for value in op.results)
    options = ", ".join(f"{name}={_option(value)}" for name, value in _changed(op))
    parts = (f"{results} =" if results else "", call, f"{{{options}}}" if options else "", names)
    return " ".join(part for part in parts if part)


def _changed(op: Op) -> Iterator[tuple[str, Any]]:
    """List the attributes that are not the default, or the fields of an unknown operator's
    options.
    """
    if not isinstance(op, UnknownOp):
        for field in op.attr_fields():
            if getattr(op, field.name) != field.default:
                yield field.name, getattr(op, field.name)
        return
    for table in (op.options_table, op.options_2):
        if table is not None:
            yield from vars(table).items()
    if op.custom_options is not None and len(op.custom_options):
        yield "custom_options", f"<{len(op.custom_options)} bytes>"


def _option(value: Any) -> str:
    if isinstance(value, Graph):
        return _quoted(value.name or "")
    if isinstance(value, tuple) and any(isinstance(graph, Graph) for graph in value):
        return f"[{', '.join(map(_option, value))}]"
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float | IntEnum | int):
        return scalar(value)
    return f"[{shortened(value, MOST_VALUES)}]"


def _source(value: Value) -> str:
    """Return the source of the contents of a tensor that no operator makes."""
    if value.is_variable:
        return "variable"
    if not value.is_constant:
        return "nothing"
    if element_count(value.dims) > MOST_VALUES:
        return "constant"
    try:
        data = value.data
    except (GraphError, ValueError):  # the buffer does not fit the shape: ``verify`` says so
        return "constant"
    return "constant" if data is None else f"constant {_values(data.tolist())}"


def _values(values: Any) -> str:
    if isinstance(values, list):
        return f"[{', '.join(map(_values, values))}]"
    return str(values) if isinstance(values, bool | complex) else scalar(values)


def _typed(value: Value, indices: Indices) -> str:
    return f"{_reference(value, indices)}: {value.dtype.name.lower()}{shape_text(value.shape)}"


def _references(values: Sequence[Value | None], indices: Indices) -> str:
    return ", ".join(_reference(value, indices) for value in values)


def _reference(value: Value | None, indices: Indices) -> str:
    if value is None:
        return "none"
    return f"%{indices[value]}" if value in indices else "%?"


def _quoted(name: str) -> str:
    return f"'{one_line(name, LONGEST_NAME)}'"
