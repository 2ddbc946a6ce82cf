"""``python -m tests.house``: how each room is built, in figures, and which folders form circles."""

from __future__ import annotations

import argparse
import ast
import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from tests.imports import ROOT, circles, folder_imports, nodes

GENERATED = {ROOT / "schema" / "enums.py", ROOT / "schema" / "tables.py"}
"""Tables that a command derives from the schema: nobody reads them as code."""

BLOCKS = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.Match)

COLUMNS = ["room", "files", "lines", "functions", "median", "90%", "longest"]
COLUMNS += ["nesting", "Any%", "circles"]


@dataclass(frozen=True)
class Function:
    """One function: lines without its docstring and decorators, deepest nesting of blocks, and how
    many of its annotations there are and hold ``Any``.
    """

    place: str
    lines: int
    nesting: int
    annotations: int
    loose: int


@dataclass(frozen=True)
class Room:
    """The figures of one folder below ``luciole``."""

    name: str
    files: int
    lines: int
    functions: int
    median: float
    ninetieth: float
    longest: int
    nesting: int
    any_share: float
    circles: int

    def row(self) -> list[str]:
        """The figures as the table prints them."""
        numbers = [self.files, self.lines, self.functions, f"{self.median:g}", self.ninetieth]
        rest = [self.longest, self.nesting, f"{100 * self.any_share:.1f}", self.circles]
        return [self.name, *(str(n) for n in numbers + rest)]


@cache
def functions_of(path: Path) -> tuple[Function, ...]:
    """The functions of a file, also those inside of others."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return tuple(_function(path, node) for node in nodes(path) if isinstance(node, kinds))


def _function(path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    kinds = [a for a in _annotations(node) if a is not None]
    loose = sum(_holds_any(kind) for kind in kinds)
    place = f"{path.relative_to(ROOT.parent)}:{node.lineno} {node.name}"
    return Function(place, _length(node), _nesting(node), len(kinds), loose)


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from ``def`` to the end, the docstring's left out."""
    whole = (node.end_lineno or node.lineno) - node.lineno + 1
    if ast.get_docstring(node) is None:
        return whole
    text = node.body[0]
    return whole - ((text.end_lineno or text.lineno) - text.lineno + 1)


def _nesting(node: ast.AST) -> int:
    """How many blocks lie in each other at most; functions inside are counted on their own."""
    deepest = 0
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            continue  # no expression holds a block
        inside = _nesting(child)
        is_elif = isinstance(node, ast.If) and node.orelse == [child]
        deepest = max(deepest, inside + (isinstance(child, BLOCKS) and not is_elif))
    return deepest


def _annotations(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.expr | None]:
    given = node.args
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return [p.annotation for p in parameters if p is not None] + [node.returns]


def _holds_any(kind: ast.expr) -> bool:
    """Whether a parameter or result may be ``Any`` itself; ``dict[str, Any]`` says what it is."""
    if isinstance(kind, ast.BinOp):
        return _holds_any(kind.left) or _holds_any(kind.right)
    return isinstance(kind, ast.Name) and kind.id == "Any"


def room(name: str, paths: Sequence[Path], in_circles: int) -> Room:
    """The figures of the files of a room."""
    functions = [f for path in paths for f in functions_of(path)]
    lengths = sorted(f.lines for f in functions) or [0]
    annotations = sum(f.annotations for f in functions)
    return Room(
        name,
        len(paths),
        sum(len(path.read_text().splitlines()) for path in paths),
        len(functions),
        statistics.median(lengths),
        lengths[int(0.9 * (len(lengths) - 1))],
        lengths[-1],
        max((f.nesting for f in functions), default=0),
        sum(f.loose for f in functions) / max(annotations, 1),
        in_circles,
    )


def rooms() -> list[Room]:
    """All rooms in the order of the alphabet, the facade's files as one, then the whole house."""
    knots = circles(folder_imports())
    found = []
    for name in names():
        inside = {f for knot in knots for f in knot if f.split("/")[0] == name}
        found.append(room(name, files_of(name), len(inside)))
    return [*found, room("all", files(), sum(map(len, knots)))]


@cache
def files() -> tuple[Path, ...]:
    """All files that people write."""
    return tuple(path for path in sorted(ROOT.rglob("*.py")) if path not in GENERATED)


def names() -> list[str]:
    """The names of all rooms, in the order of the alphabet."""
    return sorted({_room_of(path) for path in files()})


def files_of(name: str) -> list[Path]:
    """The files of a room."""
    return [path for path in files() if _room_of(path) == name]


def _room_of(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return parts[0] if len(parts) > 1 else "(facade)"


def crowded(most: int) -> dict[str, int]:
    """Folders with more than so many files, which the architecture allows for two."""
    counts = {folder: len(list(folder.glob("*.py"))) for folder in ROOT.rglob("*")}
    return {str(f.relative_to(ROOT)): n for f, n in sorted(counts.items()) if n > most}


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, the longest and the deepest functions, circles and crowded folders."""
    parser = argparse.ArgumentParser(prog="python -m tests.house", description=__doc__)
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    parser.add_argument("--worst", type=int, default=0, metavar="N", help="also the N worst places")
    given = parser.parse_args(argv)
    found = rooms()
    if given.json:
        print(json.dumps([asdict(r) for r in found], indent=1))
        return 0
    _print_table([COLUMNS, *(r.row() for r in found)])
    for knot in circles(folder_imports()):
        print("circle: " + ", ".join(sorted(knot)))
    for folder, count in crowded(40).items():
        print(f"{folder}: {count} files")
    _print_worst(given.worst)
    return 0


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        print("  ".join([first.ljust(widths[0]), *cells]))


def _print_worst(count: int) -> None:
    every = [function for path in files() for function in functions_of(path)]
    for found in sorted(every, key=lambda f: -f.lines)[:count]:
        print(f"{found.lines} lines: {found.place}")
    for found in sorted(every, key=lambda f: -f.nesting)[:count]:
        print(f"{found.nesting} deep: {found.place}")
    for found in sorted(every, key=lambda f: -f.loose)[:count]:
        print(f"{found.loose} Any: {found.place}")


if __name__ == "__main__":
    raise SystemExit(main())
