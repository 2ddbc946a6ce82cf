"""One operator of a file to one operator of the graph: generic, driven by the operator's class."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np

from luciole.ir import CUSTOM_OPS, OPS, Graph, Op, ShapeError, UnknownOp, UnsupportedError, Value
from luciole.ir.fields import Field, for_graphs
from luciole.ir.op import FileOptions
from luciole.ir.text.flexbuffer import read_map
from luciole.schema import tables
from luciole.schema.enums import BuiltinOperator
from luciole.schema.numbers import numbers_of


class _NotUnderstoodError(ValueError):
    """A known operator in a form that its class does not describe."""


def import_operator(
    operator: tables.Operator,
    number: int,
    code: tables.OperatorCode,
    inputs: Sequence[Value | None],
    graphs: Sequence[Graph],
) -> Op:
    """Turn a file entry into an operator, into an UnknownOp with the reason where no class fits.

    ``graphs`` are the model's: operators that call some have their numbers in the file.
    """
    cls = _find(number, code.custom_code)
    try:
        if cls is None:
            raise _NotUnderstoodError("")
        op = cls.from_operands(inputs, _with_graphs(cls, _attributes(cls, operator), graphs))
        if cls.code == BuiltinOperator.CUSTOM and operator.custom_options is not None:
            op.file_options = FileOptions(operator.custom_options.tobytes(), op.attributes())
        return op
    except (_NotUnderstoodError, ShapeError, UnsupportedError) as error:
        return UnknownOp(
            number,
            inputs,
            custom_code=code.custom_code,
            options_table=operator.builtin_options,
            options_2=operator.builtin_options_2,
            custom_options=operator.custom_options,
            custom_options_format=operator.custom_options_format,
            reason=str(error) or None,
            operands_fit=not isinstance(error, ShapeError),
        )


def _find(number: int, custom_code: str | None) -> type[Op] | None:
    if number == BuiltinOperator.CUSTOM:
        return CUSTOM_OPS.get(custom_code or "")
    return OPS.get(BuiltinOperator(number)) if number in numbers_of(BuiltinOperator) else None


def _attributes(cls: type[Op], operator: tables.Operator) -> dict[str, Any]:
    """Read attribute values by name, from the options table or, behind CUSTOM, a FlexBuffer map."""
    if operator.builtin_options_2 is not None and operator.builtin_options is not None:
        raise _NotUnderstoodError("two options tables")
    options = operator.builtin_options or operator.builtin_options_2
    if options is None and cls.custom_code and operator.custom_options is not None:
        read = _from_struct if cls.packed else _from_map
        return read(cls, operator.custom_options.tobytes())
    if operator.custom_options is not None and not cls.custom_code:
        raise _NotUnderstoodError("custom options on a builtin operator")
    if options is None:
        return {}
    if type(options).__name__ != cls.options:
        raise _NotUnderstoodError(f"options are {type(options).__name__}, expected {cls.options}")
    return {
        field.name: _value(field, getattr(options, field.schema_name))
        for field in cls.attr_fields()
    }


def _with_graphs(
    cls: type[Op], attributes: dict[str, Any], graphs: Sequence[Graph]
) -> dict[str, Any]:
    """Put graphs in place of their numbers in attributes. A number that is not there is 0."""
    for field in cls.attr_fields():
        if field.is_graph:
            held = attributes.get(field.name, 0 if field.default is None else field.default)
            attributes[field.name] = for_graphs(held, partial(_graph, field, graphs))
    return attributes


def _graph(field: Field, graphs: Sequence[Graph], number: int) -> Graph:
    if not 0 <= number < len(graphs):
        raise _NotUnderstoodError(
            f"{field.schema_name} is {number}, there are {len(graphs)} graphs"
        )
    return graphs[number]


def _value(field: Field, stored: Any) -> Any:
    """Turn a stored option into the attribute's type. Numbers that name no enum member are
    refused.
    """
    kind = type(field.default)
    if issubclass(kind, IntEnum) and not isinstance(stored, IntEnum):
        raise _NotUnderstoodError(
            f"{field.schema_name} is {stored}, which names no {kind.__name__}"
        )
    if kind is tuple:
        return () if stored is None else tuple(stored.tolist())
    return stored


def _from_struct(cls: type[Op], raw: bytes) -> dict[str, Any]:
    """Read attributes from a C struct, which may go on behind them."""
    fields = cls.attr_fields()
    if len(raw) < 4 * len(fields):
        raise _NotUnderstoodError(
            f"custom options have {len(raw)} bytes, {4 * len(fields)} are needed"
        )
    numbers = np.frombuffer(raw, "<i4", len(fields)).tolist()
    return {f.name: _number(cls, f, n) for f, n in zip(fields, numbers, strict=True)}


def _from_map(cls: type[Op], raw: bytes) -> dict[str, Any]:
    options = read_map(raw)
    if options is None:
        raise _NotUnderstoodError("custom options are no FlexBuffer map")
    fields = [f for f in cls.attr_fields() if f.schema_name in options]
    return {f.name: _number(cls, f, options[f.schema_name]) for f in fields}


def _number(cls: type[Op], field: Field, stored: Any) -> Any:
    """Turn a number of a map into the attribute's type, as exact as an options table holds it."""
    if not isinstance(stored, int | float):
        raise _NotUnderstoodError(f"{field.schema_name} is {stored!r}, expected a number")
    try:
        number = type(field.default)(stored)
    except (ValueError, OverflowError):
        raise _NotUnderstoodError(
            f"{field.schema_name} is {stored}, which has no meaning"
        ) from None
    if cls.options is None or not isinstance(number, float):
        return number
    with np.errstate(over="ignore"):
        return float(np.float32(number))
