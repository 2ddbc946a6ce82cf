"""The C functions of ``luciole/kernels/c``, and those printed from formulas, piece by piece: a
program holds those it uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from luciole.ir import LucioleError
from luciole.kernels.portable import grids, plain, printed

_NAME = re.compile(r"\b(?:struct )?(?:luc|LUC)_\w+")
_FIELD = re.compile(
    r"^\s*(?:const )?(?P<type>(?:struct )?\w+) (?P<pointer>\*?)(?P<name>\w+);", re.M
)
_DEFINED = (
    re.compile(r"^#define (LUC_\w+)", re.M),
    re.compile(r"^(struct luc_\w+) \{", re.M),
    re.compile(r"^static .*?\b(luc_\w+)(?:\(|\[|;| =)", re.M | re.S),
    re.compile(r"^typedef \w+ (luc_\w+)", re.M),
)
_WIDTH = re.compile(
    r"^#if LUC_WORDS > 1\n(?P<wide>.*?)(?:^#else\n(?P<narrow>.*?))?^#endif\n?", re.M | re.S
)
"""Pattern of the parts of a header that differ where words lie side by side."""

_WORDS = re.compile(r"^#ifndef LUC_WORDS\n#define LUC_WORDS 1\n#endif$", re.M)

KINDS_FILE = "codes.h"
"""The header that says the types of kinds."""

LIKE = {
    "uint8": "int8",
    "int16": "int8",
    "int16_long": "int16",
    "int16_by_int8": "int16_long",
    "int16_bias_int32": "int16",
}
"""Kinds of quantization, and the kind whose text one has where it has none of its own."""

_KIND_TYPE = re.compile(r"\bluc_(?:code|right|weight|sum|bias)_\w+")


@dataclass(frozen=True, eq=False)
class Piece:
    """A function, a struct, a macro or constants, with the comment above: what it defines, and all
    names of ours in it. Those of structs begin with ``struct``, as functions may be called alike.
    ``source`` is where it comes from, below ``luciole/kernels``; ``template`` is the text in which
    types of kinds have their names, see ``c/codes.h``.
    """

    text: str
    defines: frozenset[str]
    uses: frozenset[str]
    source: str
    template: str


@dataclass(frozen=True)
class StructField:
    """A field of a struct: its C type, and whether it is a table."""

    name: str
    ctype: str
    is_table: bool

    @property
    def struct(self) -> str | None:
        """The name of the struct that it is, if it is one."""
        return self.ctype.removeprefix("struct ") if self.ctype.startswith("struct ") else None


def pieces(words: int = 1) -> Mapping[str, Piece]:
    """Read every header: pieces by each name that they define, in their form for ``words`` words
    side by side.
    """
    return _pieces(words)


@cache
def _pieces(words: int) -> dict[str, Piece]:
    by_name: dict[str, Piece] = {}
    for header, text in _headers():
        for piece in _split(_for_words(text, words), header):
            twice = sorted(piece.defines & by_name.keys())
            if twice:
                raise LucioleError(f"{header} defines {twice[0]} once more")
            by_name.update(dict.fromkeys(piece.defines, piece))
    return by_name


def _headers() -> Iterator[tuple[str, str]]:
    """Yield the headers' names and contents, in the order of their names."""
    folder = files("luciole.kernels").joinpath("c")
    for path in sorted(folder.iterdir(), key=lambda p: p.name):
        if path.name.endswith(".h") and path.name != KINDS_FILE:
            yield f"c/{path.name}", path.read_text(encoding="utf-8")


def _for_words(text: str, words: int) -> str:
    """Choose between the text for ``LUC_WORDS > 1`` and that for one word."""
    kind = "wide" if words > 1 else "narrow"
    return _WORDS.sub(f"#define LUC_WORDS {words}", _WIDTH.sub(lambda m: m[kind] or "", text))


