"""Configs: which layer gets how many bits, and everything that is not understood."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from luciole.ir.names import short_names
from luciole.lquantizer import Choice, Config, QuantizeError

NAMES = ["fc1", "fc2", "block/fc1", "block/fc2", "head"]


def choices(layers: Any, default: Choice | None = None, **top: Any) -> dict[str, Choice]:
    config = Config.parse({**top, "layers": layers}, default or Choice())
    return {name: config.choose(name) for name in NAMES}


def changed(found: dict[str, Choice], default: Choice | None = None) -> dict[str, Choice]:
    return {name: choice for name, choice in found.items() if choice != (default or Choice())}


def test_the_default_is_three_bits_for_everything() -> None:
    assert Config().choose("anything") == Choice(input_bits=3, weight_bits=3, skip=False)
    assert changed(choices([])) == {}
    assert Config.parse({}, Choice(2, 1)).choose("fc1") == Choice(2, 1)


@pytest.mark.parametrize(
    ("top", "wanted"),
    [
        ({"encode_bits": 2}, Choice(2, 2)),
        ({"encode_bits": "w2a4"}, Choice(4, 2)),
        ({"encode_bits": "w1a8", "input_bits": 4}, Choice(4, 1)),
        ({"input_bits": 8}, Choice(8, 3)),
        ({"weight_bits": 4}, Choice(3, 4)),
        ({"encode_bits": 1, "input_bits": 5}, Choice(5, 1)),
        ({"weight_bits": 4, "encode_bits": 1}, Choice(1, 4)),
    ],
)
def test_widths_for_all_layers(top: dict[str, Any], wanted: Choice) -> None:
    assert set(choices([], **top).values()) == {wanted}
    assert choices([{"name": "fc1", **top}])["fc1"] == wanted


@pytest.mark.parametrize(
    ("which", "matched"),
    [
        ({"name": "fc1"}, ["fc1"]),
        ({"name": "fc."}, []),
        ({"names": ["fc1", "head"]}, ["fc1", "head"]),
        ({"names": "head"}, ["head"]),
        ({"pattern": "fc*"}, ["fc1", "fc2"]),
        ({"pattern": "*fc1"}, ["fc1", "block/fc1"]),
        ({"pattern": "fc[12]"}, ["fc1", "fc2"]),
        ({"pattern": "?c1"}, ["fc1"]),
        ({"pattern": "*"}, NAMES),
        ({"regex": r".*fc\d"}, ["fc1", "fc2", "block/fc1", "block/fc2"]),
        ({"regex": "fc"}, []),
        ({"regex": "fc1|head"}, ["fc1", "head"]),
    ],
)
def test_layers_are_named_in_four_ways(which: dict[str, Any], matched: list[str]) -> None:
    found = choices([{**which, "skip": True}])
    assert [name for name, choice in found.items() if choice.skip] == matched


def test_the_last_rule_that_matches_wins_key_by_key() -> None:
    found = choices(
        [
            {"pattern": "*", "encode_bits": 2},
            {"pattern": "block/*", "skip": True},
            {"name": "block/fc2", "input_bits": 8, "skip": False},
            {"name": "head", "weight_bits": 4},
        ]
    )
    assert found == {
        "fc1": Choice(2, 2),
        "fc2": Choice(2, 2),
        "block/fc1": Choice(2, 2, skip=True),
        "block/fc2": Choice(8, 2),
        "head": Choice(2, 4),
    }


LONG = ["net/a/fc1/MatMul;net/a/fc1/BiasAdd", "net/b/fc1/MatMul", "net/b/fc2/MatMul", "out"]


@pytest.mark.parametrize(
    ("which", "matched"),
    [
        ({"name": "a"}, LONG[:1]),
        ({"name": "fc2"}, LONG[2:3]),
        ({"name": "b/fc1"}, LONG[1:2]),
        ({"names": ["fc2", "out"]}, LONG[2:]),
        ({"pattern": "b/*"}, LONG[1:2]),
        ({"pattern": "*/BiasAdd"}, LONG[:1]),
        ({"regex": "fc2|a"}, [LONG[0], LONG[2]]),
        ({"name": "fc3"}, []),
    ],
)
def test_rules_take_short_names(which: dict[str, Any], matched: list[str]) -> None:
    config = Config.parse({"layers": [{**which, "skip": True}]}, Choice()).among(LONG)
    assert [name for name in LONG if config.choose(name).skip] == matched
    assert [name for name in LONG if config.names(name)] == matched
    assert bool(config.unused(LONG)) == (not matched)


def test_every_name_of_a_table_is_a_rule_s() -> None:
    for name, short in short_names([*LONG, *NAMES]).items():
        config = Config.parse({"layers": [{"name": short, "skip": True}]}, Choice())
        config = config.among([*LONG, *NAMES])
        assert [n for n in (*LONG, *NAMES) if config.choose(n).skip] == [name]


def test_among_refuses_a_part_of_several_names() -> None:
    config = Config.parse({"layers": [{"name": "MatMul"}]}, Choice())
    with pytest.raises(QuantizeError, match="'MatMul' is a part of several layers' names: a, b"):
        config.among(LONG)


def test_rules_that_match_nothing_are_known() -> None:
    config = Config.parse({"layers": [{"name": "fc1"}, {"name": "fc9"}]}, Choice())
    assert config.unused(NAMES) == ["fc9"]


def test_a_config_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"input_bits": 8, "layers": [{"name": "fc2", "skip": True}]}))
    config = Config.read(path, Choice(1, 1))
    assert config.choose("fc1") == Choice(8, 1)
    assert config.choose("fc2").skip


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ([], 'a config is an object with a list "layers"'),
        ("fc1", 'a config is an object with a list "layers"'),
        ({"layers": {"name": "fc1"}}, 'a config is an object with a list "layers"'),
        ({"bits": 3}, "config: bits is not understood"),
        ({"all_layers": 1}, "config: all_layers is 1, bool is needed"),
        ({"skip": True}, "config: skip is not understood"),
        ({"encode_bits": 0}, "input bits are 0: 1 to 8 are possible"),
        ({"encode_bits": 5}, "weight bits are 5: 1 to 4 are possible"),
        ({"input_bits": 9}, "input bits are 9: 1 to 8 are possible"),
        ({"weight_bits": -1}, "weight bits are -1: 1 to 4 are possible"),
        ({"encode_bits": "3"}, "encode_bits is '3': a number or a pair such as w2a4 is"),
        ({"input_bits": 3.0}, "config: input_bits is 3.0, int is needed"),
        ({"weight_bits": True}, "config: weight_bits is True, int is needed"),
        ({"weight_bits": None}, "config: weight_bits is None, int is needed"),
    ],
)
def test_parse_refuses_a_config(content: Any, sentence: str) -> None:
    with pytest.raises(QuantizeError, match=re.escape(sentence)):
        Config.parse(content, Choice())


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ("fc1", "config: a layer is an object, found 'fc1'"),
        ({"skip": True}, "needs one of name, names, pattern, regex, operator; found none"),
        (
            {"name": "a", "regex": "b"},
            "one of name, names, pattern, regex, operator; found ['name', 'regex']",
        ),
        ({"name": "a", "Skip": True}, "config: Skip is not understood, there is encode_bits"),
        ({"name": 3}, "config: name is 3, text is needed"),
        ({"names": ["a", 3]}, "config: names is ['a', 3], text is needed"),
        ({"name": ["a"]}, "config: name is ['a'], text is needed"),
        ({"pattern": None}, "config: pattern is None, text is needed"),
        ({"regex": "("}, "config: regex '(': "),
        (
            {"regex": "a{99999999999}"},
            "config: regex 'a{99999999999}': the repetition",
        ),
        ({"name": "a", "skip": 1}, "config: skip is 1, bool is needed"),
        ({"name": "a", "weight_bits": 8}, "weight bits are 8: 1 to 4 are possible"),
    ],
)
def test_parse_refuses_a_rule(entry: Any, sentence: str) -> None:
    with pytest.raises(QuantizeError, match=re.escape(sentence)):
        Config.parse({"layers": [entry]}, Choice())


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "No such file"),
        (b"{", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"", "not JSON"),
        (b"[" * 100_000, "not JSON: lists or objects are nested more than 100 deep"),
    ],
)
def test_read_refuses_a_file_that_is_no_json(
    tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    path = tmp_path / "config.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(QuantizeError, match=f"config .*config.json: {sentence}"):
        Config.read(path, Choice())


@pytest.mark.parametrize("bits", [0, 9, -3])
def test_choice_refuses_widths(bits: int) -> None:
    with pytest.raises(QuantizeError, match=f"input bits are {bits}: 1 to 8 are possible"):
        Choice(input_bits=bits)
    with pytest.raises(QuantizeError, match=f"weight bits are {bits}: 1 to 4 are possible"):
        Choice(weight_bits=bits)
