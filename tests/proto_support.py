"""ONE's recipe messages in Google's protobuf, built from the .proto files: the oracle for text."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.support import data_path

_FIELD = re.compile(
    r"(optional|repeated) (\w+) (\w+) *= *(\d+) *(?:\[ *default *= *([^\]]+?) *\])?$"
)
_SCALARS = ("float", "int32", "int64", "uint32", "bool", "string")


def message_class(package: str) -> Any:
    """The class of ``ModelRecipe`` in ``tflchef`` or ``circlechef``."""
    pytest.importorskip("google.protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    text = data_path(f"recipes/proto/{package}.proto").read_text()
    statements = re.findall(r"[^{};]+[{};]|\}", re.sub(r"//[^\n]*", "", text))
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package)
    names = re.findall(r"\b(enum) (\w+)|\b(message) (\w+)", text)
    enums = {name for kind, name, _, _ in names if kind}
    stack: list[Any] = [file]
    for statement in (" ".join(s.split()) for s in statements):
        _apply(statement, stack, enums)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.ModelRecipe"))


def _apply(statement: str, stack: list[Any], enums: set[str]) -> None:
    top = stack[-1]
    if statement == "}":
        stack.pop()
    elif statement.startswith("message"):
        nested = top.nested_type if len(stack) > 1 else top.message_type
        stack.append(nested.add(name=statement.split()[1]))
    elif statement.startswith("enum"):
        stack.append(top.enum_type.add(name=statement.split()[1]))
    elif (member := re.fullmatch(r"(\w+) = (\d+);", statement)) is not None:
        top.value.add(name=member[1], number=int(member[2]))
    elif (found := _FIELD.match(statement.rstrip(";"))) is not None:
        _add_field(top, found, enums)


def _add_field(message: Any, found: re.Match[str], enums: set[str]) -> None:
    label, kind, name, number, default = found.groups()
    field = message.field.add(name=name, number=int(number))
    field.label = field.LABEL_REPEATED if label == "repeated" else field.LABEL_OPTIONAL
    if kind in _SCALARS:
        field.type = field.Type.Value(f"TYPE_{kind.upper()}")
    else:
        field.type = field.TYPE_ENUM if kind in enums else field.TYPE_MESSAGE
        field.type_name = kind
    if default is not None:
        field.default_value = default
