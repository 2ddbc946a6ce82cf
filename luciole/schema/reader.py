"""Bytes to tables. Every offset, length and tag is checked against the file before it is used."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from luciole.schema.dialect import DIALECTS, Dialect
from luciole.schema.errors import FormatError
from luciole.schema.table import SCALARS, TABLES, UNIONS, Field, Table
from luciole.schema.tables import Buffer, Model

T = TypeVar("T", bound=Table)

Bytes = bytes | bytearray | memoryview | mmap.mmap | NDArray[np.uint8]

_U32 = struct.Struct("<I")
_I32 = struct.Struct("<i")
# NumPy's letters would not do: its "l" has 8 bytes, that of struct has 4.
_LETTERS = dict(zip(SCALARS, "BbBhHiIqQfd", strict=True))
_SCALAR = {name: struct.Struct(f"<{letter}") for name, letter in _LETTERS.items()}
_HEADER = 8
_MOST_ENTRIES = 1 << 24
"""Tables and texts: far more than any model has, far fewer than a file of zeros could claim."""
_SLOT, _FEW_SLOTS = 2, 16
_MOST_SHARED, _FEW_NUMBERS = 4, 1 << 20
"""How often lists of numbers may take the bytes of the whole file, because writers share some of
them, and bytes of lists that are no burden in the smallest file.
"""
MOST_FAULTS = 100
"""Faults after which lists are cut off."""


class Fault(NamedTuple):
    """A fault of a file: the field's place in the tables, and a sentence."""

    place: str
    sentence: str


@dataclass
class Reading:
    """The readable contents of a file. ``unknown`` has a line for everything in it that this schema
    does not know, ``faults`` the fields that were left out, or are empty, because their bytes are
    damaged.
    """

    root: Model
    unknown: list[str]
    faults: list[Fault]


class _Noted:
    """A fault whose place is still being found: its parts, the innermost first."""

    def __init__(self, sentence: str) -> None:
        self.sentence = sentence
        self.parts: list[str] = []

    def told(self) -> Fault:
        return Fault("".join(reversed(self.parts)).lstrip("."), self.sentence)


def shared_room(size: int) -> int:
    """Count the bytes that lists of numbers, and custom options, of a file of ``size`` bytes may
    come to.
    """
    return _MOST_SHARED * size + _FEW_NUMBERS


def dialect_of(data: Bytes) -> Dialect | None:
    """Find the format that a file's identifier names, or None."""
    identifier = _octets(data)[4:_HEADER].tobytes()
    return next((d for d in DIALECTS if d.identifier == identifier), None)


def read(data: Bytes, dialect: Dialect | None = None) -> tuple[Model, list[str]]:
    """Decode a model file.

    Lists of numbers stay views of ``data``: nothing is copied, and the file is not touched before
    it is used. Returns the root table and one line for everything that the file holds and this
    schema does not know. Raises FormatError when the bytes are no such file or point outside
    themselves.
    """
    reading = read_damaged(data, dialect)
    for fault in reading.faults:
        raise FormatError(f"damaged file: {fault.sentence}")
    return reading.root, reading.unknown


def read_damaged(data: Bytes, dialect: Dialect | None = None) -> Reading:
    """Decode the undamaged parts of a model file, as ``read`` does.

    Raises FormatError when the bytes are no such file, or when there is no root table.
    """
    dialect = dialect or dialect_of(data)
    if dialect is None:
        raise FormatError(_no_identifier(data))
    reader = Reader(data, dialect)
    try:
        root = reader.table(Model, reader.offset(0))
    except _DamageError as error:
        raise FormatError(f"damaged file: {error}") from None
    return Reading(root, reader.unknown, [fault.told() for fault in reader.faults])


def _octets(data: Bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8) if len(data) else np.empty(0, np.uint8)


def _no_identifier(data: Bytes) -> str:
    identifier = _octets(data)[4:_HEADER].tobytes()
    known = " or ".join(f"{d.identifier.decode()} ({d.name})" for d in DIALECTS)
    if len(identifier) < _HEADER - 4:
        return f"not a model file: {len(_octets(data))} bytes is too short"
    return f"not a model file: identifier is {identifier!r}, expected {known}"


