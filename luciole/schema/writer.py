"""Tables to bytes, on top of the flatbuffers builder."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flatbuffers
import numpy as np
from flatbuffers import number_types
from numpy.typing import NDArray

from luciole.schema.dialect import Dialect
from luciole.schema.errors import FormatError
from luciole.schema.numbers import numbers_of
from luciole.schema.table import SCALARS, UNIONS, Field, Table
from luciole.schema.tables import Model

_FLAGS = {
    "bool": number_types.BoolFlags,
    "byte": number_types.Int8Flags,
    "ubyte": number_types.Uint8Flags,
    "short": number_types.Int16Flags,
    "ushort": number_types.Uint16Flags,
    "int": number_types.Int32Flags,
    "uint": number_types.Uint32Flags,
    "long": number_types.Int64Flags,
    "ulong": number_types.Uint64Flags,
    "float": number_types.Float32Flags,
    "double": number_types.Float64Flags,
}
LARGEST = 2**31 - 1
"""Bytes of a flatbuffer: its offsets are signed."""


def write(model: Model, dialect: Dialect) -> bytes:
    """Encode a model file as one flatbuffer.

    Raises FormatError when the format cannot hold something (it is named) or the flatbuffer would
    pass 2 GB (``luciole.schema.large`` puts constants behind it).
    """
    data = sum(b.data.nbytes for b in model.buffers or () if b.data is not None)
    if data > LARGEST:
        raise FormatError(f"{data} bytes of constants: a flatbuffer has at most {LARGEST} bytes")
    builder = flatbuffers.Builder(data + 4096)
    writer = Writer(builder, dialect, data + _ROOM)
    builder.Finish(writer.table(model), file_identifier=dialect.identifier)
    return bytes(builder.Output())


_MOST_SHARED, _MOST_SHARED_OCTETS = 4096, 128
"""Bytes of a list of numbers, and of custom options, up to which all that hold the same share one.
"""
_SHORT, _ROOM = 64, 1 << 19
"""Bytes of lists that are shared however often. The reader refuses files whose lists come to
several times their bytes: longer ones are written again once their repetitions come to more than
the constants of the file and these bytes.
"""

_Contents = tuple[object, ...]

Number = bool | int | float
Content = Number
"""A scalar's number, or the offset of anything else that was written."""


