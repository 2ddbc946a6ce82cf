"""Check that a file can hold the attributes of operators, by the types that its schema declares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from luciole.ir.fields import Field
from luciole.ir.op import Op
from luciole.schema import tables
from luciole.schema.printable import printable, shorten
from luciole.schema.table import SCALARS, TABLES
from luciole.schema.table import Field as Column

_MOST_QUOTED = 100
"""Characters of a value in a sentence."""


class _Kind(NamedTuple):
    """The values of a type that a file can hold, and words for one."""

    words: str
    holds: Callable[[Any], bool]


def unstorable(op: Op) -> Iterator[str]:
    """List, in a sentence each, the attributes whose values a file cannot hold."""
    held = vars(op)  # without those that have their class's defaults
    for name, kind in _kinds(type(op)).items():
        if name in held and not kind.holds(held[name]):
            shown = shorten(printable(repr(held[name])), _MOST_QUOTED)
            yield f"{name} is {shown}, {kind.words} is needed"


_KNOWN: dict[type[Op], dict[str, _Kind]] = {}


def _kinds(cls: type[Op]) -> dict[str, _Kind]:
    """Find the types of a class's attributes, once."""
    if cls not in _KNOWN:
        _KNOWN[cls] = _declared(cls)
    return _KNOWN[cls]


def _declared(cls: type[Op]) -> dict[str, _Kind]:
    columns = {} if cls.options is None else {f.name: f for f in TABLES[cls.options].fields}
    fields = [field for field in cls.attr_fields() if not field.is_graph]
    own = {f.name: _kind(cls, f, columns.get(f.schema_name)) for f in fields}
    return own | {f.name: _of_column(f) for f in _TABLES if f.name in _OF_ALL}


_TABLES = (*tables.OperatorCode.fields, *tables.Operator.fields)
_OF_ALL = ("version", "mutating_variable_inputs", "debug_metadata_index")
"""Columns that each operator has an attribute for."""


def _kind(cls: type[Op], field: Field, column: Column | None) -> _Kind:
    """Find the type of an attribute: that of its column in the options table, else of its default,
    in a C struct or a FlexBuffer map.
    """
    if isinstance(field.default, IntEnum):
        return _member(type(field.default))
    if column is None:
        return _number(_CUSTOM.get(type(field.default), "int" if cls.packed else "long"))
    return _of_column(column)


def _of_column(column: Column) -> _Kind:
    if column.kind == "string":
        return _Kind("a text", lambda value: value is None or isinstance(value, str))
    number = _number(column.of)
    return _tuple(number) if column.kind == "vector" else number


_CUSTOM = {bool: "bool", float: "double"}
"""Types of custom options; whole numbers have another one in each of their forms."""


def _member(enum: type[IntEnum]) -> _Kind:
    """Describe the members of an enumeration; kernels ask them for their names."""
    return _Kind(f"a member of {enum.__name__}", lambda value: isinstance(value, enum))


def _number(of: str) -> _Kind:
    """Describe the numbers of a scalar type; a float takes whole numbers too."""
    if of == "bool":
        return _Kind("True or False", lambda value: isinstance(value, _FLAGS) and value in (0, 1))
    if SCALARS[of].kind == "f":
        limit = float(np.finfo(SCALARS[of]).max)
        return _Kind(f"a number that {SCALARS[of]} holds", partial(_is_real, limit))
    limits = np.iinfo(SCALARS[of])
    least, most = int(limits.min), int(limits.max)
    return _Kind(
        f"a whole number from {least} to {most}",
        lambda value: isinstance(value, _WHOLE) and least <= int(value) <= most,
    )


_WHOLE = (int, np.integer)
_FLAGS = (*_WHOLE, np.bool_)


def _is_real(limit: float, value: Any) -> bool:
    """Return whether a number is at most the limit, infinite or no number."""
    if isinstance(value, float | np.floating):
        return not limit < abs(float(value)) < np.inf
    return isinstance(value, _WHOLE) and abs(int(value)) <= limit


def _tuple(number: _Kind) -> _Kind:
    def holds(value: Any) -> bool:
        return isinstance(value, tuple) and all(map(number.holds, value))

    return _Kind(f"a tuple, each of it {number.words}", holds)
