"""Fields of text messages as typed values, and whole messages as tables of the schema."""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Mapping
from enum import IntEnum
from typing import TypeVar

import numpy as np

from luciole.ir.errors import FormatError
from luciole.schema.numbers import numbers_of
from luciole.schema.printable import quoted, shorten
from luciole.schema.recipe import default_of
from luciole.schema.table import SCALARS, Field, Table
from luciole.schema.textproto import Entry, Message, Word

Fields = Mapping[str, list[Entry]]
T = TypeVar("T", bound=Table)

_LARGEST = int(sys.float_info.max)
_BOOLS = {"true": True, "True": True, "t": True, "false": False, "False": False, "f": False}


def members(message: Message, what: str, *known: str) -> dict[str, list[Entry]]:
    """Gather a message's entries by field name; refuse names that are not ``known``."""
    fields: dict[str, list[Entry]] = defaultdict(list)
    for entry in message:
        if entry.name not in known:
            raise FormatError(f"line {entry.line}: {what} has no field {quoted(entry.name)}")
        fields[entry.name].append(entry)
    return fields


def message(entry: Entry) -> Message:
    """Read an entry that holds a message."""
    if not isinstance(entry.value, Message):
        raise _wrong(entry, "a message in braces")
    return entry.value


def texts(fields: Fields, name: str) -> list[str]:
    """List every text of a field."""
    return [_text(entry) for entry in fields[name]]


def text(fields: Fields, name: str) -> str | None:
    """Read the last text of a field, as protobuf reads repetitions of a single one."""
    return texts(fields, name)[-1] if fields[name] else None


def word(fields: Fields, name: str) -> str | None:
    """Read the name that stands as a field's value."""
    if not fields[name]:
        return None
    entry = fields[name][-1]
    if not isinstance(entry.value, Word):
        raise _wrong(entry, "a name")
    return entry.value


def flag(fields: Fields, name: str) -> bool:
    """Read a field that is true or false; false where it is left out."""
    return bool(fields[name]) and truth(fields[name][-1])


def integers(fields: Fields, name: str, of: str = "int") -> list[int]:
    """List every integer of a field, of a scalar type of the schema."""
    return [integer(entry, of) for entry in fields[name]]


def integer(entry: Entry, of: str = "int") -> int:
    """Read an integer that a scalar type of the schema holds."""
    value, limits = entry.value, np.iinfo(SCALARS[of])
    if not isinstance(value, int) or not limits.min <= value <= limits.max:
        raise _wrong(entry, f"an integer from {limits.min} to {limits.max}")
    return value


def table(cls: type[T], source: Message, aliases: Mapping[str, str]) -> T:
    """Fill a table from a message whose fields are called as the schema's, or as ``aliases`` say.

    What is left out gets the recipe's default.
    """
    known = {f.name: f for f in cls.fields}
    result = cls(**{n: default_of(cls, n) for n, f in known.items() if f.kind == "scalar"})
    entries_of: dict[str, list[Entry]] = defaultdict(list)
    for entry in source:
        name = entry.name if entry.name in known else aliases.get(entry.name, "")
        if name not in known:
            raise FormatError(
                f"line {entry.line}: {cls.__name__} has no field {quoted(entry.name)}"
            )
        entries_of[name].append(entry)
    for name, entries in entries_of.items():
        setattr(result, name, _content(known[name], entries))
    return result


def _content(field: Field, entries: list[Entry]) -> object:
    if field.kind == "scalar":
        return scalar(field, entries[-1])
    if field.kind == "vector":
        return np.array([scalar(field, e) for e in entries], SCALARS[field.of])
    if field.kind == "string":
        return _text(entries[-1])
    raise _wrong(entries[-1], "a number, a name or a text")


def scalar(field: Field, entry: Entry) -> float | IntEnum:
    """Read a number, a bool or an enum member, as the schema's field has it."""
    value = entry.value
    if field.enum is not None and isinstance(value, str):
        if value not in field.enum.__members__:
            raise _wrong(entry, f"one of {', '.join(field.enum.__members__)}")
        return field.enum[value]
    if field.of == "bool":
        return truth(entry)
    if field.of == "float":
        with np.errstate(over="ignore"):  # what is too large is infinite
            return float(np.float32(real(entry)))
    if field.of == "double":
        return real(entry)
    number = integer(entry, field.of)
    if field.enum is None or number not in numbers_of(field.enum):
        return number
    return field.enum(number)


def truth(entry: Entry) -> bool:
    """Read true or false, by name or as 1 or 0."""
    value = entry.value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    if not isinstance(value, Word) or value not in _BOOLS:
        raise _wrong(entry, "true or false")
    return _BOOLS[value]


def real(entry: Entry) -> float:
    """Read a number, infinities and NaN included."""
    value = entry.value
    if isinstance(value, int) and abs(value) > _LARGEST:
        return math.inf if value > 0 else -math.inf
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, Word) and value.lower().lstrip("-") in ("inf", "infinity", "nan"):
        return float(value)
    raise _wrong(entry, "a number")


def _text(entry: Entry) -> str:
    if not isinstance(entry.value, str) or isinstance(entry.value, Word):
        raise _wrong(entry, "a text in quotes")
    return entry.value


def _wrong(entry: Entry, expected: str) -> FormatError:
    present = "a message" if isinstance(entry.value, Message) else quoted(entry.value)
    return FormatError(
        f"line {entry.line}: {shorten(entry.name)} takes {expected}, found {present}"
    )
