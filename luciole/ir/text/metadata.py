"""The tables that ONE keeps in a model's metadata, decoded with every length checked.

All numbers are little-endian 32-bit unsigned ones. A table is a count and so many entries: an id, a
length and either the bytes of a name with the zero that ends it (source table: what each node was
before ONE changed the graph) or so many ids of nodes (op table: what each operator was made of).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

from luciole.ir.text.common import hex_bytes, one_line
from luciole.ir.value import Buffer

Entry = tuple[int, Any]
"""A node's id and its name or the ids of its origins."""

_U32 = struct.Struct("<I")


def read_table(name: str, buffer: Buffer) -> list[Entry] | None:
    """Read the entries of a metadata buffer; None when it is none of ONE's tables or damaged."""
    if name not in _TABLES or buffer.data is None:
        return None
    raw = buffer.data.tobytes()
    try:
        return list(_entries(raw, _TABLES[name][1]))
    except struct.error:
        return None


def table_lines(name: str, buffer: Buffer) -> Iterator[str]:
    """Write the lines of a dump below a metadata entry: ONE's tables, or the bytes of a damaged
    one.
    """
    if name not in _TABLES or not len(buffer):
        return
    entries = read_table(name, buffer)
    if entries is None:
        yield f"    damaged ({len(buffer)}) {hex_bytes(buffer.data)}"
        return
    yield f"    [node_id : {_TABLES[name][0]}]"
    for node, what in entries:
        shown = one_line(what) if isinstance(what, str) else ", ".join(map(str, what))
        yield f"    [{node} : {shown}]"


def _entries(raw: bytes, item: Callable[[bytes, int, int], tuple[Any, int]]) -> Iterator[Entry]:
    (count,), position = _U32.unpack_from(raw, 0), 4
    for _ in range(count):
        node, length = struct.unpack_from("<II", raw, position)
        what, position = item(raw, position + 8, length)
        yield node, what


def _name(raw: bytes, start: int, length: int) -> tuple[str, int]:
    (name,) = struct.unpack_from(f"<{length}s", raw, start)
    return name[:-1].decode("utf-8", "surrogateescape"), start + length


def _ids(raw: bytes, start: int, count: int) -> tuple[list[int], int]:
    return list(struct.unpack_from(f"<{count}I", raw, start)), start + 4 * count


_SOURCES, _ORIGINS = ("node_name", _name), ("origin_ids", _ids)
_TABLES: dict[str, tuple[str, Callable[[bytes, int, int], tuple[Any, int]]]] = {
    "ONE_source_table": _SOURCES,
    "ONE_op_table": _ORIGINS,
    "source_table": _SOURCES,
    "op_table": _ORIGINS,
}
"""Decoders by metadata name; the last two are what ONE called them at first."""
