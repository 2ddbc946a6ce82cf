"""Protobuf's text format without a schema: names, numbers, texts and nested messages.

The language: https://protobuf.dev/reference/protobuf/textformat-spec/. Extensions and ``Any``
(names in brackets) are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from luciole.schema.errors import FormatError

_TOKEN = re.compile(
    r"""(?P<blank>(?:\s|\#[^\n]*)+)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[fF]?)(?![\w.]))
    |(?P<name>[A-Za-z_]\w*)
    |(?P<mark>[{}<>\[\]:;,-])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u(.{4})|U(.{8})|(.))", re.DOTALL)
_ESCAPED = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_DEEPEST = 32
_LONGEST_NUMBER = 1000
"""Characters: exact decimals of the smallest floats have some 770, and Python reads no integers of
many thousands.
"""


class Word(str):
    """A name that stands for a value: an enum member, true, inf, ..."""

    __slots__ = ()


Scalar = str | int | float | Word
"""A text, a number or a Word. Bytes of a text that are no UTF-8 are surrogates, as in names."""


@dataclass
class Entry:
    """One field of a message, once for each value of a repeated one, and its line in the text."""

    name: str
    value: Scalar | Message
    line: int


@dataclass
class Message:
    """The fields of a message in the order of the text."""

    line: int = 0
    entries: list[Entry] = field(default_factory=list)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def add(self, name: str, *values: Scalar | Message) -> None:
        """Append a field, once for each value."""
        self.entries += [Entry(name, value, 0) for value in values]


@dataclass
class _Token:
    kind: str
    text: str
    line: int


def parse(text: str) -> Message:
    """The message that a text holds. Raises FormatError with the line where it is none."""
    tokens = list(_tokens(text))
    reader = _Reader(tokens)
    return reader.message("", 1)


def _tokens(text: str) -> Iterator[_Token]:
    position, line = 0, 1
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None or found.lastgroup is None:
            raise FormatError(f"line {line}: cannot read {text[position : position + 20]!r}")
        if found.lastgroup != "blank":
            yield _Token(found.lastgroup, found[0], line)
        line += found[0].count("\n")
        position = found.end()
    yield _Token("end", "", line)


class _Reader:
    """One pass over the tokens."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.place = 0
        self.depth = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.place]

    def take(self) -> _Token:
        self.place += 1
        return self.tokens[self.place - 1]

    def skip(self, *marks: str) -> bool:
        """Whether one of these marks came; it is passed."""
        found = self.token.kind == "mark" and self.token.text in marks
        self.place += found
        return found

    def wrong(self, wanted: str) -> FormatError:
        shown = repr(self.token.text) if self.token.text else "the end of the text"
        return FormatError(f"line {self.token.line}: expected {wanted}, found {shown}")

    def message(self, closing: str, line: int) -> Message:
        """Fields up to a closing brace, or to the end of the text where there is none."""
        message = Message(line)
        while not self.skip(closing):
            if self.token.kind == "end" and not closing:
                return message
            if self.token.kind != "name":
                raise self.wrong(f"a field's name or {closing!r}" if closing else "a field's name")
            self._field(message)
        return message

    def _field(self, message: Message) -> None:
        name = self.take()
        colon = self.skip(":")
        for value in self._values(colon):
            message.entries.append(Entry(name.text, value, name.line))
        self.skip(",", ";")

    def _values(self, colon: bool) -> Iterator[Scalar | Message]:
        if not self.skip("["):
            yield self._value(colon)
            return
        if self.skip("]"):
            return
        yield self._value(colon)
        while self.skip(","):
            yield self._value(colon)
        if not self.skip("]"):
            raise self.wrong("',' or ']'")

    def _value(self, colon: bool) -> Scalar | Message:
        line = self.token.line
        for opening, closing in (("{", "}"), ("<", ">")):
            if self.skip(opening):
                return self._nested(closing, line)
        if not colon:
            raise self.wrong("':' or '{'")
        if self.token.kind == "text":
            return self._text()
        return self._number()

    def _nested(self, closing: str, line: int) -> Message:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise FormatError(f"line {line}: messages are nested more than {_DEEPEST} deep")
        message = self.message(closing, line)
        self.depth -= 1
        return message

    def _text(self) -> str:
        """Texts that follow each other are one."""
        parts = []
        while self.token.kind == "text":
            parts.append(_unescaped(self.take()))
        return b"".join(parts).decode("utf-8", "surrogateescape")

    def _number(self) -> Scalar:
        minus = self.skip("-")
        token = self.token
        if token.kind == "name":
            self.take()
            return Word(f"-{token.text}" if minus else token.text)
        if token.kind != "number":
            raise self.wrong("a value")
        self.take()
        if len(token.text) > _LONGEST_NUMBER:
            raise FormatError(f"line {token.line}: a number has {len(token.text)} characters")
        number = _number(token.text)
        return -number if minus else number


def _number(text: str) -> int | float:
    if text[:2] in ("0x", "0X"):
        return int(text, 16)
    if text.isdigit():
        return int(text, 8 if text.startswith("0") and not set(text) & set("89") else 10)
    return float(text.rstrip("fF"))


def _unescaped(token: _Token) -> bytes:
    def replace(found: re.Match[str]) -> str:
        octal, hexadecimal, short, long, letter = found.groups()
        if octal or hexadecimal:
            return _raw(int(octal, 8) if octal else int(hexadecimal, 16), token.line)
        if letter:
            return chr(_ESCAPED.get(letter, ord(letter)))
        return _character(short or long, token.line)

    text = _ESCAPE.sub(replace, token.text[1:-1])
    return text.encode("utf-8", "surrogateescape")


def _raw(byte: int, line: int) -> str:
    if byte > 0xFF:
        raise FormatError(f"line {line}: \\{byte:o} is no byte")
    return bytes([byte]).decode("ascii", "surrogateescape")


def _character(digits: str, line: int) -> str:
    try:
        chr(int(digits, 16)).encode()
    except (ValueError, OverflowError):
        raise FormatError(f"line {line}: \\u{digits} is no character") from None
    return chr(int(digits, 16))
