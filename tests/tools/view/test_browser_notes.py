"""The page on operators: faults, nodes that they came from, the proof; its letters; no model."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

import luciole
from luciole.drawing.svg import FONT
from luciole.tools.view import command
from tests.tools.view.conftest import Digits, Open, Scheme, View, Visit
from tests.tools.view.graphs import nested

UNET = Path(__file__).parents[2] / "golden" / "onnx" / "unet.onnx"
SIZES = [(1400, 900), (420, 800)]

STICKING_OUT = """() => [...document.querySelectorAll('g:has(> rect + path)')].flatMap(node => {
  const box = node.querySelector('rect').getBoundingClientRect();
  return [...node.querySelectorAll('text')].filter(t => {
    const r = t.getBoundingClientRect();
    return r.left < box.left - 0.5 || r.right > box.right + 0.5;
  }).map(t => t.textContent);
})"""
UNKEPT = """() => document.querySelectorAll('text')
  .forEach(t => t.removeAttribute('textLength'))"""
FAR_MARKS = """() => app.view().farPaths().nodes
  .filter(n => n.classList.contains('far-mark')).map(n => n.getAttribute('d'))"""
SEVERITIES = "() => [...document.querySelectorAll('.mark')].map(m => m.classList[1]).sort()"


def photograph(here: Visit, folder: Path, name: str, scheme: str) -> None:
    """Show the page in windows of both sizes, and keep pictures where they are asked for."""
    for width, height in SIZES:
        here.page.set_viewport_size({"width": width, "height": height})
        here.settle()
        if "LUCIOLE_SCREENSHOTS" in os.environ:
            here.page.screenshot(path=folder / f"{name}{width}{scheme}.png")


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a file in which a result has another type than its operator computes."""
    folder = tmp_path_factory.mktemp("damaged")
    model = nested(40)
    model.graph.ops[3].output.dtype = luciole.ir.TensorType.INT8
    (folder / "odd.circle").write_bytes(luciole.exporters.to_bytes(model, check=False))
    assert command.main([str(folder / "odd.circle"), "-o", str(folder / "odd.html")]) == 1
    return folder / "odd.html"


def test_operators_that_verify_complains_of_are_marked(
    visit: Open, damaged: Path, screenshots: Path
) -> None:
    here = visit(damaged.as_uri())
    document = json.loads(re.findall(r'id="document">(.*?)</script>', damaged.read_text())[0])
    (model,) = document["models"]
    places = {f["path"] for f in model["findings"] if f["severity"] == "error"}
    nodes = [n for n in model["graphs"][0]["nodes"] if n.get("mark") == "error"]
    assert {f"subgraphs[0].operators[{n['index']}]" for n in nodes} == places
    here.page.get_by_role("button", name="No groups").click()
    here.page.keyboard.press("Space")
    here.settle()
    assert here.run(SEVERITIES) == ["error"] * len(nodes)
    here.page.evaluate("n => app.selectId(n)", nodes[0]["id"])
    expect(here.page.locator("#sidebar .findings .tag.error").first).to_be_visible()
    expect(here.page.locator("#sidebar .findings")).to_contain_text("FLOAT32 is computed")
    photograph(here, screenshots, "marks", "light")
    here.page.set_viewport_size({"width": 1280, "height": 800})
    here.page.get_by_role("button", name="Close groups").click()
    here.settle()
    marked = here.page.locator(".group .mark.error")
    assert marked.count() == 1, "a closed group has the mark of what is inside"
    (path,) = here.page.evaluate(FAR_MARKS)
    (place,) = re.findall(r"M([-\d.]+ [-\d.]+)h", path)
    around = here.page.locator(".group:has(.mark)").get_attribute("transform") or ""
    assert re.findall(r"[-\d.]+", around)[:2] == place.split(), "and from afar, too"


def test_an_imported_model_says_what_became_of_its_nodes(
    visit: Open, pages: View, screenshots: Path
) -> None:
    here = visit(pages(UNET).as_uri(), scheme="dark")
    sidebar = here.page.locator("#sidebar")
    expect(sidebar).to_contain_text("8 nodes became 8 operators")
    here.page.keyboard.press("Control+f")
    here.page.keyboard.type("node_relu_1")
    here.page.keyboard.press("Enter")
    origins = sidebar.locator(".part", has_text="Imported from")
    expect(origins).to_contain_text("Conv node_conv2d_1")
    expect(origins).to_contain_text("Relu node_relu_1")
    photograph(here, screenshots, "imported", "dark")
    box = here.page.locator(".focus rect").bounding_box()
    assert box is not None
    assert 0 < box["x"] < 420 - box["width"], "it stays in sight of a narrow window"


def test_a_report_brings_its_proof(visit: Open, pages: View, digits: Digits) -> None:
    here = visit(pages(digits.quantized, "--report", digits.report).as_uri())
    proof = here.page.locator("#sidebar .part", has_text="Proof")
    expect(proof).to_contain_text("of the answers stay")
    expect(proof).not_to_contain_text("proof:")


@pytest.mark.parametrize("family", ["DejaVu Sans", "monospace"])
def test_letters_stay_in_their_boxes_whatever_the_font(
    visit: Open, pages: View, tmp_path: Path, family: str
) -> None:
    """Boxes are measured for Helvetica; these letters are wider, and there may be no others."""
    text = pages(UNET).read_text()
    given = '"Helvetica Neue", Helvetica, Arial, "Liberation Sans", sans-serif'
    assert given in text
    (tmp_path / "wide.html").write_text(text.replace(given, f'"{family}", {family}'))
    here = visit((tmp_path / "wide.html").as_uri())
    here.page.keyboard.press("Space")
    here.settle()
    assert here.run(STICKING_OUT) == []
    assert here.page.locator(".node text[textLength]").count() > 3
    here.page.evaluate(UNKEPT)
    assert here.run(STICKING_OUT) != []
    here.page.keyboard.press("Control+d")
    here.settle()
    assert here.run(STICKING_OUT) == []


def test_letters_of_a_picture_stay_in_their_boxes(window: BrowserContext, view: View) -> None:
    picture = view(UNET, name="unet.svg")
    text = picture.read_text()
    assert FONT in text
    picture.write_text(text.replace(FONT, "'DejaVu Sans'"))
    page = window.new_page()
    page.goto(picture.as_uri())
    assert page.evaluate(STICKING_OUT) == []
    page.evaluate(UNKEPT)
    assert page.evaluate(STICKING_OUT) != []
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_without_a_model_takes_one(
    visit: Open, view: View, digits: Digits, screenshots: Path, scheme: Scheme
) -> None:
    here = visit(view(name="empty.html").as_uri(), scheme=scheme)
    expect(here.page.get_by_role("button", name="Open a file …")).to_be_visible()
    expect(here.page.locator("#sidebar")).to_be_hidden()
    photograph(here, screenshots, "empty", scheme)
    expect(here.page.locator("#bar h1")).to_be_visible()  # on narrow screens, too
    here.page.keyboard.press("Escape")
    with here.page.expect_file_chooser() as choice:
        here.page.get_by_role("button", name="Open a file …").click()
    choice.value.set_files(view(digits.quantized, name="answer.html"))
    expect(here.page.locator(".caption-title")).to_have_text("answer.circle")
    expect(here.page.locator("#sidebar")).to_be_visible()
