"""``python -m tests.wording``: names and sentences that the house's style forbids, room by room.

What there was when the rule came is counted in ``tests/wording.json``; the counts may only fall.
``--update`` writes them after they fell, ``--room NAME`` prints the places of one room.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

from tests.changes import changed
from tests.house import files_of, names
from tests.imports import ROOT, nodes

TABLE = Path(__file__).with_name("wording.json")
RIDDLES = {"found", "given", "wanted", "many", "more", "way", "how"}
"""Names of locals and parameters that do not say what is in them."""
PRONOUN = re.compile(r"(Say|Tell|Let|Those|Such|Do so)\b|[A-Z]\w+ (what|those|such|so|so many)\b")
"""Beginnings of sentences whose verb is not one of code, or whose object is no noun."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@lru_cache(maxsize=1)
def inside(function: Function) -> tuple[ast.AST, ...]:
    """List all nodes of a function, which several look for."""
    return tuple(ast.walk(function))


def riddles(function: Function) -> Iterator[tuple[int, str]]:
    """Find locals and parameters that are named by a riddle."""
    for node in inside(function):
        if isinstance(node, ast.arg) and node.arg in RIDDLES:
            yield node.lineno, f"the name {node.arg}"
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in RIDDLES:
            yield node.lineno, f"the name {node.id}"


def splats(function: Function) -> Iterator[tuple[int, str]]:
    """Find calls that are given a local tuple's elements, of which nothing says what they are."""
    made = [node for node in inside(function) if isinstance(node, ast.Assign)]
    tuples = {ast.unparse(node.targets[0]) for node in made if isinstance(node.value, ast.Tuple)}
    for call in inside(function):
        for part in call.args if isinstance(call, ast.Call) else ():
            if isinstance(part, ast.Starred) and ast.unparse(part.value) in tuples:
                yield part.lineno, f"the splat {ast.unparse(part)}"


def sentences(function: Function) -> Iterator[tuple[int, str]]:
    """Find a docstring that begins as none should."""
    text = ast.get_docstring(function) or ""
    if PRONOUN.match(text):
        yield function.body[0].lineno, f"the sentence {text.splitlines()[0]!r}"


@cache
def places(room: str) -> tuple[str, ...]:
    """List what is wrong in a room, with files and lines, each place once."""
    wrong: dict[tuple[Path, int, str], None] = {}
    for path in files_of(room):
        for node in nodes(path):
            if isinstance(node, Function):
                for find in (riddles, splats, sentences):
                    wrong.update(dict.fromkeys((path, *place) for place in find(node)))
    return tuple(f"{path.relative_to(ROOT.parent)}:{line}: {what}" for path, line, what in wrong)


def table() -> dict[str, int]:
    """Read how many places each room may have."""
    counts: dict[str, int] = json.loads(TABLE.read_text())
    return counts


def newest(room: str) -> list[str]:
    """List the places of a room in files that git says changed; all of them where none did."""
    files = changed()
    return [p for p in places(room) if p.partition(":")[0] in files] or list(places(room))


def main(argv: Sequence[str] | None = None) -> int:
    """Print the counts, or the places of a room."""
    parser = argparse.ArgumentParser(prog="python -m tests.wording", description=__doc__)
    parser.add_argument("--room", choices=names(), help="print the places of a room")
    parser.add_argument("--update", action="store_true", help=f"write {TABLE.name}")
    arguments = parser.parse_args(argv)
    if arguments.room:
        print("\n".join(places(arguments.room)))
        return 0
    counts = {room: len(places(room)) for room in names()}
    if arguments.update:
        TABLE.write_text(json.dumps(counts, indent=2) + "\n")
    print("\n".join(f"{count:5} {room}" for room, count in counts.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
