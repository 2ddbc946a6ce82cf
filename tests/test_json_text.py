"""JSON that others wrote: what is read, and what is refused with a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from luciole.files.json_reading import DEEPEST, parse_json, read_json
from luciole.schema.errors import FormatError


@pytest.mark.parametrize(
    "content",
    [{"a": [1, -2.5, None, True, "x", {}]}, [], 7, "text", None, 10**308, [float("inf")]],
)
def test_json_is_read(content: object) -> None:
    assert parse_json(json.dumps(content)) == content
    assert parse_json(json.dumps(content).encode()) == content


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_json_is_read_as_deep_as_it_may_be(opening: str, closing: str) -> None:
    content: Any = parse_json(opening * DEEPEST + "1" + closing * DEEPEST)
    for _ in range(DEEPEST):
        content = content["a"] if isinstance(content, dict) else content[0]
    assert content == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[" * 101 + "1" + "]" * 101, "lists or objects are nested more than 100 deep"),
        ('{"a":' * 101 + "1" + "}" * 101, "lists or objects are nested more than 100 deep"),
        ("[" * 100_000, "lists or objects are nested more than 100 deep"),
        (f"[{10**309}]", "a number has 310 digits"),
        ("[" + "1" * 5000 + "]", "digits"),
        ("{", "Expecting property name"),
    ],
)
def test_json_refuses_what_nobody_can_use(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse_json(text)


@pytest.mark.parametrize("what", ["", "config "])
def test_reading_json_refuses_what_is_none_and_what_is_missing(tmp_path: Path, what: str) -> None:
    path = tmp_path / "x.json"
    with pytest.raises(FormatError, match=f"^{what}/.*/x.json: No such file"):
        read_json(path, FormatError, what.strip())
    path.write_text("{")
    with pytest.raises(FormatError, match=f"^{what}/.*/x.json: not JSON: Expecting"):
        read_json(path, FormatError, what.strip())
    path.write_text('{"a": [1]}')
    assert read_json(path) == {"a": [1]}
    path.write_text('{"a": [1]}', "utf-8-sig")  # as editors of Windows write it
    assert read_json(path) == {"a": [1]}
