"""Write an operator's entries in a recipe: its type, and the options that a reader would not
assume.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum

import numpy as np

from luciole.ir.text.flexbuffer import read_map
from luciole.schema import recipe, tables
from luciole.schema.enums import BuiltinOperator
from luciole.schema.errors import FormatError
from luciole.schema.numbers import numbers_of
from luciole.schema.table import Field
from luciole.schema.textproto import Message, Scalar, Word

_TFLITE_NAMES = {schema: name for name, schema in recipe.FIELDS.items()}
_CIRCLE_NAMES = {
    schema: name for schema, name in _TFLITE_NAMES.items() if not schema.startswith("adjoint_")
}
"""Names in recipes of fields of the schema: tflchef and circlechef differ in BATCH_MATMUL."""


def write_type(message: Message, number: int, custom: str | None) -> None:
    """Write ``type`` of an operation, and ``custom_code`` where the type alone does not tell."""
    if number == BuiltinOperator.CUSTOM:
        message.add("type", custom or "Custom")
        if custom not in recipe.CUSTOM:
            message.add("custom_code", custom or "Custom")
        return
    if number not in numbers_of(BuiltinOperator):
        raise FormatError(f"operator {number} has no name that a recipe could give it")
    message.add("type", recipe.type_of(BuiltinOperator(number)))


def write_options(
    message: Message, operator: tables.Operator, number: int, custom: str | None, circle: bool
) -> Iterator[str]:
    """Add an operator's options to its message. Yields the properties that a recipe cannot hold."""
    if number == BuiltinOperator.CUSTOM:
        _write_custom(message, operator, custom or "Custom")
        return
    code = BuiltinOperator(number)
    options = operator.builtin_options or operator.builtin_options_2
    if options is None:
        return
    if type(options) is not recipe.table_of(code):
        yield "operators' options of an unusual kind"
        return
    content = Message()
    names = _CIRCLE_NAMES if circle else _TFLITE_NAMES
    for field, value in recipe.told(options):
        if field.kind not in ("scalar", "vector", "string"):
            yield "options that are tables"
            continue
        content.add(names.get(field.name, field.name), *_texts(field, value))
    if options.fields:
        message.add(recipe.message_of(code), content)


def _texts(field: Field, value: object) -> list[Scalar]:
    if isinstance(value, np.ndarray):
        return [_scalar(field, v) for v in value.tolist()]
    return [_scalar(field, value)]


def _scalar(field: Field, value: object) -> Scalar:
    if isinstance(value, IntEnum):
        return Word(value.name)
    if isinstance(value, bool):
        return Word(str(value).lower())
    if isinstance(value, float):
        return Word(str(np.float32(value)) if field.of == "float" else repr(value))
    return value if isinstance(value, str | int) else str(value)


def _write_custom(message: Message, operator: tables.Operator, custom: str) -> None:
    """Write the options by name where ONE knows the operator, else their bytes."""
    stored = operator.custom_options
    raw = b"" if stored is None else stored.tobytes()
    named = _known(custom, raw)
    if named is None:
        message.add("custom_options", raw.decode("utf-8", "surrogateescape"))
    elif named:
        content = Message()
        for name, value in named.items():
            content.add(name, *_named(value))
        message.add(recipe.custom_message_of(custom), content)


def _named(value: object) -> list[Scalar]:
    if isinstance(value, IntEnum):
        return [Word(value.name)]
    if isinstance(value, bool):
        return [Word(str(value).lower())]
    return [value] if isinstance(value, str | int | float) else []


def _known(custom: str, raw: bytes) -> Mapping[str, object] | None:
    """Find the options that are not the default, when cooking them gives these very bytes."""
    entries = read_map(raw) if raw else {}
    options = None if entries is None else recipe.custom_options(custom, entries)
    if options is None or recipe.custom_bytes(custom, options) != raw:
        return None
    defaults = recipe.CUSTOM.get(custom, {})
    return {name: value for name, value in options.items() if value != defaults[name]}
