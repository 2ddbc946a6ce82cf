"""The rooms of the house, drawn and listed from the code's own imports."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from docs.generate.graph import Arrows, reduced, svg
from tests.imports import FACADE, ROOT, all_imports, circles, folder_imports, room_of

FACE = "luciole"
"""What the facade's modules are called together: it is what people import."""

DOOR = "luciole.__main__"
"""Starts the programs, so it imports from above its room: drawn, it would close a circle."""


def picture() -> str:
    """Draw every room above the rooms that it imports from."""
    lines = {room: (room, _size(_files(room))) for room in _rooms()}
    return _figure(
        svg(lines, reduced(_arrows()), "Each room above the rooms that it imports from"),
        "An arrow is left out where a way over other rooms stands for it.",
    )


def folders() -> str:
    """Draw the folders of each room in which at least two lie above another one."""
    drawn = (_inside(room) for room in _rooms() if room != FACE)
    return "\n\n".join(figure for figure in drawn if figure)


def _inside(room: str) -> str:
    """Draw a room's folders. Those that import each other in a round share a box."""
    arrows = _folders(room)
    knots = circles(arrows)
    names = {name: _box_of(name, knots) for name in arrows}
    boxes = {box: tuple(n for n in arrows if names[n] == box) for box in names.values()}
    if len(boxes) < 3:
        return ""
    between = {
        box: {names[t] for name in inner for t in arrows[name]} - {box}
        for box, inner in boxes.items()
    }
    lines = {box: (*inner, _size(_in_folders(inner))) for box, inner in boxes.items()}
    drawing = svg(lines, reduced(between), f"Each folder of {room} above what it imports from")
    together = " Those in one box import each other." if len(boxes) < len(arrows) else ""
    return _figure(drawing, f"The folders of {room}.{together}")


def table() -> str:
    """List rooms from the bottom up: what each is for and what it imports from."""
    rows = ["| room | what it is for | imports from |", "|---|---|---|"]
    for room in sorted(_rooms(), key=lambda r: (len(_arrows()[r]), r)):
        targets = ", ".join(f"`{t}`" for t in sorted(_arrows()[room])) or "no other room"
        rows.append(f"| `{room}` | {_purpose(room)} | {targets} |")
    return "\n".join(rows)


def _figure(drawing: str, caption: str) -> str:
    return f"<figure>\n{drawing}\n<figcaption>{caption}</figcaption>\n</figure>"


@cache
def _rooms() -> list[str]:
    return sorted({_named(room_of(one.importer)) for one in all_imports()})


@cache
def _arrows() -> Arrows:
    """Rooms by the other rooms that they import from."""
    found: dict[str, set[str]] = {room: set() for room in _rooms()}
    for one in all_imports():
        if one.package == "luciole" and one.target != "luciole" and one.importer != DOOR:
            room, target = _named(room_of(one.importer)), _named(room_of(one.target))
            found[room] |= {target} - {room}
    return found


def _named(room: str) -> str:
    return room or FACE


def _files(room: str) -> list[Path]:
    if room == FACE:
        folder = ROOT.parent
        return [folder.joinpath(*name.split(".")).with_suffix(".py") for name in FACADE[1:]]
    return sorted((ROOT / room).rglob("*.py"))


def _in_folders(folders: Sequence[str]) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).glob("*.py"))]


def _size(files: Sequence[Path]) -> str:
    lines = sum(len(path.read_text().splitlines()) for path in files)
    return f"{len(files)} file{'s' * (len(files) != 1)}, {lines:,} lines"


def _purpose(room: str) -> str:
    """The first sentence of a room's docstring."""
    folder = ROOT if room == FACE else ROOT / room
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    return " ".join(text.partition("\n\n")[0].split())


def _folders(room: str) -> dict[str, set[str]]:
    """A room's folders by those of them that they import from; packages' faces left out."""
    imports = folder_imports()
    folders = {
        path.parent.relative_to(ROOT).as_posix()
        for path in (ROOT / room).rglob("*.py")
        if path.name != "__init__.py"
    }
    return {name: imports.get(name, set()) & folders for name in sorted(folders)}


def _box_of(name: str, knots: Sequence[set[str]]) -> str:
    return next((min(knot) for knot in knots if name in knot), name)
