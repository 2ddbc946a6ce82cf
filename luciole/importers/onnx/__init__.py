"""ONNX models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from luciole.importers.reader import ModelReader

if TYPE_CHECKING:
    from luciole.importers.extents import Settled
    from luciole.importers.imported import Imported

_VARINT, _BYTES = 0, 2
_FIELDS = {1: _VARINT, 5: _VARINT} | dict.fromkeys((2, 3, 4, 6, 7, 8, 14, 20, 25, 26), _BYTES)
"""The fields of onnx.proto's ModelProto with the form that protobuf gives each."""
_NAMES = (2, 3, 4)
_LONGEST_NAME = 4096


class OnnxReader(ModelReader):
    """Reads ONNX files, of operator sets 6 and later."""

    name = "ONNX"
    extensions = (".onnx",)
    extra = "onnx"

    def recognises(self, start: bytes) -> bool:
        """Look for the fields of a model: the format has no identifier of its own."""
        fields = list(_fields(start))
        return len(fields) > 1 and all(fields)

    def read(self, path: Path) -> Imported:
        """Read a file. Raises what ``model.load`` does."""
        from luciole.importers.onnx import model

        return model.load(path)

    def read_for(self, path: Path, settled: Settled) -> Imported:
        """Read a file whose inputs get extents before nodes are imported: rules see them."""
        from luciole.importers.onnx import model

        return model.load(path, settled)

    def read_bytes(self, data: bytes) -> Imported:
        """Read a file's bytes: its constants are all inside. Raises what ``model.load`` does."""
        from luciole.importers.onnx import model

        return model.from_bytes(data)

    def read_bytes_for(self, data: bytes, settled: Settled) -> Imported:
        """Read a file's bytes, whose inputs get extents before nodes are imported."""
        from luciole.importers.onnx import model

        return model.from_bytes(data, settled)


def _fields(start: bytes) -> Iterator[bool]:
    """Walk over the fields that a message starts with: whether each may stand in a model."""
    place = 0
    while place < len(start):
        tag, place = _varint(start, place)
        number, form = tag >> 3, tag & 7
        yield _FIELDS.get(number) == form
        if _FIELDS.get(number) != form:
            return
        size, place = _varint(start, place)
        if form == _BYTES:
            yield number not in _NAMES or size <= _LONGEST_NAME
            place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """Read a number of protobuf's varying length; and the place behind it."""
    number, shift = 0, 0
    while place < len(data) and shift < 64:
        number |= (data[place] & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if data[place - 1] < 0x80:
            break
    return number, place