class Writer:
    """One pass over one tree of tables, leaves first as flatbuffers wants it.

    Lists of numbers that are no constants, and tables in fields of their own (options,
    quantization), are written once for all that have the same contents: shapes and options of an
    unrolled loop are, and the zero points of channels. ``room`` bytes of longer lists may be saved.
    """

    def __init__(self, builder: flatbuffers.Builder, dialect: Dialect, room: int = _ROOM) -> None:
        self.builder = builder
        self.dialect = dialect
        self.room = room
        self._written: dict[_Contents, int] = {}

    def table(self, table: Table, *, shared: bool = False) -> int:
        """Write a table and its contents; returns its offset, with ``shared`` that of an equal one
        where there is one.
        """
        held = [f for f in table.fields if not _is_default(f, getattr(table, f.name))]
        placed = [(f, self._slot(table, f), self._content(f, getattr(table, f.name))) for f in held]
        if not (shared and all(_is_short(f, getattr(table, f.name)) for f in held)):
            return self._object(table, placed)
        contents = [(slot, repr(content)) for _, slot, content in placed]  # -0.0 is not 0.0
        return self._once((type(table), *contents), lambda: self._object(table, placed))

    def _once(self, contents: _Contents, write: Callable[[], int]) -> int:
        if contents not in self._written:
            self._written[contents] = write()
        return self._written[contents]

    def _object(self, table: Table, placed: list[tuple[Field, int, Content]]) -> int:
        self.builder.StartObject(1 + max((slot for _, slot, _ in placed), default=-1))
        for field, slot, content in placed:
            if field.kind == "scalar":
                self._scalar(field, slot, content)
            else:
                self.builder.PrependUOffsetTRelativeSlot(slot, content, 0)
            if field.kind == "union":
                self.builder.PrependUint8Slot(
                    slot - 1, self._tag(field, getattr(table, field.name)), 0
                )
        return int(self.builder.EndObject())

    def _slot(self, table: Table, field: Field) -> int:
        name = type(table).__name__
        slot = self.dialect.slot(name, field.name, field.id)
        if slot is None:
            raise FormatError(f"{self.dialect.name} cannot hold {name}.{field.name}")
        return slot

    def _content(self, field: Field, value: Any) -> Content:
        """Write a value: a scalar as its number, anything else as the offset of what was
        written.
        """
        if field.kind == "scalar":
            return self._number(field, value)
        if field.kind == "string":
            return int(self.builder.CreateString(value, "utf-8", "surrogateescape"))
        if field.kind in ("table", "union"):
            return self.table(value, shared=True)
        if field.kind == "vector":
            return self._numbers(field, value)
        return self._offsets([self.table(item) for item in value])

    def _number(self, field: Field, value: Number) -> Number:
        if field.enum is None or value not in numbers_of(field.enum):
            return value  # a number that had no meaning when it was read goes back as it came
        member = field.enum(int(value))
        number = self.dialect.number(member)
        if number is None:
            raise FormatError(f"{self.dialect.name} has no {field.enum.__name__} {member.name}")
        return number

    def _tag(self, field: Field, value: Table) -> int:
        member = UNIONS[field.of][type(value).__name__]
        number = self.dialect.number(member)
        if number is None:
            raise FormatError(f"{self.dialect.name} has no {member.name}")
        return number

    def _scalar(self, field: Field, slot: int, number: Content) -> None:
        self.builder.PrependSlot(_FLAGS[field.of], slot, number, None)

    def _numbers(self, field: Field, numbers: NDArray[Any]) -> int:
        stored = np.ascontiguousarray(numbers, SCALARS[field.of])
        if numbers.dtype.kind in "iu" and not _same(stored, numbers):
            raise FormatError(f"{field.name} has numbers that its type {field.of} does not hold")
        raw = stored.view(np.uint8)
        if not _is_short(field, numbers):
            return self._vector(field, numbers, raw)
        contents = field.of, field.align, raw.tobytes()
        if contents in self._written and raw.nbytes > _SHORT:
            self.room -= raw.nbytes
            if self.room < 0:
                return self._vector(field, numbers, raw)
        return self._once(contents, lambda: self._vector(field, numbers, raw))

    def _vector(self, field: Field, numbers: NDArray[Any], raw: NDArray[np.uint8]) -> int:
        dtype = SCALARS[field.of]
        self.builder.StartVector(dtype.itemsize, len(numbers), max(dtype.itemsize, field.align))
        head = self.builder.Head() - raw.nbytes
        self.builder.head = head
        self.builder.Bytes[head : head + raw.nbytes] = raw.tobytes()
        return int(self.builder.EndVector())

    def _offsets(self, offsets: list[int]) -> int:
        self.builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self.builder.PrependUOffsetTRelative(offset)
        return int(self.builder.EndVector())


def _is_short(field: Field, value: Any) -> bool:
    """Return whether a value is a number, or a list that may be shared: constants stay apart."""
    if field.kind != "vector":
        return field.kind == "scalar"
    most = _MOST_SHARED_OCTETS if field.of == "ubyte" else _MOST_SHARED
    return field.align <= 1 and SCALARS[field.of].itemsize * len(value) <= most


def _same(stored: NDArray[Any], numbers: NDArray[Any]) -> bool:
    """Return whether numbers stay the same in another type."""
    return stored.dtype == numbers.dtype or bool((stored == numbers).all())


def _is_default(field: Field, value: object) -> bool:
    if field.kind != "scalar":
        return value is None
    if isinstance(value, float) and math.copysign(1, value) < 0 and value == 0:
        return False  # -0.0 equals a default of 0
    return bool(value == field.default)
