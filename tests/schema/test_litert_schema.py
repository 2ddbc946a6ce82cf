"""Every slot, type, default and number of TFLite files against LiteRT's own schema."""

from __future__ import annotations

import inspect
from enum import IntEnum
from functools import cache
from types import ModuleType
from typing import Any

import pytest

from luciole.schema import enums, tables
from luciole.schema.dialect import TFLITE
from luciole.schema.table import TABLES, UNIONS, Field, Table

CIRCLE_TABLES = {
    *("AttentionOptions", "BCQFullyConnectedOptions", "BCQGatherOptions", "GRUOptions"),
    *("InstanceNormOptions", "LQConv2DOptions", "LQFullyConnectedOptions", "MXQuantization"),
    *("RmsNormOptions", "RoPEOptions", "RunModelOptions"),
}
LITERT_TABLES = {"ExternalBuffer", "ExternalBufferGroup", "MultiAxisQuantization"}
"""Newer than the schema that circle follows; files that use them get an UNKNOWN_FIELD warning."""

RENAMED = {
    ("BatchMatMulOptions", "adjoint_lhs"): "AdjX",
    ("BatchMatMulOptions", "adjoint_rhs"): "AdjY",
}
CIRCLE_FIELDS = {("Tensor", "compression_type")}
LITERT_FIELDS = {
    ("BlockwiseQuantization", "BlockShape"),
    ("FullyConnectedOptions", "QuantSpec"),
    ("Model", "ExternalBufferGroups"),
    ("Model", "ExternalBuffers"),
    ("Tensor", "ExternalBuffer"),
}
CIRCLE_ENUMS = {"CompressionType", "DataFormat", "RoPEMode"}
LITERT_MEMBERS = {
    ("QuantizationDetails", "MultiAxisQuantization"),
}

Layout = tuple[int, str, str, Any]
"""Slot, kind, what it holds, default."""

FLAGS = {
    "bool": "Bool",
    "byte": "Int8",
    "ubyte": "Uint8",
    "short": "Int16",
    "ushort": "Uint16",
    "int": "Int32",
    "uint": "Uint32",
    "long": "Int64",
    "ulong": "Uint64",
    "float": "Float32",
    "double": "Float64",
}


@cache
def litert() -> ModuleType:
    import ai_edge_litert.schema_py_generated as schema

    module: ModuleType = schema
    return module


def litert_tables() -> set[str]:
    """Tables are the classes that have an object twin, ``Tensor`` and ``TensorT``."""
    classes = {name for name, found in vars(litert()).items() if inspect.isclass(found)}
    return {name for name in classes if f"{name}T" in classes}


def litert_enums() -> set[str]:
    classes = {name for name, found in vars(litert()).items() if inspect.isclass(found)}
    return {n for n in classes if f"{n}T" not in classes and n[:-1] not in litert_tables()}


class Builder:
    """Stands for a flatbuffers builder and notes the one call that adds a field."""

    def __init__(self) -> None:
        self.call: tuple[Any, ...] = ()

    def __getattr__(self, name: str) -> Any:
        def note(*arguments: Any) -> None:
            self.call = (name, *arguments)

        return note


class Bytes:
    """Stands for a table of a file that has every field; notes how a field is read."""

    Bytes, Pos = b"", 0

    def __init__(self) -> None:
        self.seen: dict[str, Any] = {}

    def Offset(self, place: int) -> int:
        self.seen["slot"] = (place - 4) // 2
        return 4

    def Vector(self, _: int) -> int:
        self.seen["vector"] = True
        return 0

    def Indirect(self, _: int) -> int:
        return 0

    def Get(self, flags: type, _: int) -> int:
        self.seen["of"] = flags.__name__.removesuffix("Flags")
        return 0

    def String(self, _: int) -> bytes:
        self.seen["of"] = "string"
        return b""

    def Union(self, *_: Any) -> None:
        self.seen["of"] = "union"


def their_field(table: str, field: str) -> Layout:
    builder, content = Builder(), Bytes()
    getattr(litert(), f"{table}Add{field}")(builder, 0)
    method, slot, _, default = builder.call
    reader = getattr(litert(), table)()
    reader._tab = content
    accessor = getattr(reader, field)
    found = accessor(*[0] * len(inspect.signature(accessor).parameters))
    assert content.seen["slot"] == slot
    of = content.seen.get("of") or type(found).__name__
    if method == "PrependUOffsetTRelativeSlot":
        return slot, "list" if "vector" in content.seen else "one", of, None
    assert method == f"Prepend{of}Slot"
    return slot, "scalar", of, default


