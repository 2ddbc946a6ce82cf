"""Figures from other programs: read, matched by name, refused when they are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.drawing import measures
from luciole.drawing.blobs import Blobs
from luciole.drawing.document import Figures, Subject, document
from luciole.ir import LucioleError
from luciole.tools.view import foreign
from tests.networks import network, random

Json = dict[str, Any]
REPORT = {
    "layers": [
        {"name": "fc1", "mse": 0.5, "snr_db": 20, "bytes_before": 1000, "bytes_after": 90,
         "input_histogram": {"low": -1, "high": 1, "counts": [1, 2, 3]}},
        {"name": "fc2", "mse": None, "skipped": "too small"},
    ]
}  # fmt: skip
BENCH = {
    "operators": [
        {"name": "fc1", "kind": "FULLY_CONNECTED", "median_us": 30.0, "share": 0.75},
        {"name": "fc2", "kind": "FULLY_CONNECTED", "median_us": 10.0, "share": 0.25},
    ]
}
DIFF = {
    "records": 3,
    "layers": [{"name": "act1", "mse": 0.1, "snr_db": None, "cosine": 0.9, "mpeir": 0.2}],
    "outputs": [],
}


def shown(figures: Figures) -> dict[str, Json]:
    found = document([Subject(network(), "m")], Blobs())
    measures.set_measures(found, figures)
    nodes = found["models"][0]["graphs"][0]["nodes"]
    return {n["name"]: n["measures"] for n in nodes if n["what"] == "op"}


def test_all_three_sources_meet_in_the_operators_figures() -> None:
    figures = measures.report_figures(REPORT, "r")
    measures.add(figures, measures.latency_figures(BENCH, "b"))
    measures.add(figures, measures.error_figures(DIFF, "d"))
    found = shown(figures)
    assert found["fc1"] == {
        "bytes": 4 * (16 * 20 + 16), "mse": 0.5, "snr_db": 20, "bytes_before": 1000,
        "latency_us": 30, "latency_share": 75,
    }  # fmt: skip
    assert found["fc2"] == {"bytes": 4 * (4 * 16 + 4), "latency_us": 10, "latency_share": 25}
    assert found["act1"] == {"mse": 0.1, "cosine": 0.9, "peak": 0.2}


def test_sensitivities_are_figures_of_the_operators() -> None:
    data = {"x": random(1, 20, 20)}
    table = luciole.sensitivity(network(), data, scheme="w4a8", rounding="nearest")
    figures = measures.report_figures(table.to_json(), "s")
    found = shown(figures)
    for layer in table.layers:
        told = found[layer.name]
        assert told["alone_agree"] == pytest.approx(layer.only.agree, abs=0.01)
        assert told["alone_snr_db"] == pytest.approx(-10 * np.log10(layer.only.noise), abs=0.01)
        assert told["spared_agree"] == pytest.approx(layer.others.agree, abs=0.01)
    assert {layer.name for layer in table.layers} == {"fc1", "fc2"}


def test_the_document_says_which_figures_there_are() -> None:
    found = document([Subject(network(), "m")], Blobs())
    measures.set_measures(found, measures.error_figures(DIFF, "d"))
    assert [(m["key"], m["worse"]) for m in found["measures"]] == [
        ("bytes", "high"), ("mse", "high"), ("cosine", "low"), ("peak", "high")
    ]  # fmt: skip


def test_what_the_quantizer_says_of_layers_is_kept_in_words() -> None:
    notes = measures.report_notes(
        {"layers": [*REPORT["layers"], {"name": "a", "way": "exact"}]}, "r"
    )
    assert notes == {
        "fc2": "The quantizer left it alone: too small.",
        "a": "How the weights were coded: exact.",
    }
    found = filled()
    measures.set_notes(found, notes)
    nodes = found["models"][0]["graphs"][0]["nodes"]
    assert {n["name"]: n["note"] for n in nodes if "note" in n} == {"fc2": notes["fc2"]}


def test_a_report_may_hold_the_inputs_histograms() -> None:
    (name, found), *more = measures.report_histograms(REPORT, "r").items()
    assert more == []
    assert (name, found.low, found.high, found.counts) == ("fc1", -1, 1, [1, 2, 3])


@pytest.mark.parametrize(
    ("read", "content", "sentence"),
    [
        (measures.report_figures, [1], "x.json: not a quantizer's report: a list 'layers'"),
        (measures.report_figures, {"layers": [{"mse": 1}]}, "of objects with a name is needed"),
        (measures.latency_figures, {}, "x.json: not circle-bench's JSON: a list 'operators'"),
        (measures.error_figures, {"a": 1}, "x.json: no list of objects with a name and errors"),
        (measures.error_figures, [{"name": "fc1", "x": 1}], "no list of objects with a name"),
    ],
)
def test_reading_figures_refuses_other_files(
    read: Callable[[object, str], object], content: object, sentence: str
) -> None:
    with pytest.raises(LucioleError) as caught:
        read(content, "x.json")
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        {"low": "a", "high": 2, "counts": [1]},
        {"low": 0, "high": None, "counts": [1]},
        {"low": 0, "high": 2, "counts": ["z"]},
        {"low": 0, "high": 2, "counts": 5},
        {"low": float("nan"), "high": float("inf"), "counts": [1]},
    ],
)
def test_reading_histograms_refuses_what_is_no_number(given: Json) -> None:
    content = {"layers": [{"name": "fc1", "input_histogram": given}]}
    with pytest.raises(LucioleError, match=r"x\.json: an input_histogram has finite low, high and"):
        measures.report_histograms(content, "x.json")


def filled() -> Json:
    found = document([Subject(network(), "m")], Blobs())
    measures.set_measures(found, measures.latency_figures(BENCH, "b"))
    return found


def test_netrons_attachment_has_bits_and_figures_by_operator_number() -> None:
    found = foreign.netron_attachment(filled())
    assert found["signature"] == "netron:attachment"
    first = {"kind": "node", "identifier": "0"}
    assert {**first, "name": "weight_bits", "value": 32} in found["metadata"]
    assert {**first, "name": "latency_us", "value": 30} in found["metrics"]
    last = {"kind": "node", "identifier": "2", "name": "latency_us", "value": 10}
    assert last in found["metrics"]


def test_model_explorer_gets_one_figure_for_each_tensor() -> None:
    found = foreign.model_explorer_data(filled())
    assert found["results"] == {"fc1": {"value": 30}, "fc2": {"value": 10}}
    assert [g["stop"] for g in found["gradient"]] == [0, 1]


def test_model_explorer_finds_equalized_tensors_by_the_names_of_the_float_model() -> None:
    made = filled()
    made["models"][0]["graphs"][0]["nodes"][1]["original"] = "before"
    found = foreign.model_explorer_data(made)["results"]
    assert found["before"] == found["fc1"] == {"value": 30}


def test_model_explorer_refuses_a_model_without_figures() -> None:
    bare = document([Subject(network(), "m")], Blobs())
    with pytest.raises(LucioleError, match="nothing to write for Model Explorer"):
        foreign.model_explorer_data(bare)


def tensor(name: str, **changes: Any) -> Json:
    held = {"name": name, "low": -1.5, "high": 6.0, "clipped": 0.005, "snr_db": 31.0}
    grid = {"dtype": "INT8", "least": 0.0, "most": 5.1, "step": 0.02}
    return held | grid | {"rule": "mse, shared with 2 more"} | changes


def test_what_integers_do_to_tensors_is_shown_where_they_are_made() -> None:
    report = {"layers": [{"name": "fc1", "snr_db": 20}], "tensors": [tensor("fc1"), tensor("a")]}
    figures = measures.report_figures(report, "r")
    assert figures["fc1"] == {"snr_db": 20, "rounding_snr_db": 31, "clipped": 0.5}
    assert figures["a/integers"] == {"rounding_snr_db": 31, "clipped": 0.5}
    notes = measures.report_notes(report, "r")
    assert notes["fc1"] == (
        "Its result held -1.5 to 6; INT8 reaches 0 to 5.1 in steps of 0.02 "
        "(mse, shared with 2 more), 0.5 % is clipped."
    )


def test_a_tensor_read_otherwise_than_it_is_made_is_shown_as_it_is_made() -> None:
    report = {"layers": [], "tensors": [tensor("fc1"), tensor("fc1", snr_db=3.0)]}
    assert measures.report_figures(report, "r")["fc1"]["rounding_snr_db"] == 31


def test_tensors_without_numbers_have_neither_figures_nor_words() -> None:
    report = {"layers": [], "tensors": [tensor("fc1", clipped="many", snr_db=None)]}
    assert measures.report_figures(report, "r")["fc1"] == {}
    assert measures.report_notes(report, "r") == {}


def test_tensors_refuse_to_be_no_list() -> None:
    with pytest.raises(LucioleError, match="a list 'tensors' of objects with a name"):
        measures.report_figures({"layers": [], "tensors": 3}, "r.json")
