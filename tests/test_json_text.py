"""JSON that others wrote: what is read, and what is refused with a sentence."""

from __future__ import annotations

import json

import pytest

from luciole.ir.text.json_reading import DEEPEST, parse_json


@pytest.mark.parametrize(
    "content",
    [{"a": [1, -2.5, None, True, "x", {}]}, [], 7, "text", None, 10**308, [float("inf")]],
)
def test_json_is_read(content: object) -> None:
    assert parse_json(json.dumps(content)) == content
    assert parse_json(json.dumps(content).encode()) == content


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_json_is_read_as_deep_as_it_may_be(opening: str, closing: str) -> None:
    content = parse_json(opening * DEEPEST + "1" + closing * DEEPEST)
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
