"""``luciole search``: its files, its tables and its page; what it refuses."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.lquantizer.search.networks import Found
from luciole.lquantizer.search.result import FrontFile, SearchResult
from luciole.tools.search.command import main
from luciole.tools.search.page import page
from tests.networks import network, random

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that was searched."""
    found = tmp_path_factory.mktemp("search")
    luciole.save(network((40, 32, 4)), found / "model.circle")
    np.save(found / "data.npy", random(1, 30, 40))
    assert main([*arguments(found), "--json"]) == 0
    return found


def arguments(folder: Path) -> list[str]:
    few = ["--evaluations", "6", "--options", "w1a2,w2a4,dynamic,float", "--files", "3"]
    files = [str(folder / "model.circle"), "--data", str(folder / "data.npy")]
    return [*files, *few, "-o", str(folder / "front")]


class Shape(HTMLParser):
    """Counts a page's elements, and what it would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [str(value) for name, value in attrs if name in ("href", "src")]


def test_the_same_command_again_finds_the_same(folder: Path, capsys: Capture) -> None:
    before = json.loads((folder / "front" / "report.json").read_text())
    assert main([*arguments(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == before
    assert len(before["evaluated"]) == 6


def test_tables_and_page_hold_the_front(folder: Path) -> None:
    front = folder / "front"
    report = json.loads((front / "report.json").read_text())
    rows = list(csv.DictReader((front / "front.csv").open()))
    assert [row["file"] for row in rows] == [one["file"] for one in report["front"]]
    assert {row["us"] for row in rows} == {""}, "nobody asked for times"
    assert [row["fc1"] for row in rows] == [one["candidate"][0] for one in report["front"]]
    grown = report["hypervolume"]
    assert grown == sorted(grown)
    assert 0 < grown[-1] < 1
    shape = Shape()
    shape.feed((front / "report.html").read_text())
    pages = {Path(row["file"]).with_suffix(".html").name for row in rows}
    assert set(shape.links) == {row["file"] for row in rows} | pages, "nothing else is linked to"
    assert pages == {path.name for path in front.glob("front-*.html")}
    cells = len(rows) * len(report["layers"])
    assert shape.tags.count("rect") == cells
    marks = len(report["evaluated"]) + len(report["uniform"]) + len(report["greedy"])
    assert shape.tags.count("circle") >= marks + len(rows) + len(grown)


def test_the_plot_tells_small_losses_apart() -> None:
    networks = [
        Found(("int8",), 100 + n, loss, 0, None) for n, loss in enumerate((0.1, 2e-6, 7e-7, 0))
    ]
    made = page(
        SearchResult([], ("accuracy", "size"), networks[0], ["a"], networks, weights=[1]),
        "m.circle",
    )
    heights = re.findall(r'<circle class="searched" cx="[\d.]+" cy="([\d.]+)"', made)
    assert heights == sorted(heights, key=float)
    assert len(set(heights[:3])) == 3


def test_the_page_says_what_a_loss_is_and_shows_all_networks_of_a_place() -> None:
    one = Found(("dynamic:int8",), 100, 0.1, 0, None)
    networks, named = ("accuracy", "size"), {"dynamic:int8": one}
    file = FrontFile(Path("front.circle"), Path("front.json"), one, {"a": "dynamic:int8"})
    search = SearchResult([file], networks, one, ["a"], [one], named, [one], weights=[1])
    made = page(replace(search, unreached=1), "m.circle")
    shown = re.findall(r'<circle class="(\w+)" cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"', made)[:4]
    assert len({(x, y) for _, x, y, _ in shown}) == 1
    radii = {kind: float(radius) for kind, _, _, radius in shown}
    assert radii["searched"] < radii["files"] < radii["greedy"] < radii["uniform"]
    assert ".uniform, .greedy { fill: none;" in made
    assert "Loss is the distance from the float network's answers" in made
    assert "a network may be here twice, with two losses" in made
    assert "The hypervolume is the share of a box" in made
    assert ">loss 0.1</text>" in made, "rows of the picture say what their numbers are"
    assert "0 failed, 1 of those that a search begins with left out by its budget" in made


def test_layers_share_a_choice_and_others_have_none(tmp_path: Path, capsys: Capture) -> None:
    luciole.save(network((40, 32, 16, 4)), tmp_path / "model.circle")
    np.save(tmp_path / "data.npy", random(1, 30, 40))
    words = [*arguments(tmp_path), "--tie", "fc[12]", "--fixed", "fc3=dynamic", "--json"]
    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["weights"] == [40 * 32 + 32 * 16, 16 * 4]
    assert all(one["candidate"][1] == "dynamic:int8" for one in report["evaluated"])
    for file in (tmp_path / "front").glob("front-*.json"):
        first, second, third = json.loads(file.read_text())["layers"]
        assert {**first, "name": ""} == {**second, "name": ""}
        assert third["scheme"] == "dynamic:int8"
    assert main([*words, "--fixed", "fc[12]=float"]) == 1
    assert "no layer has more than one option" in capsys.readouterr().err
    assert main([*words, "--tie", "conv*"]) == 1
    assert "'conv*' matches no layer" in capsys.readouterr().err


def test_it_refuses_what_there_is_not(folder: Path, capsys: Capture) -> None:
    for words, message in (
        (["--objectives", "size"], "objectives are accuracy and at least one of"),
        (["--objectives", "accuracy,beauty"], "objective 'beauty'"),
        (["--options", "w9a9"], "option 'w9a9'"),
        (["--objectives", "accuracy,size,size"], "objective 'size' is there twice"),
        (["--evaluations", "0"], "evaluations is 0"),
        (["--workers", "99999"], "workers is 99999, this machine takes "),
        (["--minutes", "-3"], "minutes is -3.0: more than 0 is needed"),
        (["--max-us", "nan"], "max_us is nan: more than 0 is needed"),
        (["--max-size", "-5"], "max_size is -5: more than 0 is needed"),
        (["--seed", "-1"], "seed is -1: at least 0 is needed"),
        (["--fixed", "fc1"], "--fixed fc1: PATTERN=OPTION is needed"),
        (["--finish", "train"], "finish 'train': fit, finetune:EPOCHS"),
        (["--device", "none.json"], "device none.json: No such file or directory; ready ones"),
        (["--partial", "3"], "--partial goes with --preset seed"),
        (["--labelled-output", "y"], "--labelled-output goes with --preset seed"),
        (["--preset", "seed"], "--options does not go with --preset seed"),
    ):
        assert main([*arguments(folder), *words]) == 2
        assert message in capsys.readouterr().err


def test_bounds_that_nothing_keeps_to_are_said(folder: Path, capsys: Capture) -> None:
    files = {path: path.read_bytes() for path in (folder / "front").glob("[fr]*")}
    assert main([*arguments(folder), "--max-size", "400"]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert "no network keeps to the bounds: the smallest one has " in error
    assert {path: path.read_bytes() for path in (folder / "front").glob("[fr]*")} == files


def test_it_refuses_a_folder_that_cannot_be_made(folder: Path, capsys: Capture) -> None:
    (folder / "file").write_text("kept")
    for output in ("file", "file/below"):
        assert main([*arguments(folder), "-o", str(folder / output)]) == 1
        error = capsys.readouterr().err.splitlines()[-1]
        assert str(folder / output) in error
        assert "--debug" not in error
    assert (folder / "file").read_text() == "kept"


def test_it_refuses_a_folder_with_another_search(folder: Path, capsys: Capture) -> None:
    assert main([*arguments(folder), "--seed", "3"]) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert "search.db is of a search with other settings" in error
