"""Every door says the same word for the same layer: the one that its file holds."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.drawing.nodes import op_json
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import Model
from luciole.lquantizer import FitOptions, MinifloatOptions, PublishedOptions, UniformOptions
from luciole.lquantizer.assignment.format_of import word_of
from luciole.lquantizer.assignment.layer_format import SHORT, parse
from luciole.lquantizer.assignment.one_config import OneOptions
from luciole.lquantizer.assignment.options import options_of
from luciole.lquantizer.assignment.schemes import BYTES
from luciole.lquantizer.search import auto_bits
from luciole.lquantizer.search.options import SearchOptions
from luciole.tools import lquantizer, quantize
from tests.networks import network, random

SOURCES = Path(luciole.__file__).parent
WORDS = {
    "fc1": "float16",
    "fc2": "levels:w2a4",
    "fc3": "even:w4a4",
    "fc4": "int:w8a8",
    "fc5": "int:w4a8",
    "fc6": "dynamic:int8",
    "fc7": "weights:int4",
    "fc8": "levels:w2",
    "fc9": "levels:w1a8",
    "fc10": "float",
}
"""Ten layers, and a word for each."""


def ten() -> Model:
    return network((32, *[24] * 9, 16))


def data(model: Model) -> dict[str, Any]:
    return {value.name: random(3, 24, *value.dims[1:]) for value in model.graph.inputs}


def config() -> dict[str, Any]:
    return {"layers": [{"name": name, "scheme": word} for name, word in WORDS.items()]}


def in_file(model: Model) -> list[str]:
    """The word of each layer that a file holds, in execution order: names may be others there."""
    read = from_bytes(to_bytes(model))
    return [word for op in read.graph.ops if (word := word_of(op))]


def quantized(model: Model, **choices: Any) -> dict[str, str]:
    """The words of a report, which are those of its JSON, its table and its file."""
    return words_of(luciole.quantize(model, data(model), proof=False, **choices))


def words_of(result: luciole.Result) -> dict[str, str]:
    report = result.report
    words = {layer.name: layer.format for layer in report.layers}
    assert list(words.values()) == in_file(result.model)
    assert {layer["name"]: layer["format"] for layer in report.to_json()["layers"]} == words
    shown = {row[0]: row[1] for row in report.rows()[1:]}
    assert shown.items() <= words.items()
    return words


@cache
def ten_quantized() -> luciole.Result:
    """The ten layers in the formats that a config names."""
    return luciole.quantize(ten(), data(ten()), proof=False, config=config())


def test_ten_layers_get_the_formats_that_a_config_names() -> None:
    assert words_of(ten_quantized()) == WORDS


def test_the_programs_print_the_words_of_ten_layers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    luciole.save(ten(), tmp_path / "net.circle")
    np.save(tmp_path / "x.npy", next(iter(data(ten()).values())))
    (tmp_path / "config.json").write_text(json.dumps(config()))
    files = {
        name: str(tmp_path / name) for name in ("net.circle", "x.npy", "config.json", "q.circle")
    }
    said = ["--config", files["config.json"], "--json", "--no-proof"]
    doors: dict[Callable[..., int], list[str]] = {
        quantize.main: [files["net.circle"], "-o", files["q.circle"], "--data", files["x.npy"]],
        lquantizer.main: [
            *("--input_model", files["net.circle"], "--output_model", files["q.circle"]),
            *("--input_data", files["x.npy"]),
        ],
    }
    for main, words in doors.items():
        assert main([*words, *said]) == 0
        report = json.loads(capsys.readouterr().out)
        assert {layer["name"]: layer["format"] for layer in report["layers"]} == WORDS


@pytest.mark.parametrize(
    ("scheme", "word"),
    [
        ("w2a4", "even:w2a4"),
        ("even:w2a4", "even:w2a4"),
        ("levels:w2a4", "levels:w2a4"),
        ("minifloat:4,4", "minifloat:4,4"),
        ("int:w4a8", "int:w4a8"),
        ("dynamic", "dynamic:int8"),
    ],
)
def test_one_program_takes_every_word_as_a_scheme(
    scheme: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = network((64, 48, 16))
    luciole.save(model, tmp_path / "net.circle")
    np.save(tmp_path / "x.npy", next(iter(data(model).values())))
    files = ["--data", str(tmp_path / "x.npy"), "-o", str(tmp_path / "q.circle")]
    said = [*files, "--scheme", scheme, "--json", "--no-proof"]
    assert quantize.main([str(tmp_path / "net.circle"), *said]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [layer["format"] for layer in report["layers"]] == [word, word]


@pytest.mark.parametrize("main", [lquantizer.main, quantize.main])
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--encode_bits 2", "give one model to quantize: MODEL or --input-model FILE"),
        ("m --scheme int8 --encode_bits 2", "--encode-bits goes with learned levels, the scheme"),
        ("m --scheme levels:w2a4 --rounding nearest", "--rounding goes with integers and float16"),
        (
            "m --scheme int8 --mantissa 3",
            "--mantissa goes with minifloats, the scheme is one of in",
        ),
        ("m --scheme minifloat:4,4 --spared int8", "--spared goes with learned levels, the scheme"),
        ("m --scheme int8 --finetune 3", "--finetune goes with learned levels, integers take --tu"),
        ("m --scheme float16 --qat 3", "--qat: the scheme has no thresholds that could be trained"),
        ("m --scheme minifloat:4,4 --mirror", "--mirror goes with --tune EPOCHS or --qat EPOCHS"),
    ],
)
def test_both_programs_refuse_an_option_that_does_not_go_with_the_scheme(
    main: Callable[..., int], words: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words.split(), "-o", "q.circle", "--data", "x.npy"]) == 2
    assert sentence in capsys.readouterr().err


def test_the_viewer_shows_the_words_of_ten_layers() -> None:
    ops = from_bytes(to_bytes(ten_quantized().model)).graph.ops
    badges = [op_json(op, 0)["badge"] for op in ops if word_of(op)]
    assert badges == list(WORDS.values())


@pytest.mark.parametrize("name", [name for name in SHORT if name != "float"])
def test_a_scheme_prints_what_its_short_name_stands_for(name: str) -> None:
    word = str(SHORT[name])
    model = network((64, 48, 32, 16))
    quick: dict[str, Any] = {"ranges": "min_max"} if word.startswith(("int", "uint")) else {}
    nearest = {} if name == "float16" else {"rounding": "nearest"}
    words = quantized(model, scheme=name, **quick, **nearest)
    assert set(words.values()) == {word}
    assert quantized(model, scheme=word, **quick) == words


@pytest.mark.parametrize(
    ("choices", "word"),
    [
        ({"encode_bits": 2}, "levels:w2a2"),
        ({"encode_bits": "w4a8"}, "levels:w4a8"),
        ({"encode_bits": "even:w2a4"}, "even:w2a4"),
        ({"encode_bits": "levels:w2"}, "levels:w2"),
        ({"encode_bits": 2, "input_bits": 8}, "levels:w2a8"),
        ({"encode_bits": 2, "uniform": True}, "even:w2a2"),
        ({"encode_bits": 1, "uniform": True}, "levels:w1a1"),
        ({"encode_bits": 2, "weights_only": True}, "levels:w2"),
        ({"encode_bits": 2, "method": "published"}, "levels:w2a2"),
        ({"scheme": "w4a7"}, "even:w4a7"),
        ({"scheme": "minifloat:4,4"}, "minifloat:4,4"),
        ({"scheme": "minifloat", "exponent": 4, "mantissa": 4}, "minifloat:4,4"),
        ({"compatible": "one", "scheme": "uint8"}, "uint:w8a8"),
        ({"compatible": "one", "scheme": "int:w16a16"}, "int:w16a16"),
        ({"config": {"default_quantization_dtype": "int16"}}, "int:w16a16"),
    ],
)
def test_other_doors_print_the_words_of_their_files(choices: dict[str, Any], word: str) -> None:
    assert set(quantized(network((64, 48, 16)), **choices).values()) == {word}


@pytest.mark.parametrize(
    ("weights", "between", "explicit", "word"),
    [
        (8, 8, False, "int:w8a8"),
        (4, 8, False, "int:w4a8"),
        (8, 16, False, "int:w8a16"),
        (4, 16, False, "int:w4a16"),
        (8, None, False, "dynamic:int8"),
        (4, None, True, "weights:int4"),
    ],
)
def test_a_recipe_of_ai_edge_quantizer_prints_the_words_of_its_file(
    weights: int, between: int | None, explicit: bool, word: str
) -> None:
    sizes = {"weight_tensor_config": _integers(weights)}
    if between is not None:
        sizes["activation_tensor_config"] = _integers(between)
    precision = "FLOAT" if explicit else "INTEGER"
    algorithm = {"algorithm_key": "min_max_uniform_quantize"}
    rules = {**sizes, "compute_precision": precision, "explicit_dequantize": explicit}
    which = {"regex": ".*", "operation": "FULLY_CONNECTED"}
    model = network((64, 48, 16))
    rule = {**which, **algorithm, "op_config": rules}
    result = luciole.quantize(model, data(model), proof=False, config=[rule])
    assert set(words_of(result).values()) == {word}
    assert result.report.rules[0].endswith(f"min_max_uniform_quantize -> {word}: 2 {word}")


def _integers(bits: int) -> dict[str, Any]:
    return {"num_bits": bits, "symmetric": True, "granularity": "CHANNELWISE", "dtype": "INT"}


def test_automatic_widths_and_searches_name_the_formats_of_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = ("levels:w1a2", "levels:w2a4", "int:w4a8", auto_bits.BYTES)
    monkeypatch.setattr(auto_bits, "OPTIONS", some)
    model = network((40, 32, 4))
    result = luciole.quantize(model, data(model), proof=False, target_drop=20.0)
    words = {layer.name: layer.format for layer in result.report.layers}
    assert list(words.values()) == in_file(result.model)
    assert words.items() <= {(o["layer"], o["option"]) for o in result.report.options}

    options = SearchOptions(evaluations=6, options=("w1a2", "int8x4", "dynamic", "float"), files=2)
    assert options.options == ("levels:w1a2", "int:w4a8", "dynamic:int8", "float")
    found = luciole.search(model, data(model), tmp_path, options, say=lambda line: None)
    for file in found.front:
        assert list(file.options.values()) == in_file(luciole.load(file.path))
        layers = json.loads(file.config.read_text())["layers"]
        assert {layer["name"]: layer["scheme"] for layer in layers} == file.options


def test_a_search_refuses_a_pair_that_means_two_formats() -> None:
    with pytest.raises(luciole.LucioleError, match="say levels:w4a8 or int:w4a8"):
        SearchOptions(options=("w4a8", "float"))


def test_one_module_knows_old_words() -> None:
    old = re.compile(r"(?<!:)\bw\d+a\d+\b|\bint(8|16)x4\b|w\\d|w\{\w+\}a\{")
    home = SOURCES / "lquantizer" / "assignment" / "layer_format.py"
    found = [
        f"{path.relative_to(SOURCES)}:{number}: {line.strip()}"
        for path in sorted(SOURCES.rglob("*.py"))
        if path != home
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if old.search(line)
    ]
    assert found == []
    assert old.search(home.read_text())


def test_words_in_texts_are_words() -> None:
    word = re.compile(r"\b(?:levels|even|u?int):w\w+|\b(?:dynamic|weights):u?int\d\w*")
    for path in sorted(SOURCES.rglob("*.py")):
        for text in word.findall(path.read_text()):
            assert str(parse(text)) == text, path


def test_quantize_has_a_parameter_for_each_choice() -> None:
    parameters = inspect.signature(luciole.quantize).parameters
    classes = (FitOptions, PublishedOptions, UniformOptions, MinifloatOptions, OneOptions)
    choices = {field.name for options in classes for field in fields(options)} - {"per_operator"}
    choices.remove("step")  # of ONE's three programs, which are one function here
    assert choices <= parameters.keys()
    assert all(p.kind is not p.VAR_KEYWORD for p in parameters.values())
    measured = inspect.signature(luciole.sensitivity).parameters
    assert {"scheme", "granularity", "ranges", "config", "seed"} <= measured.keys()


@pytest.mark.parametrize(
    ("choices", "spared"),
    [
        ({"encode_bits": 2}, str(BYTES)),
        ({"encode_bits": 2, "spared": "float"}, "float"),
        ({"target_size": 1000}, "float"),
        ({"target_drop": 1.0, "spared": "int8"}, str(BYTES)),
    ],
)
def test_fields_of_options_mean_what_keywords_do(choices: dict[str, Any], spared: str) -> None:
    """Layers without learned levels were spared as floats where the same was said as an object."""
    options = FitOptions(**choices)
    assert options_of(choices) == options
    assert str(options.spared_format) == spared
