"""Find which operators a recipe's operations are, and their options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from luciole.importers.recipe.fields import Fields, integer, members, message, real, table, truth
from luciole.ir.errors import FormatError
from luciole.schema import recipe, tables
from luciole.schema.enums import BuiltinOperator, BuiltinOptions, CustomOptionsFormat
from luciole.schema.printable import quoted, shorten
from luciole.schema.textproto import Entry, Message, Word

OPERATION = ("type", "input", "output", "version", "custom_code", "custom_options", "extype")
"""Fields of every operation; besides them it has a message with its options."""

_CUSTOM = "Custom"
"""What ``extype`` of an operation says: its ``custom_code`` tells what it is."""


@dataclass(frozen=True)
class Kind:
    """An operator: its number, its code where it is a custom one, and its options' message."""

    number: BuiltinOperator
    custom: str | None
    message: str


def kind_of(operation: Message) -> Kind:
    """Find the operator that an operation is. Raises FormatError for one that is not known."""
    names = {e.name: e.value for e in operation if e.name in ("type", "custom_code", "extype")}
    type_, custom = names.get("type"), names.get("custom_code")
    if names.get("extype", _CUSTOM) != _CUSTOM:
        raise FormatError(f"line {operation.line}: extype may be {quoted(_CUSTOM)} alone")
    if not isinstance(type_, str) or not type_:
        raise FormatError(f"line {operation.line}: an operation has no type")
    code = recipe.builtin_of(type_)
    if isinstance(custom, str) and custom:
        return Kind(BuiltinOperator.CUSTOM, custom, recipe.custom_message_of(custom))
    if code is not None:
        return Kind(code, None, _message_in(operation, recipe.message_of(code)))
    if type_ in recipe.CUSTOM:
        name = _message_in(operation, recipe.custom_message_of(type_))
        return Kind(BuiltinOperator.CUSTOM, type_, name)
    raise FormatError(
        f"line {operation.line}: operator {quoted(type_)} is not known "
        f"(a custom one needs a custom_code)"
    )


def is_idle(entry: Entry) -> bool:
    """Return whether an entry is an options message that says nothing: ONE's recipes have some of
    other operators.
    """
    empty = isinstance(entry.value, Message) and not entry.value.entries
    return empty and entry.name.endswith("_options")


def _message_in(operation: Message, name: str) -> str:
    """Find the message's name as it is spelled here: underscores do not count."""
    alike = (e.name for e in operation if recipe.plain(e.name) == recipe.plain(name))
    return next(alike, name)


def set_options(operator: tables.Operator, kind: Kind, fields: Fields) -> None:
    """Give an operator its options: a table of the schema, or for a custom one a FlexBuffer map."""
    entries = message(fields[kind.message][-1]) if fields[kind.message] else None
    if kind.custom is not None:
        raw = _raw(fields) if fields["custom_options"] else _map(kind.custom, entries)
        operator.custom_options = np.frombuffer(raw, np.uint8)
        operator.custom_options_format = CustomOptionsFormat.FLEXBUFFERS
        return
    cls = recipe.table_of(kind.number)
    if cls is None:
        if entries is not None:
            members(entries, kind.message)
        return
    if entries is None and cls.fields:
        return  # left out on purpose: the operator has no options
    options = table(cls, entries or Message(0), recipe.FIELDS)
    if cls.__name__ in BuiltinOptions.__members__:
        operator.builtin_options = options
    else:
        operator.builtin_options_2 = options


def _raw(fields: Fields) -> bytes:
    entry = fields["custom_options"][-1]
    if not isinstance(entry.value, str):
        raise FormatError(f"line {entry.line}: custom_options takes bytes as a text in quotes")
    return entry.value.encode("utf-8", "surrogateescape")


def _map(custom: str, entries: Message | None) -> bytes:
    """Encode the options of a custom operator: those that ONE knows with their defaults, or as
    given.
    """
    options = dict(recipe.CUSTOM.get(custom, {}))
    for entry in entries or Message(0):
        if custom in recipe.CUSTOM and entry.name not in options:
            raise FormatError(f"line {entry.line}: {custom} has no option {quoted(entry.name)}")
        options[entry.name] = _option(entry, options)
    return recipe.custom_bytes(custom, options)


def _option(entry: Entry, options: Mapping[str, object]) -> object:
    """Read a value of the type that the default has; without one, of the type that it looks
    like.
    """
    default, value = options.get(entry.name), entry.value
    if isinstance(default, IntEnum) and isinstance(value, Word):
        if value not in type(default).__members__:
            raise FormatError(f"line {entry.line}: {entry.name} cannot be {shorten(value)}")
        return type(default)[value]
    if isinstance(default, bool) or (default is None and value in ("true", "false")):
        return truth(entry)
    if isinstance(value, str) and not isinstance(value, Word):
        return value
    return integer(entry, "long") if isinstance(value, int) else real(entry)
