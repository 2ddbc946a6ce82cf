"""Words for the formats of layers: what is written is read, and what means two things is not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from luciole.ir.minifloat import EXPONENTS, MANTISSAS
from luciole.lquantizer.assignment.layer_format import (
    SHORT,
    Float,
    Integers,
    LayerFormat,
    Levels,
    Minifloat,
    StoredLevels,
    levels_format,
    option_format,
    parse,
    scheme_format,
)
from luciole.lquantizer.errors import QuantizeError

WIDTHS = range(2, 17)
WORDS: dict[str, LayerFormat] = {
    "levels:w2a4": Levels(2, 4),
    "levels:w3": Levels(3, None),
    "even:w4a4": Levels(4, 4, even=True),
    "even:w2": Levels(2, None, even=True),
    "int:w8a8": Integers(8, 8),
    "int:w4a8": Integers(4, 8),
    "int:w8a16": Integers(8, 16),
    "int:w16a16": Integers(16, 16),
    "uint:w8a8": Integers(8, 8, unsigned=True),
    "dynamic:int4": Integers(4, None),
    "weights:int4": StoredLevels(4),
    "weights:int4/32": StoredLevels(4, 32),
    "weights:uint8": StoredLevels(8, unsigned=True),
    "minifloat:4,4": Minifloat(4, 4),
    "float16": Float(16),
    "float": Float(),
}


def every_format() -> Iterator[LayerFormat]:
    for even in (False, True):
        for weights in range(1, 5):
            yield from (Levels(weights, inputs, even) for inputs in (None, *range(1, 9)))
    for unsigned in (False, True):
        for weights in WIDTHS:
            yield from (Integers(weights, inputs, unsigned) for inputs in (None, *WIDTHS))
            yield from (StoredLevels(weights, block, unsigned) for block in (None, 1, 32, 128))
    yield from (Minifloat(e, m) for e in EXPONENTS for m in MANTISSAS)
    yield from (Float(16), Float())


def test_words_of_all_formats_are_read_and_differ() -> None:
    formats = list(every_format())
    assert [parse(str(f)) for f in formats] == formats
    assert len({str(f) for f in formats}) == len(set(formats)) == 774


@pytest.mark.parametrize("word", WORDS)
def test_words_are_what_the_manual_says(word: str) -> None:
    assert parse(word) == WORDS[word]
    assert str(WORDS[word]) == word


@pytest.mark.parametrize(
    "text",
    [
        *("", "w2a4", "levels", "levels:w02a4", "levels:a4", "even:w2a", "int:w8", "int:8", "int8"),
        *("dynamic:8", "weights:int4/0", "weights:int4/", "minifloat:4", "float32", "LEVELS:w1"),
        *("float ", "float\n", " float", "int:w8a8,"),
    ],
)
def test_parse_refuses_other_texts(text: str) -> None:
    with pytest.raises(QuantizeError, match="is no format of a layer; such are levels:w2a4, even:"):
        parse(text)


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("levels:w5a4", "weight bits are 5: 1 to 4 are possible"),
        ("even:w2a9", "input bits are 9: 1 to 8 are possible"),
        ("uint:w1a8", "integers have 1 bits: 2 to 16 are possible"),
        ("weights:int32", "integers have 32 bits"),
        ("dynamic:int4/32", "weights of blocks are decoded"),
        ("minifloat:1,4", "the exponent has 1 bits, 2 to 7 are possible"),
    ],
)
def test_parse_refuses_bits_that_there_are_not(word: str, why: str) -> None:
    with pytest.raises(QuantizeError, match=why):
        parse(word)


@pytest.mark.parametrize("name", SHORT)
def test_short_names_and_words_name_the_same_scheme(name: str) -> None:
    assert scheme_format(name) == SHORT[name] == scheme_format(str(SHORT[name]))


def test_two_levels_are_always_even() -> None:
    assert parse("even:w1a1") == parse("levels:w1a1")
    assert parse("even:w1") == parse("levels:w1")
    assert parse("even:w1a2") != parse("levels:w1a2")


def test_a_pair_means_what_its_door_has() -> None:
    assert str(scheme_format("w4a8")) == "int:w4a8"
    assert str(scheme_format("w4a7")) == "even:w4a7"
    assert str(levels_format("w4a8")) == "levels:w4a8"
    assert str(levels_format(3)) == "levels:w3a3"
    assert str(levels_format("even:w2a4")) == "even:w2a4"
    assert str(option_format("w4a7")) == "levels:w4a7"
    assert str(option_format("w4a16")) == str(option_format("int16x4")) == "int:w4a16"


def test_an_option_refuses_a_pair_with_two_readings() -> None:
    with pytest.raises(
        QuantizeError, match=r"'w4a8' has two readings: say levels:w4a8 or int:w4a8"
    ):
        option_format("w4a8")


@pytest.mark.parametrize("text", ["int:w4a8", "int8", "w2", "2", "levels"])
def test_encode_bits_refuses_what_is_no_levels(text: str) -> None:
    with pytest.raises(QuantizeError, match="a number or a pair such as w2a4 is needed"):
        levels_format(text)
