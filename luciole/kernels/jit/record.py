"""Records: what a compiled kernel is told, by name on both sides.

A kernel's fields are declared once, as a class. Its builder makes one of the class; the compiled
loop is given the same eight bytes for each field and reads them by the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import get_annotations
from operator import attrgetter
from struct import Struct
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

import numba
import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from luciole.kernels.jit.emits import Address, Builder, Int64, Kind, emits
from luciole.kernels.jit.scalars import I64

WORD = 8
"""Bytes of a field."""

_FORMATS = {"int": np.int64, "float": np.float32}
"""Types by a field's annotation: a number or an address, or a float in the word's first half."""

_CODES = {np.dtype(np.int64): "q", np.dtype(np.float32): "f"}
"""The same types for ``struct``, which takes a tenth of NumPy's time to fill a record."""

R = TypeVar("R", bound="Record")


@dataclass_transform(kw_only_default=True)
class Record:
    """The fields of a kernel's argument, in the order in which they lie in memory.

    A subclass lists them as annotations, ``int`` (int64) or ``float`` (float32). Raises TypeError
    for another annotation, and when it is made with other names than the declared ones. Fields
    stand ``spacing`` bytes apart.
    """

    layout: ClassVar[np.dtype[np.void]]
    _names: ClassVar[frozenset[str]]
    _packed: ClassVar[Struct]
    _contents: ClassVar[Callable[[Record], tuple[Any, ...]]]

    def __init_subclass__(cls, spacing: int = WORD) -> None:
        """Lay the fields out, those of a base class first."""
        inherited = getattr(cls, "layout", None)
        names = [] if inherited is None else list(inherited.names or ())
        formats = [] if inherited is None else [inherited[name] for name in names]
        for name, kind in get_annotations(cls).items():
            if kind not in _FORMATS:
                raise TypeError(f"{cls.__name__}.{name} is {kind}: int and float are possible")
            names.append(name)
            formats.append(np.dtype(_FORMATS[kind]))
        offsets = [spacing * place for place in range(len(names))]
        size = spacing * len(names)
        cls.layout = np.dtype(
            {"names": names, "formats": formats, "offsets": offsets, "itemsize": size}
        )
        cls._names = frozenset(names)
        padded = (f"{_CODES[kind]}{spacing - kind.itemsize}x" for kind in formats)
        cls._packed = Struct("=" + "".join(padded))
        cls._contents = _getter(names)

    def __init__(self, **fields: float) -> None:
        if fields.keys() != self._names:
            wrong = sorted(fields.keys() ^ self._names)
            raise TypeError(f"{type(self).__name__}: {', '.join(wrong)} is unknown or missing")
        vars(self).update(fields)

    def words(self) -> NDArray[np.int64]:
        """Return the record as a kernel takes it: one int64 for each field."""
        return table([self]).reshape(-1)

    @classmethod
    def place(cls, name: str) -> int:
        """Return the number of a field."""
        return (cls.layout.names or ()).index(name)

    @classmethod
    def offset(cls, name: str) -> int:
        """Return how many bytes a record has in front of a field."""
        fields = cls.layout.fields
        assert fields is not None
        return int(fields[name][1])

    def fields(self) -> dict[str, Any]:
        """Return the contents by name, for a record of a class that adds to them."""
        return {name: getattr(self, name) for name in self.layout.names or ()}

    def replace(self, **fields: float) -> Self:
        """Copy the record with other contents of some fields."""
        return type(self)(**self.fields() | fields)


def _getter(names: Sequence[str]) -> Callable[[Record], tuple[Any, ...]]:
    """Make the function that reads fields of a record in their order."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


class Shared(Record):
    """Work that threads may share: pieces from ``begin`` to before ``end``."""

    begin: int
    end: int


def table(records: Sequence[Record], kind: type[Record] | None = None) -> NDArray[np.int64]:
    """Lay records of one class one behind the other: [records, fields].

    ``kind`` is their class, for a table that may be empty.
    """
    kind = type(records[0]) if kind is None else kind
    pack, contents = kind._packed.pack, kind._contents
    rows = bytearray().join(pack(*contents(record)) for record in records)
    return np.frombuffer(rows, np.int64).reshape(len(records), kind.layout.itemsize // WORD)


def numba_type(kind: type[Record]) -> Kind:
    """Return the type of a record while a kernel is compiled: a reference to its bytes."""
    return numba.from_dtype(kind.layout)


def reader(kind: type[R]) -> Callable[[int, int], R]:
    """Make a function for kernels: from the address of a table, and a row's number, to the record
    there.
    """
    size = kind.layout.itemsize
    form = ir.ArrayType(ir.IntType(8), size).as_pointer()

    def row(builder: Builder, address: Address, number: Int64) -> R:
        """Find the record of a row."""
        place = builder.add(address, builder.mul(number, ir.Constant(I64, size)))
        return builder.inttoptr(place, form)

    return emits(row, numba_type(kind))
