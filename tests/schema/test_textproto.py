"""Protobuf's text format, with Google's own parser as the oracle."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from luciole.schema.errors import FormatError
from luciole.schema.textproto import Entry, Message, Word, entries, parse
from luciole.schema.textproto_writer import write_text
from tests.proto_support import message_class
from tests.schema.recipes import plain, recipes


def oracle(message: Any) -> dict[str, list[Any]]:
    """The same from Google's message: enum members by name, bools as words."""
    found: dict[str, list[Any]] = {}
    for field, value in message.ListFields():
        values = value if field.is_repeated else [value]
        found[field.name] = [_value(field, v) for v in values]
    return found


def _value(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return oracle(value)
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    return str(value).lower() if isinstance(value, bool) else value


def same(ours: Any, theirs: Any) -> bool:
    """Equal, but numbers up to float32, which Google stores."""
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(same(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, int | float) and not isinstance(theirs, str):
        return bool(ours == pytest.approx(theirs, rel=1e-6))
    return str(ours) == str(theirs)


@pytest.mark.parametrize(("folder", "package"), [("tflite", "tflchef"), ("circle", "circlechef")])
def test_every_recipe_of_one_is_read_as_google_reads_it(folder: str, package: str) -> None:
    cls = message_class(package)
    from google.protobuf import text_format

    files = recipes(folder)
    assert len(files) == {"tflite": 284, "circle": 6}[folder]
    for path in files:
        text = path.read_text()
        theirs = oracle(text_format.Parse(text, cls()))
        ours = plain(parse(text))
        if path.parent.name.startswith("Sub_"):  # two of them give an enum member as a number
            del ours["operation"], theirs["operation"]
        assert same(ours, theirs), path


TRICKY = r"""
# a comment
name: "tab\t quote\" octal\101\0 hex\x42 \303\251 \u00e9 \U0001F600" ' and ' "more"
input: ["a", 'b'] output: [];
version: 0x1; graph { name: 'x', input: "y" } operand: < name: "z" shape { dim: 017 dim: [1, 2] }
  quant { min: -1.5e3f max: .5 scale: 2. zero_point: -3 max: -inf scale: nan } >
"""


def test_the_corners_of_the_language_are_read_as_google_reads_them() -> None:
    cls = message_class("tflchef")
    from google.protobuf import text_format

    theirs, ours = oracle(text_format.Parse(TRICKY, cls())), plain(parse(TRICKY))
    quant = [x["operand"][0]["quant"][0] for x in (ours, theirs)]
    assert [str(x) for x in quant[0].pop("scale")] == [str(x) for x in quant[1].pop("scale")]
    assert quant[0].pop("max") == [0.5, "-inf"]
    assert quant[1].pop("max") == [0.5, float("-inf")]
    assert same(ours, theirs)
    assert ours["name"] == ['tab\t quote" octalA\0 hexB é é 😀 and more']
    assert ours["operand"][0]["shape"][0]["dim"] == [15, 1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "line 1: expected ':' or '{', found the end of the text"),
        ("a: 1\nb {\n c: 2", "line 3: expected a field's name or '}', found the end of the text"),
        ("}", "line 1: expected a field's name, found '}'"),
        ("a 1", "line 1: expected ':' or '{', found '1'"),
        ("a: }", "line 1: expected a value, found '}'"),
        ("a: [1,]", "line 1: expected a value, found ']'"),
        ("a: [1 2]", "line 1: expected ',' or ']', found '2'"),
        ("a: [1", "line 1: expected ',' or ']', found the end of the text"),
        ('a: "x', "line 1: cannot read '\"x'"),
        ("\n\na: 1x", "line 3: cannot read '1x'"),
        ("[x]: 1", "line 1: expected a field's name, found '['"),
        ('a: "\\777"', r"line 1: \777 is no byte"),
        ('a: "\\ud800"', r"line 1: \ud800 is no character"),
        ('a: "\\uzzzz"', r"line 1: cannot read '\\uzzzz"),
        ('a: "\\x"', r"line 1: cannot read '\\x"),
        ("a:\n\n 1x", "line 3: cannot read '1x'"),
        ("a {" * 40, "line 1: messages are nested more than 32 deep"),
        ("a: -", "line 1: expected a value"),
        ("1: 2", "line 1: expected a field's name, found '1'"),
        (f"\na: {'1' * 1001}", "line 2: a number has 1001 characters"),
        (f"a: 0x{'f' * 5000}", "line 1: a number has 5002 characters"),
        (f"a: 0.{'1' * 1000}", "line 1: a number has 1002 characters"),
        (f"a: {'1' * 500_000}x", "line 1: cannot read '11111111111111111111'"),
    ],
)
def test_textproto_refuses_what_is_not_the_language(text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert str(caught.value).startswith(message)


def test_texts_that_follow_each_other_are_one_however_many_there_are() -> None:
    assert plain(parse("a: " + "'xy' " * 100_000)) == {"a": ["xy" * 100_000]}


def test_long_texts_with_escapes_are_read_in_pieces_that_split_none() -> None:
    for first in range(12):
        text = 'a: "' + "x" * first + r"\x41\102\u00e9\n" * 4000 + '" b: 1'
        wanted = "x" * first + "ABé\n" * 4000
        assert plain(parse(text)) == {"a": [wanted], "b": [1]}


@pytest.mark.parametrize(
    "text",
    [
        "a: " + '""' * 100_000,
        "a: " + '"x" \n' * 50_000,
        'a: "' + r"\n" * 300_000 + '"',
        'a: "' + "x" * 200_000 + '"',
        "a: 1" + " \n" * 100_000,
        "a: 1 " + "# comment\n" * 20_000,
    ],
    ids=["quotes", "texts", "escapes", "one text", "blanks", "comments"],
)
def test_what_is_held_is_the_message_not_its_tokens(text: str) -> None:
    tracemalloc.start()
    try:
        parse(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(text)


def test_fields_come_one_by_one() -> None:
    found = entries('a: 1 b { c: "x" } d')
    assert [next(found).name, next(found).name] == ["a", "b"]
    with pytest.raises(FormatError, match=r"expected ':' or '\{'"):
        next(found)


def test_what_is_written_is_read_again() -> None:
    inner, outer = Message(), Message()
    inner.add("dim", *range(60))
    outer.add("name", 'quote" \\ \n\t é \udcff \u2028')
    outer.add("number", 1, -2.5, Word("-inf"), Word("RELU6"))
    outer.add("shape", inner)
    outer.add("empty", Message())
    text = write_text(outer)
    assert plain(parse(text)) == plain(outer)
    assert max(map(len, text.splitlines())) <= 100
    assert text.isprintable() is False
    assert "\u2028" not in text


def test_short_messages_stand_on_a_line() -> None:
    shape, operand, recipe = Message(), Message(), Message()
    shape.add("dim", 1, 3)
    operand.add("name", "x")
    operand.add("shape", shape)
    recipe.add("operand", operand)
    recipe.add("input", "x", "y")
    assert write_text(recipe) == (
        'operand {\n  name: "x"\n  shape { dim: 1 dim: 3 }\n}\ninput: "x" input: "y"\n'
    )


def test_entries_know_their_line() -> None:
    message = parse('a: 1\n# comment\nb {\n  c: "x"\n}')
    assert [e.line for e in message] == [1, 3]
    inner = message.entries[1].value
    assert isinstance(inner, Message)
    assert inner.entries == [Entry("c", "x", 4)]
