"""FlexBuffer maps, the form of most custom options: decoded with every offset checked, and as text.

The format: https://flatbuffers.dev/internals/#flexbuffers. The bytes come from untrusted files,
so a value is only built from bytes that are there, and shared offsets cannot blow a small file up
into a large value.
"""

from __future__ import annotations

import json
import struct
from typing import Any

_NULL, _KEY, _STRING, _MAP, _VECTOR, _BLOB, _BOOL = 0, 4, 5, 9, 10, 25, 26
_INLINE = {1: "i", 2: "u", 3: "f"}
_INDIRECT = {6: "i", 7: "u", 8: "f"}
_TYPED = {11: 1, 12: 2, 13: 3, 14: _KEY, 36: _BOOL}
_FIXED = range(16, 25)
"""Vectors of 2, 3 and 4 numbers, each for signed, unsigned and float."""

_FORMATS = {
    "i": {1: "<b", 2: "<h", 4: "<i", 8: "<q"},
    "u": {1: "<B", 2: "<H", 4: "<I", 8: "<Q"},
    "f": {2: "<e", 4: "<f", 8: "<d"},
}
_STRAY = 0xDC80
"""Where Python puts the bytes 0x80 to 0xFF that are no UTF-8 (``surrogateescape``)."""

_DEEPEST = 32
_UNITS_PER_BYTE = 16


class _DamagedError(ValueError):
    """The bytes are no FlexBuffer."""


def read_map(raw: bytes) -> dict[str, Any] | None:
    """Read the entries of a FlexBuffer map, or None when the bytes are damaged or hold something
    else.

    Values are None, bool, int, float, str, bytes (a blob), lists and dicts of these.
    """
    try:
        value = _Reader(raw).root()
    except _DamagedError:
        return None
    return value if isinstance(value, dict) else None


class _Reader:
    """One pass over one FlexBuffer."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.budget = _UNITS_PER_BYTE * len(raw)

    def root(self) -> Any:
        """Read the outermost value: its bytes, its packed type and its width end the buffer."""
        if len(self.raw) < 3:
            raise _DamagedError
        width = self.raw[-1]
        return self.value(len(self.raw) - 2 - width, width, self.raw[-2], 0)

    def need(self, position: int, size: int) -> None:
        """Refuse a stretch of bytes that is not there."""
        if position < 0 or size < 0 or position + size > len(self.raw):
            raise _DamagedError

    def spend(self, units: int) -> None:
        """Count the entries that are built."""
        self.budget -= units
        if self.budget < 0:
            raise _DamagedError

    def number(self, kind: str, position: int, width: int) -> Any:
        """Read a signed ("i"), unsigned ("u") or floating ("f") number of ``width`` bytes."""
        self.need(position, width)
        if width not in _FORMATS[kind]:
            raise _DamagedError
        return struct.unpack_from(_FORMATS[kind][width], self.raw, position)[0]

    def value(self, position: int, width: int, packed: int, depth: int) -> Any:
        """Read the value in a slot of ``width`` bytes; ``packed`` says its type and its target's
        width.
        """
        self.spend(1)
        kind, target_width = packed >> 2, 1 << (packed & 3)
        if kind == _NULL:
            return None
        if kind in _INLINE:
            return self.number(_INLINE[kind], position, width)
        if kind == _BOOL:
            return bool(self.number("u", position, width))
        at = position - self.number("u", position, width)
        if kind in _INDIRECT:
            return self.number(_INDIRECT[kind], at, target_width)
        return self.contents(kind, at, target_width, depth)

    def contents(self, kind: int, at: int, width: int, depth: int) -> Any:
        """Read a text, blob, list or map that starts at a position."""
        if depth > _DEEPEST:
            raise _DamagedError
        if kind == _KEY:
            return self.key(at)
        if kind in _FIXED:
            return self.typed(at, width, (kind - 16) % 3 + 1, (kind - 16) // 3 + 2, depth)
        size = self.number("u", at - width, width)
        if kind == _STRING:
            return self.bytes(at, size).decode("utf-8", "surrogateescape")
        if kind == _BLOB:
            return self.bytes(at, size)
        if kind in _TYPED:
            return self.typed(at, width, _TYPED[kind], size, depth)
        if kind == _VECTOR:
            return self.vector(at, width, size, depth)
        if kind == _MAP:
            return self.map(at, width, size, depth)
        raise _DamagedError

    def key(self, at: int) -> str:
        """Read a text that a zero byte ends."""
        self.need(at, 1)
        end = self.raw.find(b"\0", at)
        return self.bytes(at, end - at).decode("utf-8", "surrogateescape")

    def bytes(self, at: int, size: int) -> bytes:
        """Read a stretch of bytes."""
        self.need(at, size)
        self.spend(size)
        return self.raw[at : at + size]

    def typed(self, at: int, width: int, kind: int, size: int, depth: int) -> list[Any]:
        """Read elements that are all of one kind."""
        self.need(at, size * width)
        return [self.value(at + i * width, width, kind << 2, depth + 1) for i in range(size)]

    def vector(self, at: int, width: int, size: int, depth: int) -> list[Any]:
        """Read elements with their types behind them."""
        self.need(at, size * (width + 1))
        types = self.raw[at + size * width : at + size * (width + 1)]
        return [self.value(at + i * width, width, t, depth + 1) for i, t in enumerate(types)]

    def map(self, at: int, width: int, size: int, depth: int) -> dict[str, Any]:
        """Read a vector of values; the offset and width of the vector of their keys stand before
        it.
        """
        slot = at - 3 * width
        keys_at = slot - self.number("u", slot, width)
        keys_width = self.number("u", slot + width, width)
        if self.number("u", keys_at - keys_width, keys_width) != size:
            raise _DamagedError
        keys = self.typed(keys_at, keys_width, _KEY, size, depth)
        return dict(zip(keys, self.vector(at, width, size, depth), strict=True))


def value_text(value: Any, nested: bool = False) -> str:
    """Write a value as the FlatBuffers library prints it: much like JSON, a text alone without
    quotes.
    """
    if isinstance(value, bytes):
        return _quoted(value.decode("utf-8", "surrogateescape"))
    if isinstance(value, str):
        return _quoted(value) if nested else value
    if isinstance(value, list):
        return f"[ {', '.join(value_text(v, True) for v in value)} ]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{k}: {value_text(v, True)}' for k, v in value.items())} }}"
    if isinstance(value, float):
        return _decimal(value)
    return json.dumps(value)


def _decimal(value: float) -> str:
    """Write twelve digits behind the point without the zeros at the end, one at least."""
    whole, point, fraction = f"{value:.12f}".partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}" if point else whole


def _quoted(text: str) -> str:
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    """Write a character in ASCII: as JSON has it, and bytes that are no UTF-8 as ``\\xFF``."""
    short = json.dumps(character)[1:-1]
    if len(short) <= 2 and character <= "~":
        return short
    number = ord(character)
    if _STRAY <= number <= _STRAY + 0x7F:
        return f"\\x{number - _STRAY + 0x80:02X}"
    digits = character.encode("utf-16-be", "surrogatepass").hex().upper()
    return "".join(f"\\u{digits[i : i + 4]}" for i in range(0, len(digits), 4))
