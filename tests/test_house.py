"""Hold every room to the aims that its figures have: ``python -m tests.house`` prints them."""

from __future__ import annotations

import ast

import pytest

from tests.house import Room, _holds_any, crowded, rooms

ROOMS = rooms()[:-1]
LARGE = {"ir/ops", "kernels"}
"""Folders with a file for each operator."""


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_functions_are_short_and_flat(room: Room) -> None:
    assert room.median <= 7
    assert room.ninetieth <= 17
    assert room.longest <= 45
    assert room.nesting <= (4 if room.name == "kernels" else 3)


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_types_say_what_things_are(room: Room) -> None:
    assert room.any_share < (0.05 if room.name == "kernels" else 0.02)


def test_folders_hold_no_more_files_than_a_reader_keeps_apart() -> None:
    assert crowded(40).keys() == LARGE


@pytest.mark.parametrize(
    ("annotation", "loose"),
    [("Any", True), ("dict[str, Any] | Any", True), ("dict[str, Any]", False), ("int", False)],
)
def test_any_is_seen_in_unions_and_not_inside_of_containers(annotation: str, loose: bool) -> None:
    assert _holds_any(ast.parse(annotation, mode="eval").body) == loose
