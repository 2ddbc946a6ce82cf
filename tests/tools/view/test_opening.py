"""What a served page shows when files are opened in it, without a browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import luciole
from luciole.drawing import measures
from luciole.drawing.blobs import Blobs
from luciole.drawing.described import Look, described
from luciole.drawing.document import Subject
from luciole.files.json_reading import read_json
from luciole.ir import LucioleError
from luciole.tools.view.opening import Shown
from luciole.tools.view.server import Opener, View
from tests.support import data_path
from tests.tools.view.conftest import Digits


def shown(path: Path) -> Shown:
    return Shown([Subject(luciole.load(path), path.name)], Blobs(), Look("horizontal", "kind"))


def opened(opener: Opener | None, path: Path, beside: bool) -> tuple[dict[str, Any], View]:
    assert opener is not None
    view = opener(path.name, path.read_bytes(), beside)
    document = json.loads(view.document)
    assert document["title"].encode() in view.page
    assert view.size == path.stat().st_size
    return document, view


def titles(document: dict[str, Any]) -> list[str]:
    return [model["title"] for model in document["models"]]


def test_the_model_with_fewer_bits_comes_second(digits: Digits) -> None:
    for first, second in (
        (digits.float_model, digits.quantized),
        (digits.quantized, digits.float_model),
    ):
        document, _ = opened(shown(first).opened, second, True)
        assert titles(document) == ["float.circle", "answer.circle"]
        assert {d["status"] for d in document["differences"]} == {"replaced", "removed"}
        assert document["models"][1]["graphs"][0]["nodes"][1]["measures"]["bytes_before"] > 80_000
        assert (document["direction"], document["mode"]) == ("horizontal", "kind")


def test_what_is_opened_next_replaces_the_second_one_and_no_number_comes_twice(
    digits: Digits,
) -> None:
    _, before = opened(shown(digits.float_model).opened, digits.quantized, True)
    document, after = opened(before.opener, data_path("models/resnet8_int8.tflite"), True)
    assert titles(document) == ["float.circle", "resnet8_int8.tflite"]
    assert not set(before.blobs.numbers) & set(after.blobs.numbers)
    document, last = opened(after.opener, digits.quantized, False)
    assert titles(document) == ["answer.circle"]
    assert "twin" not in document["models"][0]["graphs"][0]["nodes"][1]
    assert not set(after.blobs.numbers) & set(last.blobs.numbers)


def test_views_of_one_server_know_nothing_of_each_other(digits: Digits) -> None:
    first = shown(digits.float_model)
    resnet = data_path("models/resnet8_int8.tflite")
    _, mine = opened(first.opened, digits.quantized, False)
    _, yours = opened(first.opened, resnet, False)
    assert not set(mine.blobs.numbers) & set(yours.blobs.numbers)
    assert titles(opened(mine.opener, resnet, True)[0]) == ["resnet8_int8.tflite", "answer.circle"]
    assert titles(opened(first.opened, resnet, True)[0]) == ["float.circle", "resnet8_int8.tflite"]


def figured(digits: Digits) -> Shown:
    """The quantized digits with what the quantizer's report says of them."""
    report = read_json(digits.report)
    subject = Subject(
        luciole.load(digits.quantized),
        "answer.circle",
        figures=measures.report_figures(report, "r"),
        histograms=measures.report_histograms(report, "r"),
        notes={"hidden/tanh": "A note."},
    )
    return Shown([subject], Blobs(), Look())


def layers(document: dict[str, Any]) -> list[dict[str, Any]]:
    nodes = [node for graph in document["models"][-1]["graphs"] for node in graph["nodes"]]
    return [node for node in nodes if "levels" in node]


def test_figures_stay_when_a_second_file_is_opened_beside_and_go_with_their_model(
    digits: Digits,
) -> None:
    page = figured(digits)
    alone = described(list(page.subjects), Blobs(), Look())
    document, view = opened(page.opened, digits.float_model, True)
    assert titles(document) == ["float.circle", "answer.circle"]
    assert len(layers(document)) == len(layers(alone)) > 1
    for before, after in zip(layers(alone), layers(document), strict=True):
        assert "snr_db" in before["measures"]
        assert before["measures"].items() <= after["measures"].items()
        assert before["levels"].get("input") == after["levels"].get("input")
        assert before.get("note") == after.get("note")
    keys = {measure["key"] for measure in document["measures"]}
    assert {"snr_db", "bytes_before"} <= keys
    assert any("note" in node for node in document["models"][-1]["graphs"][0]["nodes"])
    document, _ = opened(view.opener, digits.quantized, False)
    assert "snr_db" not in {measure["key"] for measure in document["measures"]}


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("../../x.circle", b"nothing", "x.circle: not a .circle, .tflite"),
        ("x.keras", b"PK\x03\x04", "x.keras: .keras, .h5 or SavedModel is read by its path"),
        ("x\n.circle", b"", r"x\n.circle: not a "),
        ("", b"", "file: not a "),
    ],
)
def test_the_page_refuses_what_is_no_model_and_shows_what_it_showed(
    digits: Digits, name: str, data: bytes, words: str
) -> None:
    page = shown(digits.float_model)
    with pytest.raises(LucioleError) as refusal:
        page.opened(name, data, False)
    assert str(refusal.value).startswith(words)
    assert "\n" not in str(refusal.value)
    assert [subject.title for subject in page.subjects] == ["float.circle"]


def test_the_page_refuses_a_second_file_while_it_reads_one(digits: Digits) -> None:
    page = shown(digits.float_model)
    with page.reading, pytest.raises(LucioleError, match="another file is being read"):
        page.opened("x", b"", False)


def test_an_empty_page_shows_the_first_file_alone(digits: Digits) -> None:
    empty = Shown([], Blobs(), Look())
    for beside in (False, True):
        document, view = opened(empty.opened, digits.float_model, beside)
        assert titles(document) == ["float.circle"]
    assert titles(opened(view.opener, digits.quantized, True)[0]) == [
        "float.circle",
        "answer.circle",
    ]
