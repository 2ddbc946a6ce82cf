"""What boxes show, the keys, and controls that narrow windows and keyboards alone must reach."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

import luciole
from tests.support import data_path
from tests.tools.view.browser_support import OUTSIDE, OVERLAPS
from tests.tools.view.conftest import Digits, Open, View, Visit
from tests.tools.view.graphs import nested

ROWS = "() => [...document.querySelectorAll('.node .row')].map(t => t.textContent)"
STICKS_OUT = """() => [...document.querySelectorAll(
  'button, select, input, summary, [tabindex]')].filter((e) => {
  const { left, right, width, height } = e.getBoundingClientRect();
  const seen = width && height && e.checkVisibility({ visibilityProperty: true });
  return seen && (left < -0.5 || right > innerWidth + 0.5);
}).map(e => e.outerHTML.slice(0, 120))"""
LISTENING = """
const listening = new Set();
const add = EventTarget.prototype.addEventListener;
EventTarget.prototype.addEventListener = function (kind, ...others) {
  if (kind === 'click') listening.add(this);
  return add.call(this, kind, ...others);
};
window.onlyForMice = () => [...listening].filter((e) => e instanceof Element && e.isConnected
  && e.checkVisibility() && !e.matches('button, select, input, summary, [tabindex]')
  && !e.matches('#found li, svg.overview')).map((e) => e.outerHTML.slice(0, 120));
