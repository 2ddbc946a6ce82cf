"""Hold every function to its limits, and every room to those of its types and circles;
``python -m tests.house`` prints the figures.
"""

from __future__ import annotations

import ast

import pytest

from tests import wording
from tests.house import _holds_any, crowded, files_of, functions_of, names, rooms

LONGEST, DEEPEST = 45, 3
"""Lines of a function without its docstring, and blocks in each other."""
LARGE = {"ir/ops", "kernels"}
"""Folders with a file for each operator."""


@pytest.mark.parametrize("name", names())
def test_functions_are_short_and_flat(name: str) -> None:
    deepest = DEEPEST + (name == "kernels")
    functions = [function for path in files_of(name) for function in functions_of(path)]
    assert [f"{f.place}: {f.lines} lines" for f in functions if f.lines > LONGEST] == []
    assert [f"{f.place}: {f.nesting} deep" for f in functions if f.nesting > deepest] == []


@pytest.mark.parametrize("name", names())
def test_names_and_sentences_say_what_they_mean(name: str) -> None:
    """``python -m tests.wording --update`` writes the counts after they fell."""
    most = wording.table().get(name, 0)
    assert len(wording.places(name)) <= most, "\n".join(wording.newest(name))


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("def f(given): ...", ["the name given"]),
        ("def f(x):\n  for way in x: way()", ["the name way"]),
        ("def f(x):\n  size = (x, 1)\n  g(x, *size)", ["the splat *size"]),
        ("def f(x, *rest): g(*x, *rest)", []),
        ("def f():\n  'Tell whether it ends.'", ["the sentence 'Tell whether it ends.'"]),
        ("def f():\n  'Return what ends.\\n\\nMore.'", ["the sentence 'Return what ends.'"]),
        ("def f():\n  'Return the number that ends what those began.'", []),
    ],
)
def test_riddles_are_seen(source: str, wrong: list[str]) -> None:
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    finders = (wording.riddles, wording.splats, wording.sentences)
    assert [what for find in finders for _, what in find(function)] == wrong


def test_types_say_what_things_are() -> None:
    most = {room.name: 0.05 if room.name == "kernels" else 0.02 for room in rooms()}
    assert {
        room.name: room.any_share for room in rooms() if room.any_share >= most[room.name]
    } == {}


def test_folders_hold_no_more_files_than_a_reader_keeps_apart() -> None:
    assert crowded(40).keys() == LARGE


@pytest.mark.parametrize(
    ("annotation", "loose"),
    [("Any", True), ("dict[str, Any] | Any", True), ("dict[str, Any]", False), ("int", False)],
)
def test_any_is_seen_in_unions_and_not_inside_of_containers(annotation: str, loose: bool) -> None:
    assert _holds_any(ast.parse(annotation, mode="eval").body) == loose
