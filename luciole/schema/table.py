"""Describe a flatbuffer table once it is decoded: a record with typed fields and a known layout."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Literal, TypeVar, cast, dataclass_transform

import numpy as np

Kind = Literal["scalar", "string", "table", "union", "vector", "tables"]

SCALARS: dict[str, np.dtype[Any]] = {
    "bool": np.dtype("<u1"),
    "byte": np.dtype("<i1"),
    "ubyte": np.dtype("<u1"),
    "short": np.dtype("<i2"),
    "ushort": np.dtype("<u2"),
    "int": np.dtype("<i4"),
    "uint": np.dtype("<u4"),
    "long": np.dtype("<i8"),
    "ulong": np.dtype("<u8"),
    "float": np.dtype("<f4"),
    "double": np.dtype("<f8"),
}


@dataclass
class Field:
    """One field of a table: its slot, what it holds and its default."""

    id: int
    kind: Kind
    of: str
    """Scalar type, or name of the table or union."""
    default: object = None
    enum: type[IntEnum] | None = None
    align: int = 0
    name: str = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


T = TypeVar("T")


# Field specifiers: to a type checker they return the default, of the type written beside them.
def _declared(field: Field, default: T) -> T:
    return cast(T, field)


def scalar(id: int, of: str, *, default: T, enum: type[IntEnum] | None = None) -> T:
    """Declare a number, a bool or an enum member."""
    return _declared(Field(id, "scalar", of, default, enum), default)


def string(id: int, *, default: T) -> T:
    """Declare a UTF-8 text."""
    return _declared(Field(id, "string", "string", default), default)


def vector(id: int, of: str, *, default: T, enum: type[IntEnum] | None = None, align: int = 0) -> T:
    """Declare a list of numbers, as a read-only NumPy view of the file."""
    return _declared(Field(id, "vector", of, default, enum, align), default)


def table(id: int, of: str, *, default: T) -> T:
    """Declare a nested table."""
    return _declared(Field(id, "table", of, default), default)


def tables(id: int, of: str, *, default: T) -> T:
    """Declare a list of tables."""
    return _declared(Field(id, "tables", of, default), default)


def union(id: int, of: str, *, default: T) -> T:
    """Declare one of several tables; the class of the value is the tag, which the file keeps in
    slot ``id - 1``.
    """
    return _declared(Field(id, "union", of, default), default)


TABLES: dict[str, type[Table]] = {}
UNIONS: dict[str, type[IntEnum]] = {}


@dataclass_transform(
    kw_only_default=True, field_specifiers=(scalar, string, vector, table, tables, union)
)
class Table:
    """Base of every decoded table. A field that was not given has the schema's default."""

    fields: ClassVar[tuple[Field, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.fields = tuple(member for member in vars(cls).values() if isinstance(member, Field))
        for member in cls.fields:
            setattr(cls, member.name, member.default)
        TABLES[cls.__name__] = cls

    def __init__(self, **values: object) -> None:
        unknown = values.keys() - {field.name for field in self.fields}
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        self.__dict__.update(values)

    def __eq__(self, other: object) -> bool:
        """Compare contents. An absent list equals an empty one, as everywhere in flatbuffers."""
        if type(self) is not type(other):
            return NotImplemented
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in self.fields)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({arguments})"


def _same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return _bytes(a) == _bytes(b)
    if isinstance(a, list) or isinstance(b, list):
        return (a or []) == (b or [])
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)
    return bool(a == b)


def _bytes(vector: object) -> bytes:
    return b"" if vector is None else np.asarray(vector).tobytes()