class _Layout(NamedTuple):
    """A vtable: each slot's distance from the table's start, and the table's bytes."""

    slots: tuple[int, ...]
    size: int


class _DamageError(Exception):
    """Bytes that do not hold: what they belong to is left out."""


class Reader:
    """One pass over one file. What does not hold is noted under ``faults`` and left out; an entry
    of a list becomes an empty one, so that the others keep their numbers.
    """

    def __init__(self, data: Bytes, dialect: Dialect) -> None:
        self.bytes = _octets(data)
        self.bytes.flags.writeable = False
        self.view = self.bytes.data
        self.size = len(self.bytes)
        self.dialect = dialect
        self._unknown: dict[str, None] = {}
        self.layouts: dict[tuple[type[Table], int], _Layout] = {}
        self.faults: list[_Noted] = []
        # A table takes 4 bytes at least, so more of them means that offsets were shared to blow the
        # file up.
        self.budget = min(self.size // 4, _MOST_ENTRIES)
        self.numbers = shared_room(self.size)

    def need(self, position: int, size: int, what: str) -> None:
        """Refuse a stretch of bytes that is not inside the file."""
        if position < 0 or size < 0 or position + size > self.size:
            raise _DamageError(
                f"{what} wants bytes {position} to {position + size}, the file has {self.size}"
            )

    def offset(self, position: int) -> int:
        """Follow the unsigned offset at a position."""
        self.need(position, 4, "an offset")
        return position + int(_U32.unpack_from(self.view, position)[0])

    def table(self, cls: type[T], position: int) -> T:
        """Decode the table at a position."""
        slots = self._slots(cls, position)
        values: dict[str, object] = {}
        for field in cls.fields:
            at = self._at(cls, field, slots)
            if not at:
                continue
            before = len(self.faults)
            try:
                value = self._field(cls, field, position + at, slots, position)
            except _DamageError as error:
                value = None
                self._note(error)
            if len(self.faults) > before:
                self._locate(before, f".{field.name}")
            if value is not None:
                values[field.name] = value
        return cls(**values)

    def _note(self, error: _DamageError) -> None:
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(_Noted(str(error)))
        elif len(self.faults) == MOST_FAULTS:
            self.faults.append(_Noted("more is damaged: lists from here on are cut off"))

    def _locate(self, before: int, part: str) -> None:
        """Add a part of the place to all faults that were noted since there were ``before``."""
        for fault in self.faults[before:]:
            fault.parts.append(part)

    def _spend(self, what: str, count: int = 1) -> None:
        self.budget -= count
        if self.budget < 0:
            raise _DamageError(f"more {what} entries than {self.size} bytes can hold")

    def _spend_numbers(self, size: int) -> None:
        self.numbers -= size
        if self.numbers < 0:
            raise _DamageError(
                f"more numbers in lists than {self.size} bytes can hold, {_MOST_SHARED} times over"
            )

    def _slots(self, cls: type[Table], position: int) -> tuple[int, ...]:
        """Read the vtable: for each slot the field's distance from the table's start, 0 when
        absent.
        """
        self.need(position, 4, f"table {cls.__name__}")
        start = position - int(_I32.unpack_from(self.view, position)[0])
        layout = self.layouts.get((cls, start))
        if layout is None:  # tables share few of them
            layout = self.layouts[cls, start] = self._layout(cls, start)
        self.need(position, layout.size, f"table {cls.__name__}")
        return layout.slots

    def _layout(self, cls: type[Table], start: int) -> _Layout:
        self.need(start, 4, f"the layout of table {cls.__name__}")
        size, table_size = struct.unpack_from("<HH", self.view, start)
        self.need(start, max(size, 4), f"the layout of table {cls.__name__}")
        count = max(size - 4, 0) // _SLOT
        self._spend("layout", count // _FEW_SLOTS)
        slots = struct.unpack_from(f"<{count}H", self.view, start + 4)
        if any(at >= table_size for at in slots if at):
            raise _DamageError(f"a field of table {cls.__name__} lies outside the table")
        self._note_unknown(cls, slots)
        return _Layout(slots, table_size)

    def _note_unknown(self, cls: type[Table], slots: tuple[int, ...]) -> None:
        known = {self.dialect.slot(cls.__name__, f.name, f.id) for f in cls.fields}
        known |= {f.id - 1 for f in cls.fields if f.kind == "union"}
        for slot, at in enumerate(slots):
            if at and slot not in known:
                self._unknown[
                    f"field {slot} of table {cls.__name__} is not known and is left out"
                ] = None

    @property
    def unknown(self) -> list[str]:
        """A line for everything that the schema does not know."""
        return list(self._unknown)

    def _at(self, cls: type[Table], field: Field, slots: tuple[int, ...]) -> int:
        slot = self.dialect.slot(cls.__name__, field.name, field.id)
        return slots[slot] if slot is not None and slot < len(slots) else 0

    def _field(
        self, cls: type[Table], field: Field, position: int, slots: tuple[int, ...], base: int
    ) -> object:
        if field.kind == "scalar":
            return self._scalar(field, position)
        if field.kind == "union":
            tag = slots[field.id - 1]
            return self._union(cls, field, base + tag if tag else None, position)
        target = self.offset(position)
        if field.kind == "string":
            return self._string(target)
        if field.kind == "table":
            return self.table(TABLES[field.of], target)
        if field.kind == "vector":
            numbers = self._vector(field, target)
            if cls is not Buffer:  # a constant's bytes stay a view, however many share them
                self._spend_numbers(numbers.nbytes)
            return numbers
        return self._list(field, target)

    def _scalar(self, field: Field, position: int) -> object:
        kind = _SCALAR[field.of]
        self.need(position, kind.size, f"field {field.name}")
        number = kind.unpack_from(self.view, position)[0]
        if field.enum is not None:
            return self._member(field.enum, number)
        return bool(number) if field.of == "bool" else number

    def _member(self, enum: type[IntEnum], number: int) -> int:
        """Find the enum member; a number without a meaning stays a number, for the importer to
        judge.
        """
        member = self.dialect.member(enum, number)
        return number if member is None else member

    def _union(
        self, cls: type[Table], field: Field, tag_at: int | None, position: int
    ) -> Table | None:
        self.need(tag_at or 0, 1, f"field {field.name}")
        tag = self.bytes[tag_at] if tag_at is not None else 0
        member = self.dialect.member(UNIONS[field.of], int(tag))
        if member is None:
            self._unknown[
                f"{cls.__name__}.{field.name} has the unknown kind {tag} and is left out"
            ] = None
            return None
        return None if member == 0 else self.table(TABLES[member.name], self.offset(position))

    def _length(self, position: int, item: int, what: str) -> int:
        self.need(position, 4, what)
        length = int(_U32.unpack_from(self.view, position)[0])
        self.need(position + 4, length * item, what)
        return length

    def _string(self, position: int) -> str:
        length = self._length(position, 1, "a text")
        self._spend("text", length // 4)
        return bytes(self.view[position + 4 : position + 4 + length]).decode(
            "utf-8", "surrogateescape"
        )

    def _vector(self, field: Field, position: int) -> NDArray[Any]:
        dtype = SCALARS[field.of]
        length = self._length(position, dtype.itemsize, f"list {field.name}")
        numbers = (
            np.frombuffer(self.bytes, dtype, length, position + 4) if length else np.empty(0, dtype)
        )
        return numbers != 0 if field.of == "bool" else numbers

    def _list(self, field: Field, position: int) -> list[object]:
        length = self._length(position, 4, f"list {field.name}")
        self._spend(field.name, length)
        items: list[object] = []
        for i in range(length):
            before = len(self.faults)
            items.append(self._item(field, position + 4 + 4 * i))
            if len(self.faults) > before:
                self._locate(before, f"[{i}]")
            if len(self.faults) > MOST_FAULTS:
                break
        return items

    def _item(self, field: Field, position: int) -> Table:
        """Read a table of a list, an empty one where it does not hold."""
        cls = TABLES[field.of]
        try:
            return self.table(cls, self.offset(position))
        except _DamageError as error:
            self._note(error)
            return cls()
