"""Protobuf's text format without a schema: names, numbers, texts and nested messages.

The language: https://protobuf.dev/reference/protobuf/textformat-spec/. Extensions and ``Any``
(names in brackets) are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from luciole.schema.errors import FormatError
from luciole.schema.printable import shorten

_TOKEN = re.compile(
    r"""\s*(?:(?P<comment>\#[^\n]*)
    |(?P<text>"[^"\\\n]*"|'[^'\\\n]*')
    |(?P<quote>["'])
    |(?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[fF]?)(?![\w.]))
    |(?P<name>[A-Za-z_]\w*)
    |(?P<mark>[{}<>\[\]:;,-])
    |(?P<end>\Z))""",
    re.VERBOSE,
)
"""A token and the blanks before it; a text with escapes is only its opening ``quote``."""
_PLAIN = re.compile(r"""\s*("[^"\\\n]*"|'[^'\\\n]*')""")
_BLANKS = re.compile(r"\s*")
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([^uUxX\n]))"
)
_PIECES = {q: re.compile(rf"(?:[^{q}\\\n]|{_ESCAPE.pattern}){{1,4096}}") for q in "\"'"}
"""Some of a text with escapes: the expression's memory grows with what it matches at once."""
_ESCAPED = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_DEEPEST = 32
_LONGEST_NUMBER = 1000
"""Characters: exact decimals of the smallest floats have some 770, and Python reads no integers of
many thousands.
"""
_SHOWN = 20
"""Characters shown of text that cannot be read."""


class Word(str):
    """A name that stands for a value: an enum member, true, inf, ..."""

    __slots__ = ()


Scalar = str | int | float | Word
"""A text, a number or a Word. Bytes of a text that are no UTF-8 are surrogates, as in names."""


@dataclass(slots=True)
class Entry:
    """One field of a message, once for each value of a repeated one, and its line in the text."""

    name: str
    value: Scalar | Message
    line: int


@dataclass(slots=True)
class Message:
    """The fields of a message in the order of the text."""

    line: int = 0
    entries: list[Entry] = field(default_factory=list)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def add(self, name: str, *values: Scalar | Message) -> None:
        """Append a field, once for each value."""
        self.entries += [Entry(name, value, 0) for value in values]


def parse(text: str) -> Message:
    """Read the message that a text holds. Raises FormatError with the line where it is none."""
    return Message(1, list(entries(text)))


def entries(text: str) -> Iterator[Entry]:
    """Read the fields of the outermost message one by one, so that a reader need not keep them.

    Raises FormatError with the line where the text is no message.
    """
    reader = _Reader(text)
    while reader.kind != "end":
        yield from reader.field("a field's name")