def _split(text: str, header: str) -> Iterator[Piece]:
    """Split a header at its empty lines: pieces have none inside."""
    for block in re.split(r"\n\n+", text):
        if re.match(r"(#ifndef|#include|#endif|/\*)", block) and not _defined(block):
            continue
        yield _piece(block, header)


def _piece(block: str, source: str) -> Piece:
    """Make a piece of a text, with types of kinds as C's own."""
    text = _KIND_TYPE.sub(lambda name: _kind_types().get(name[0], name[0]), block)
    return Piece(text, frozenset(_defined(text)), frozenset(_names(text)), source, block)


@cache
def _kind_types() -> dict[str, str]:
    """Read the types of kinds by their names."""
    text = files("luciole.kernels").joinpath("c", KINDS_FILE).read_text(encoding="utf-8")
    return {name: ctype for ctype, name in re.findall(r"^typedef (\w+) (luc_\w+);", text, re.M)}


@cache
def _of_kind(name: str, words: int) -> Piece | None:
    """Return the piece of a name that ends with a kind: that of the kind which it is like, with
    the kind's name in place of the other's.
    """
    kind = next((kind for kind in LIKE if name.endswith(f"_{kind}")), None)
    if kind is None:
        return None
    like, stem = kind, name.removesuffix(kind)
    while like in LIKE:
        like = LIKE[like]
        piece = pieces(words).get(stem + like) or _printed(stem + like)
        if piece is not None:
            return _piece(re.sub(rf"_{like}\b", f"_{kind}", piece.template), piece.source)
    return None


_PRINTERS = (
    ("formulas", printed),
    ("portable/grids.py", grids),
    ("portable/plain.py", plain),
)
"""What prints functions by their names, and the source that programs name."""


@cache
def _printed(name: str) -> Piece | None:
    """Return the piece of a name that is printed: from a formula, or for an element type."""
    for source, printer in _PRINTERS:
        if (text := printer.text_of(name)) is not None:
            return _piece(text, source)
    return None


def _defined(block: str) -> set[str]:
    guard = re.search(r"^#ifndef (LUC_\w+_H)", block, re.M)
    if guard:
        return set()
    names = {name for pattern in _DEFINED for name in pattern.findall(block)}
    constants = re.search(r"^enum \{(.*)\};", block, re.M | re.S)
    return names | (set(re.findall(r"\b(LUC_\w+)\b", constants[1])) if constants else set())


def _names(block: str) -> set[str]:
    code = re.sub(r"/\*.*?\*/", "", block, flags=re.S)
    return set(_NAME.findall(code))


def needed(functions: Iterable[str], words: int = 1) -> list[Piece]:
    """List the pieces that functions are made of, each behind the pieces that it uses."""
    order: dict[Piece, None] = {}
    for function in functions:
        _visit(function, words, order, ())
    return list(order)


def _find(name: str, words: int = 1) -> Piece | None:
    return pieces(words).get(name) or _printed(name) or _of_kind(name, words)


def _visit(name: str, words: int, order: dict[Piece, None], path: tuple[str, ...]) -> None:
    piece = _find(name, words)
    if piece is None:
        raise LucioleError(f"there is no C function {name} (behind {' > '.join(path) or 'a call'})")
    if piece in order or name in path:
        return
    for used in sorted(piece.uses - piece.defines):
        _visit(used, words, order, (*path, name))
    order[piece] = None


@cache
def struct_fields(function: str) -> tuple[StructField, ...]:
    """Read the fields of the struct that a function is called with, in order."""
    body = re.search(rf"^struct {function} \{{\n(.*?)^\}};", _struct(function), re.M | re.S)
    assert body is not None  # it is how the piece was found
    fields = _FIELD.finditer(body[1])
    return tuple(StructField(f["name"], f["type"], bool(f["pointer"])) for f in fields)


def _struct(function: str) -> str:
    piece = _find(f"struct {function}")
    if piece is None:
        raise LucioleError(f"there is no struct {function}")
    return piece.text
