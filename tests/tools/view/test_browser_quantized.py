"""What no other viewer has, in a real browser: levels, channels, figures, comparisons."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, expect

import luciole
from luciole.drawing import blobs
from luciole.drawing.levels import learned_weights
from luciole.ir import Graph, Model, learned_levels
from luciole.ir.ops.conv_2d import Conv2D
from luciole.schema.enums import Padding
from tests.tools.view.conftest import Digits, Open, View, Visit


@pytest.fixture
def compared(visit: Open, pages: View, digits: Digits) -> Visit:
    """The float network and its quantized form, with figures from everywhere."""
    bench = digits.report.parent / "bench.json"
    rows = [("hidden/tanh", 9.0), ("digit", 3.0), ("probabilities", 1.0)]
    bench.write_text(json.dumps({"operators": [{"name": n, "median_us": t} for n, t in rows]}))
    path = pages(
        digits.float_model, digits.quantized, "--report", digits.report, "--latency", bench,
        "--data", digits.data, "--preprocess", digits.preprocess, "--limit", "60",
    )  # fmt: skip
    return visit(path.as_uri())


def show(here: Visit, model: int, node: int) -> str:
    here.page.evaluate("([m, n]) => app.select(m, 0, n)", [model, node])
    here.settle()
    if here.page.locator(".levels").count():
        here.page.locator(".level-table").first.wait_for()
    return here.page.inner_text("#sidebar")


def test_bits_are_the_first_colours_and_badges(compared: Visit, screenshots: Path) -> None:
    page = compared.page
    page.screenshot(path=screenshots / "compare.png")
    assert "levels:w3a3" in page.locator(".badge").all_text_contents()
    legend = page.inner_text(".legend").split("\n")
    assert legend == ["3 bit", "32 bit", "no weights", "replaced", "removed"]
    colour = "e => getComputedStyle(e).color"
    outlines = (".legend .replaced", ".status.replaced")
    assert len({page.locator(one).first.evaluate(colour) for one in outlines}) == 1
    fills = page.evaluate(
        "() => [1, 3].map(n => getComputedStyle(document.querySelector(`#p1-n${n} path`)).fill)"
    )
    assert fills[0] == "rgb(28, 99, 201)" != fills[1]


def test_fit_shows_the_whole_of_both_graphs(compared: Visit) -> None:
    page = compared.page
    page.evaluate("() => app.views.forEach(v => v.zoom(4))")
    page.get_by_role("button", name="Fit", exact=True).click()
    assert page.evaluate("() => app.views.every(v => v.camera.k === v.fitScale())")


def test_a_channels_levels_are_those_of_the_model(
    compared: Visit, digits: Digits, screenshots: Path
) -> None:
    text = show(compared, 1, 1)
    page = compared.page
    page.screenshot(path=screenshots / "levels.png")
    assert "320 channels of 64 weights, 8 levels each" in text
    assert "Grey: the original weights" in text
    op = luciole.load(digits.quantized).graph.ops[0]
    learned = learned_weights(op)
    assert learned is not None
    levels, order = learned_levels.levels(learned.format.basis, learned.format.offset)
    weights = learned.values()
    for channel in (0, 7, 319):
        page.fill(".picker input[type=number]", str(channel))
        page.keyboard.press("Enter")
        rows = page.locator(".level-table").first.locator("tbody tr").all_inner_texts()
        cells = [row.split() for row in rows]
        shown = [float(c[0]) for c in cells]
        np.testing.assert_allclose(shown, levels[channel], rtol=2e-3, atol=1e-9)
        signs = [
            "".join("+" if c >> i & 1 else "\N{MINUS SIGN}" for i in range(3))
            for c in order[channel]
        ]
        assert [c[1] for c in cells] == signs
        near = np.abs(weights[channel][:, None] - levels[channel]).argmin(1)
        share = 100 * np.bincount(near, minlength=8) / 64
        np.testing.assert_allclose([float(c[2]) for c in cells], share, atol=0.06)


def test_the_channel_picker_steps_slides_and_finds_the_worst(compared: Visit) -> None:
    show(compared, 1, 1)
    page = compared.page
    value = "() => document.querySelector('.picker input').value"
    page.get_by_title("Next channel").click()
    assert compared.run(value) == "1"
    page.get_by_title("Previous channel").click()
    page.get_by_title("Previous channel").click()
    assert compared.run(value) == "0"
    page.locator(".picker input[type=range]").focus()
    page.keyboard.press("End")
    assert compared.run(value) == "319"
    page.locator(".overview").click(position={"x": 6, "y": 40})
    assert compared.run(value) in ("0", "1", "2")
    page.get_by_text("worst", exact=True).click()
    worst = page.inner_text(".channel .hint")
    page.fill(".picker input[type=number]", "5")
    page.keyboard.press("Enter")
    assert mse_of(page.inner_text(".channel .hint")) <= mse_of(worst)
    page.locator(".level").nth(2).hover()
    expect(page.locator(".level-table tr.marked")).to_have_count(1)


def mse_of(text: str) -> float:
    return float(text.rstrip(".").rpartition("mse ")[2])


def test_the_inputs_levels_lie_over_its_histogram(compared: Visit, screenshots: Path) -> None:
    text = show(compared, 1, 1)
    assert "Grey: the input over 60 records. Dotted: thresholds." in text
    part = compared.page.locator("section[aria-label='Learned levels of the input']")
    expect(part.locator(".threshold")).to_have_count(7)
    expect(part.locator(".level")).to_have_count(8)
    expect(part.locator(".bars")).to_have_count(1)
    part.scroll_into_view_if_needed()
    compared.page.locator(".sidebar-body").evaluate("e => { e.scrollTop = 700 }")
    compared.page.screenshot(path=screenshots / "input.png")


def test_figures_colour_rank_and_lead_to_nodes(compared: Visit, screenshots: Path) -> None:
    page = compared.page
    colours = page.get_by_label("Colour by")
    for title in ("latency", "output signal/noise", "weights error (MSE)", "bytes before"):
        colours.select_option(label=title)
        compared.settle()
        assert page.locator(".ranking tbody tr").count() >= 2
    colours.select_option(label="latency")
    rows = page.locator(".ranking tbody tr")
    assert [r.split("\n")[0].split("\t")[0] for r in rows.all_inner_texts()] == ["1", "2", "3"]
    expect(rows.first.locator("bdi")).to_have_text("hidden", use_inner_text=True)
    expect(rows.first.locator("bdi")).to_have_attribute("title", "hidden/tanh")
    expect(rows.first).to_contain_text("69.2", use_inner_text=True)
    page.screenshot(path=screenshots / "ranking.png")
    colours.select_option(label="bytes of constants")
    expect(rows.first).to_contain_text("83.2\N{NO-BREAK SPACE}KB", use_inner_text=True)
    rows.nth(1).click()
    expect(page.locator(".head h2")).to_have_text("LQFullyConnected", use_inner_text=True)


def test_differences_are_listed_and_both_sides_follow(compared: Visit, screenshots: Path) -> None:
    page = compared.page
    expect(page.locator(".tabs [aria-selected=true]")).to_have_text(
        "Differences", use_inner_text=True
    )
    entries = page.locator(".difference")
    expect(entries).to_have_count(3)
    expect(entries.first).to_contain_text("FullyConnected → LQFullyConnected", use_inner_text=True)
    expect(entries.first).to_contain_text("dB", use_inner_text=True)
    expect(page.locator(".status.replaced")).to_have_count(4)
    expect(page.locator(".status.removed")).to_have_count(1)
    entries.first.click()
    compared.settle()
    expect(page.locator(".focus rect")).to_have_count(2)
    text = page.inner_text("#sidebar")
    assert "weights: 32 bit became 3 bit" in text
    page.get_by_text("show the other one").click()
    compared.settle()
    assert "#node=hidden" in page.url
    expect(page.locator(".head h2")).to_have_text("FullyConnected", use_inner_text=True)
    page.get_by_label("Colour by").select_option(label="difference")
    expect(page.locator(".legend")).to_contain_text("replaced", use_inner_text=True)
    page.screenshot(path=screenshots / "differences.png")


OUTLINES = """() => ['replaced', 'dtype', 'changed', 'added', 'removed'].map((status) => {
  const outline = document.querySelector('.status');
  outline.setAttribute('class', `status ${status}`);
  const { stroke, fill, strokeDasharray } = getComputedStyle(outline);
  return [stroke, fill, strokeDasharray];
})"""


def test_a_saved_comparison_keeps_the_colours_of_differences(
    compared: Visit, window: BrowserContext, tmp_path: Path
) -> None:
    with compared.page.expect_download() as saved:
        compared.page.keyboard.press("Control+Alt+e")
    assert saved.value.suggested_filename == "answer-2of2.svg"
    saved.value.save_as(tmp_path / "saved.svg")
    picture = window.new_page()
    picture.goto((tmp_path / "saved.svg").as_uri())
    outlines = picture.evaluate(OUTLINES)
    picture.close()
    assert outlines == compared.run(OUTLINES)
    assert len({stroke for stroke, _, _ in outlines}) == 5


def test_without_the_float_model_the_page_says_how_to_get_the_histogram(
    visit: Open, view: View, digits: Digits, screenshots: Path
) -> None:
    here = visit(view(digits.quantized).as_uri())
    text = show(here, 0, 1)
    here.page.screenshot(path=screenshots / "alone.png")
    assert "Give the float model too" in text
    assert "comes with --data FILE" in text
    expect(here.page.locator(".bars")).to_have_count(0)


def test_what_is_left_out_of_a_file_is_said(
    visit: Open, view: View, digits: Digits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "MOST_BYTES", 2000)
    here = visit(view(digits.quantized).as_uri())
    here.page.evaluate("() => app.select(0, 0, 1)")
    here.page.locator("summary", has_text="weights_binary").click()
    expect(here.page.locator("#sidebar")).to_contain_text("The levels are left out of this file")
    expect(here.page.locator("#sidebar")).to_contain_text("Values left out")


def convolution() -> Model:
    """Two convolutions, of which the second one can be quantized."""
    model, chance = Model(), np.random.default_rng(0)
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 8, 8, 3))
    for name, shape in (("first", (8, 3, 3, 3)), ("second", (4, 3, 3, 8))):
        weights = graph.add_constant(f"{name}/w", chance.normal(size=shape).astype(np.float32))
        x = graph.append(
            Conv2D(x, weights, None, padding=Padding.SAME, stride_w=1, stride_h=1), name
        ).output
    graph.outputs = [x]
    return model


def test_learned_convolutions_have_levels_too(
    visit: Open, view: View, tmp_path: Path, screenshots: Path
) -> None:
    model = convolution()
    data = np.random.default_rng(1).normal(size=(30, 8, 8, 3)).astype(np.float32)
    result = luciole.quantize(model, data, encode_bits=2)
    first, second = tmp_path / "float.circle", tmp_path / "lq.circle"
    luciole.save(model, first)
    luciole.save(result.model, second)
    here = visit(view(first, second).as_uri())
    nodes = [type(op).__name__ for op in result.model.graph.ops]
    text = show(here, 1, 1 + nodes.index("LQConv2D"))
    here.page.screenshot(path=screenshots / "convolution.png")
    assert "4 channels of 72 weights, 4 levels each" in text
    assert "Grey: the original weights" in text
