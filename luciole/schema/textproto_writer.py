"""Messages as protobuf's text, laid out for people: short ones on a line, others indented."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from luciole.schema.textproto import Entry, Message, Scalar, Word

_WIDTH = 100
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\"}


def write_text(message: Message) -> str:
    """Write the text of a message; ``textproto.parse`` gives the same message again."""
    return "".join(f"{line}\n" for line in _lines(message, ""))


def _lines(message: Message, indent: str) -> Iterator[str]:
    for _, run in groupby(message, key=lambda e: (e.name, isinstance(e.value, Message))):
        entries = list(run)
        if len(entries) > 1 and not isinstance(entries[0].value, Message):
            yield from _wrapped((_inline(entry) for entry in entries), indent)
            continue
        for entry in entries:
            yield from _entry(entry, indent)


def _entry(entry: Entry, indent: str) -> Iterator[str]:
    short = indent + _inline(entry)
    if not isinstance(entry.value, Message) or (indent and len(short) <= _WIDTH):
        yield short
        return
    yield f"{indent}{entry.name} {{"
    yield from _lines(entry.value, f"{indent}  ")
    yield f"{indent}}}"


def _inline(entry: Entry) -> str:
    if isinstance(entry.value, Message):
        inside = "".join(f"{_inline(e)} " for e in entry.value)
        return f"{entry.name} {{ {inside}}}"
    return f"{entry.name}: {_scalar(entry.value)}"


def _wrapped(parts: Iterable[str], indent: str) -> Iterator[str]:
    """Put as many parts on a line as its width takes."""
    line = ""
    for part in parts:
        if line and len(indent) + len(line) + 1 + len(part) > _WIDTH:
            yield indent + line
            line = ""
        line = f"{line} {part}" if line else part
    yield indent + line


def _scalar(value: Scalar) -> str:
    if isinstance(value, Word) or not isinstance(value, str):
        return str(value)
    return '"' + "".join(map(_character, value)) + '"'


def _character(c: str) -> str:
    """Write a character that prints as it is, all others as their bytes in octal."""
    if c in _ESCAPES:
        return _ESCAPES[c]
    if c.isprintable():
        return c
    return "".join(f"\\{byte:03o}" for byte in c.encode("utf-8", "surrogateescape"))