def their_fields(table: str) -> dict[str, Layout]:
    cls, prefix = getattr(litert(), table), f"{table}Add"
    names = [n.removeprefix(prefix) for n in dir(litert()) if n.startswith(prefix)]
    return {n: their_field(table, n) for n in names if hasattr(cls, n)}


def camel(table: str, name: str) -> str:
    spelled = "".join(part[0].upper() + part[1:] for part in name.split("_"))
    return RENAMED.get((table, name), spelled)


def our_fields(table: str) -> dict[str, Layout]:
    found: dict[str, Layout] = {}
    for field in TABLES[table].fields:
        slot = TFLITE.slot(table, field.name, field.id)
        if slot is None:
            continue
        name = camel(table, field.name)
        found[name] = (slot, *_layout(field))
        if field.kind == "union":
            found[f"{name}Type"] = (slot - 1, "scalar", "Uint8", 0)
    return found


def _layout(field: Field) -> tuple[str, str, Any]:
    if field.kind == "scalar":
        default = field.default
        number = TFLITE.number(default) if isinstance(default, IntEnum) else default
        return "scalar", FLAGS[field.of], number
    kind = "list" if field.kind in ("vector", "tables") else "one"
    of = "union" if field.kind == "union" else FLAGS.get(field.of, field.of)
    return kind, of, None


def test_the_tables_are_those_of_litert() -> None:
    assert {name for name, found in vars(tables).items() if _is_table(found)} == TABLES.keys()
    assert TABLES.keys() - litert_tables() == CIRCLE_TABLES
    assert litert_tables() - TABLES.keys() == LITERT_TABLES


@pytest.mark.parametrize("table", sorted(TABLES.keys() - CIRCLE_TABLES))
def test_a_table_has_litert_fields_in_litert_slots(table: str) -> None:
    theirs = {n: v for n, v in their_fields(table).items() if (table, n) not in LITERT_FIELDS}
    assert our_fields(table) == theirs


def test_what_only_one_side_has_is_listed() -> None:
    ours = {
        (t, f.name)
        for t in TABLES
        for f in TABLES[t].fields
        if TFLITE.slot(t, f.name, f.id) is None
    }
    assert ours == CIRCLE_FIELDS
    for table, field in LITERT_FIELDS:
        assert their_field(table, field)[0] not in {v[0] for v in our_fields(table).values()}
    for table, name in RENAMED:
        assert name in {f.name for f in TABLES[table].fields}


def test_the_enums_are_those_of_litert() -> None:
    ours = {name for name, found in vars(enums).items() if _is_enum(found)}
    assert ours - litert_enums() == CIRCLE_ENUMS
    assert litert_enums() <= ours
    assert UNIONS.keys() < ours


def _is_table(found: Any) -> bool:
    return inspect.isclass(found) and issubclass(found, Table) and found is not Table


def _is_enum(found: Any) -> bool:
    return inspect.isclass(found) and issubclass(found, IntEnum) and found is not IntEnum


def all_enums() -> list[str]:
    return sorted(
        n for n, found in vars(enums).items() if _is_enum(found) and n not in CIRCLE_ENUMS
    )


@pytest.mark.parametrize("name", all_enums())
def test_an_enum_has_litert_numbers(name: str) -> None:
    ours: type[IntEnum] = getattr(enums, name)
    theirs = {k: v for k, v in vars(getattr(litert(), name)).items() if not k.startswith("_")}
    for only in (n for e, n in LITERT_MEMBERS if e == name):
        assert TFLITE.member(ours, theirs.pop(only)) is None
    written = {m.name: TFLITE.number(m) for m in ours if TFLITE.number(m) is not None}
    assert written == theirs
    for member, number in theirs.items():
        assert TFLITE.member(ours, number) is ours[member]
    for lacking in set(ours.__members__) - theirs.keys():
        assert TFLITE.member(ours, int(ours[lacking])) is not ours[lacking]