class _Reader:
    """One pass over the text; ``kind``, ``token`` and ``line`` are of the token that comes next."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.line = 1
        self.depth = 0
        self._place = 0
        self._words: dict[str, Word] = {}
        """Words and fields' names, of which there are few different ones."""
        self.advance()

    def advance(self) -> None:
        """Go on to the next token."""
        self.kind = "comment"
        while self.kind == "comment":
            match = _TOKEN.match(self.text, self._place)
            if match is None or match.lastgroup is None:
                raise self.unreadable(self._place)
            self.kind, self.token = match.lastgroup, match[match.lastgroup]
            self.line += self.text.count("\n", self._place, match.start(self.kind))
            self._place = match.end()

    def unreadable(self, place: int) -> FormatError:
        """Refuse the text at a place, or behind blanks there, which is no token."""
        blanks = _BLANKS.match(self.text, place)
        start = place if blanks is None else blanks.end()
        line = self.line + self.text.count("\n", place, start)
        return FormatError(f"line {line}: cannot read {self.text[start : start + _SHOWN]!r}")

    def take(self) -> str:
        """Take the next token."""
        token = self.token
        self.advance()
        return token

    def skip(self, *marks: str) -> bool:
        """Take one of these marks if it comes next, and return whether it did."""
        is_mark = self.kind == "mark" and self.token in marks
        if is_mark:
            self.advance()
        return is_mark

    def wrong(self, expected: str) -> FormatError:
        """Refuse the token that comes next."""
        shown = repr(self.token) if self.token else "the end of the text"
        return FormatError(f"line {self.line}: expected {expected}, found {shorten(shown)}")

    def message(self, closing: str, line: int) -> Message:
        """Read fields up to a closing brace."""
        message = Message(line)
        while not self.skip(closing):
            message.entries += self.field(f"a field's name or {closing!r}")
        return message

    def field(self, expected: str) -> Iterator[Entry]:
        """Read a field's values. Raises FormatError, saying what is expected, where none begins."""
        if self.kind != "name":
            raise self.wrong(expected)
        line = self.line
        name = self._word(self.take())
        for value in self._values(self.skip(":")):
            yield Entry(name, value, line)
        self.skip(",", ";")

    def _word(self, text: str) -> Word:
        return self._words.setdefault(text, Word(text))

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
        line = self.line
        for opening, closing in (("{", "}"), ("<", ">")):
            if self.skip(opening):
                return self._nested(closing, line)
        if not colon:
            raise self.wrong("':' or '{'")
        if self.kind in ("text", "quote"):
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
        """Join texts that follow each other."""
        joined = bytearray()
        while self.kind in ("text", "quote"):
            if self.kind == "quote":
                self._read_escaped(joined)
            else:
                self._read_plain(joined)
            self.advance()
        return joined.decode("utf-8", "surrogateescape")

    def _read_plain(self, joined: bytearray) -> None:
        """Append a text without escapes, and texts that follow it."""
        joined += self.token[1:-1].encode("utf-8", "surrogateescape")
        start = self._place
        while match := _PLAIN.match(self.text, self._place):
            joined += match[1][1:-1].encode("utf-8", "surrogateescape")
            self._place = match.end()
        self.line += self.text.count("\n", start, self._place)

    def _read_escaped(self, joined: bytearray) -> None:
        """Append a text whose opening quote was passed, and pass the closing one."""
        start = self._place - 1
        while match := _PIECES[self.token].match(self.text, self._place):
            plain = _ESCAPE.sub(self._unescaped, match[0])
            joined += plain.encode("utf-8", "surrogateescape")
            self._place = match.end()
        if not self.text.startswith(self.token, self._place):
            escape = self.text.startswith("\\", self._place)
            raise self.unreadable(self._place if escape else start)
        self._place += 1

    def _unescaped(self, match: re.Match[str]) -> str:
        octal, hexadecimal, short, long, letter = match.groups()
        if octal or hexadecimal:
            return self._raw(int(octal, 8) if octal else int(hexadecimal, 16))
        if letter:
            return chr(_ESCAPED.get(letter, ord(letter)))
        return self._character(short or long)

    def _raw(self, byte: int) -> str:
        if byte > 0xFF:
            raise FormatError(f"line {self.line}: \\{byte:o} is no byte")
        return bytes([byte]).decode("ascii", "surrogateescape")

    def _character(self, digits: str) -> str:
        try:
            chr(int(digits, 16)).encode()
        except (ValueError, OverflowError):
            raise FormatError(f"line {self.line}: \\u{digits} is no character") from None
        return chr(int(digits, 16))

    def _number(self) -> Scalar:
        minus = self.skip("-")
        if self.kind == "name":
            word = self.take()
            return self._word(f"-{word}" if minus else word)
        if self.kind != "number":
            raise self.wrong("a value")
        if len(self.token) > _LONGEST_NUMBER:
            raise FormatError(f"line {self.line}: a number has {len(self.token)} characters")
        number = _number(self.take())
        return -number if minus else number


def _number(text: str) -> int | float:
    if text[:2] in ("0x", "0X"):
        return int(text, 16)
    if text.isdigit():
        return int(text, 8 if text.startswith("0") and not set(text) & set("89") else 10)
    return float(text.rstrip("fF"))