"""
"""Entries that are found have arrow keys, the overview of channels has a slider beside it."""


@pytest.fixture
def resnet(visit: Open, pages: View) -> Visit:
    return visit(pages(data_path("models/resnet8_int8.tflite")).as_uri())


def rows(here: Visit) -> list[str]:
    here.settle()
    found = here.run(ROWS)
    assert isinstance(found, list)
    return found


def test_keys_put_attributes_constants_and_names_into_the_boxes(resnet: Visit) -> None:
    page = resnet.page
    op = luciole.load(data_path("models/resnet8_int8.tflite")).graph.ops[0]
    before = rows(resnet)
    assert before[0].startswith("filter ")
    page.keyboard.press("Control+d")
    assert "stride_w = 1" in rows(resnet)
    page.keyboard.press("Control+u")
    assert op.name.endswith("conv2d/Conv2D1"), "a name of several parts"
    assert "conv2d" in rows(resnet), "layers have their short names"
    assert "model/activation_2/Relu;model/add/add" in rows(resnet), "others their own"
    page.keyboard.press("Control+i")
    assert not any(text.startswith("filter ") for text in rows(resnet))
    page.get_by_text("Show", exact=True).click()
    states = [e.get_attribute("aria-checked") for e in page.locator("[aria-checked]").all()]
    assert states == ["true", "false", "true"]
    for key in ("Control+d", "Control+u", "Control+i"):
        page.keyboard.press(key)
    assert rows(resnet) == before


@pytest.mark.parametrize("direction", ["vertical", "horizontal"])
@pytest.mark.parametrize("parts", [("attributes", "names"), ("constants",)])
def test_no_contents_make_boxes_overlap(
    visit: Open, view: View, tmp_path: Path, direction: str, parts: tuple[str, ...]
) -> None:
    path = tmp_path / "nested.circle"
    luciole.save(nested(), path)
    here = visit(view(path).as_uri())
    if direction == "horizontal":
        here.page.keyboard.press("Control+k")
    plain = here.run("() => app.view().scene.height")
    for part in parts:
        here.page.evaluate("part => app.show(part)", part)
    for opened in ("null", "new Set()", "new Set(app.view().groupIds())"):
        here.run(f"() => app.view().setOpen({opened})")
        assert here.run(OVERLAPS) == []
        assert here.run(OUTSIDE) == 0
    here.run("() => app.view().setOpen(null)")
    assert here.run("() => app.view().scene.height") != plain


def test_a_question_mark_opens_the_list_of_keys(resnet: Visit) -> None:
    page = resnet.page
    page.keyboard.press("?")
    keys = page.locator(".help-menu .menu-body")
    expect(keys).to_be_visible()
    for key in ("Ctrl+O", "Ctrl+D", "Ctrl+I", "Ctrl+U", "Ctrl+B"):
        expect(keys).to_contain_text(key)
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    page.keyboard.press("?")
    page.keyboard.press("?")
    expect(keys).to_be_hidden()


def test_the_sidebars_colour_is_the_nodes(resnet: Visit) -> None:
    page = resnet.page
    swatch = "() => document.querySelector('.head .swatch').style.background"
    page.evaluate("() => app.select(0, 0, 1)")
    seen = set()
    for mode in ("bits", "kind", "bytes"):
        page.get_by_label("Colour by").select_option(mode)
        page.get_by_role("tab", name="Selection").click()
        node = "() => { const p = document.createElement('p'); p.style.background = "
        node += "app.colours.of(app.nodeOf('0:0:1')).fill; return p.style.background; }"
        assert resnet.run(swatch) == resnet.run(node)
        seen.add(resnet.run(swatch))
    assert len(seen) == 3


@pytest.mark.parametrize("width", [420, 640])
def test_a_narrow_window_keeps_every_control_in_reach(
    visit: Open, view: View, digits: Digits, screenshots: Path, width: int
) -> None:
    here = visit(view(digits.float_model, digits.quantized).as_uri())
    page = here.page
    page.set_viewport_size({"width": width, "height": 800})
    page.evaluate("() => app.select(1, 0, 1)")
    page.locator(".level-table").first.wait_for()
    for tab in ("Selection", "Model", "Ranking", "Differences"):
        page.get_by_role("tab", name=tab).click()
        assert here.run(STICKS_OUT) == []
    for menu in page.locator("details.menu > summary").all():
        menu.click()
        here.settle()
        assert here.run(STICKS_OUT) == []
        page.screenshot(path=screenshots / f"menu{width}.png")
        page.keyboard.press("Escape")
    page.fill(".find input", "fully")
    assert here.run(STICKS_OUT) == []
    found = page.locator("#found").bounding_box()
    assert found is not None
    assert found["x"] >= 0
    assert found["x"] + found["width"] <= width
    page.keyboard.press("Escape")
    for pane in page.locator(".pane").all():
        box = pane.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) > 120
    page.get_by_role("button", name="Details").click()
    expect(page.locator("#sidebar")).to_be_hidden()


def test_what_a_click_reaches_a_keyboard_reaches(visit: Open, view: View, digits: Digits) -> None:
    address = view(digits.float_model, digits.quantized, "--report", digits.report).as_uri()
    here = visit(address)
    page = here.page
    page.add_init_script(LISTENING)
    page.reload()
    page.wait_for_function("() => performance.getEntriesByName('drawn').length > 0")
    for tab in ("Model", "Ranking", "Differences", "Selection"):
        page.get_by_role("tab", name=tab).press("Enter")
        assert here.run("() => onlyForMice()") == [], tab
    page.evaluate("() => app.select(1, 0, 1)")
    page.locator(".level-table").first.wait_for()
    page.evaluate("() => document.querySelectorAll('details').forEach(d => { d.open = true })")
    here.settle()
    assert here.run("() => onlyForMice()") == []


def test_tabbing_reaches_every_control(resnet: Visit) -> None:
    page = resnet.page
    page.evaluate("() => app.select(0, 0, 1)")
    page.evaluate("() => document.body.focus()")
    reachable = (
        "() => [...document.querySelectorAll('button, select, input, summary, svg.graph')]"
        ".filter(e => e.checkVisibility() && !e.disabled).length"
    )
    count = resnet.run(reachable)
    assert isinstance(count, int)
    page.evaluate("() => { window.reached = new Set(); }")
    for _ in range(count + 8):
        page.keyboard.press("Tab")
        page.evaluate("() => reached.add(document.activeElement)")
    missed = page.evaluate(
        "() => [...document.querySelectorAll('button, select, input, summary, svg.graph')]"
        ".filter(e => e.checkVisibility() && !e.disabled && !reached.has(e))"
        ".map(e => e.outerHTML.slice(0, 100))"
    )
    assert missed == []


def test_a_frame_shows_focus_for_keys_alone(resnet: Visit) -> None:
    page = resnet.page
    shown = "() => getComputedStyle(document.querySelector('svg.graph')).outlineStyle"
    page.locator(".node").first.click()
    assert page.evaluate("() => document.activeElement.matches('svg.graph')")
    assert page.evaluate(shown) == "none"
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("() => document.activeElement.matches('svg.graph')")
    assert page.evaluate(shown) == "solid"


@pytest.mark.parametrize("width", [420, 1400])
def test_the_legend_stands_below_the_graphs(
    visit: Open, pages: View, digits: Digits, width: int
) -> None:
    here = visit(pages(digits.float_model, digits.quantized).as_uri())
    here.page.set_viewport_size({"width": width, "height": 800})
    here.settle()
    legend = here.page.locator(".legend").bounding_box()
    panes = [pane.bounding_box() for pane in here.page.locator(".pane").all()]
    assert legend is not None
    assert len(panes) == 2
    assert all(pane and pane["y"] + pane["height"] <= legend["y"] for pane in panes)


def test_the_legend_covers_nothing_of_a_whole_graph(
    visit: Open, pages: View, digits: Digits
) -> None:
    here = visit(pages(digits.float_model, digits.quantized).as_uri())
    here.page.set_viewport_size({"width": 640, "height": 800})
    here.settle()
    here.run("() => app.views[0].fit()")
    here.settle()
    nodes = here.page.locator(".pane").first.locator(".node").all()
    boxes = [box for node in nodes if (box := node.bounding_box())]
    legend = here.page.locator(".legend").bounding_box()
    assert legend is not None
    assert len(boxes) == 6  # four operators between an input and an output
    assert max(box["y"] + box["height"] for box in boxes) <= legend["y"]
