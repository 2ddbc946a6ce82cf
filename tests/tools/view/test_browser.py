"""The page in a real browser: it draws, finds, selects, folds, links, saves, and asks nobody."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import BrowserContext, expect

import luciole
from luciole.drawing.blobs import Blobs
from luciole.drawing.document import Subject, document
from luciole.drawing.measures import set_measures
from luciole.drawing.page import html
from luciole.drawing.text import TIMES
from luciole.ir import TensorType
from luciole.ir.verify import verify
from luciole.tools.view.server import Server
from tests.support import data_path
from tests.tools.view.browser_support import OUTSIDE, OVERLAPS
from tests.tools.view.conftest import Digits, Open, View, Visit
from tests.tools.view.graphs import HOSTILE, branchy, hostile, nested, network, odd, two_graphs

MODELS = (
    "ad01_fp32", "ad01_int8", "kws_fp32", "kws_int8", "mnist_lstm_fp32", "resnet8_fp32",
    "resnet8_int8", "vww_96_fp32", "vww_96_int8",
)  # fmt: skip
FILTER = f"int8 16{TIMES}3{TIMES}3{TIMES}3"
TITLES = "() => [...document.querySelectorAll('.node .title')].map(t => t.textContent)"


def written(model: luciole.Model, folder: Path) -> Path:
    path = folder / "model.circle"
    luciole.save(model, path)
    return path


def page_of(model: luciole.Model, folder: Path) -> Path:
    """A page without the detour over a model file."""
    blobs = Blobs()
    made = document([Subject(model, "model")], blobs)
    set_measures(made, {})
    path = folder / "direct.html"
    path.write_text(html(made, blobs.embedded()))
    return path


def titles(here: Visit) -> list[str]:
    found = here.run(TITLES)
    assert isinstance(found, list)
    return found


def sidebar(here: Visit) -> str:
    here.settle()
    return here.page.inner_text("#sidebar")


@pytest.fixture
def resnet(visit: Open, pages: View) -> Visit:
    return visit(pages(data_path("models/resnet8_int8.tflite")).as_uri())


@pytest.fixture(scope="module")
def nested_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(nested(), tmp_path_factory.mktemp("nested"))


@pytest.fixture
def groups(visit: Open, pages: View, nested_file: Path) -> Visit:
    return visit(pages(nested_file).as_uri())


@pytest.mark.parametrize("name", MODELS)
def test_every_model_opens(visit: Open, pages: View, screenshots: Path, name: str) -> None:
    path = data_path(f"models/{name}.tflite")
    here = visit(pages(path).as_uri())
    operators = {type(op).__name__ for op in luciole.load(path).graph.ops}
    assert operators & set(titles(here))
    expect(here.page.locator("#sidebar")).to_contain_text(f"{name}.tflite", use_inner_text=True)
    here.page.screenshot(path=screenshots / f"{name}.png")


def test_find_leads_to_a_node(resnet: Visit) -> None:
    page = resnet.page
    page.keyboard.press("Control+f")
    page.keyboard.type("conv2d 64x1x1x32")
    entries = page.locator("#found li[role=option]")
    expect(entries).to_have_count(2)
    expect(entries.first).to_contain_text("Conv2D", use_inner_text=True)
    page.keyboard.press("Enter")
    resnet.settle()
    expect(resnet.page.locator("#sidebar")).to_contain_text("Conv2D", use_inner_text=True)
    expect(resnet.page.locator("#sidebar")).to_contain_text(
        f"64{TIMES}1{TIMES}1{TIMES}32", use_inner_text=True
    )
    expect(page.locator(".focus rect")).to_have_count(1)
    box = page.locator(".focus rect").bounding_box()
    assert box is not None
    assert 0 < box["x"] < 900
    assert 43 < box["y"] < 800
    page.keyboard.press("Control+f")
    page.keyboard.type("nothing like it")
    expect(page.locator("#found")).to_have_text("nothing found", use_inner_text=True)
    page.keyboard.press("Escape")
    expect(page.locator("#found")).not_to_be_visible()


def test_a_click_selects_and_the_sidebar_tells(resnet: Visit, screenshots: Path) -> None:
    page = resnet.page
    page.locator(".node .title", has_text="Conv2D").first.click()
    text = sidebar(resnet)
    for word in ("CONV_2D", "stride_w", "SAME default", "8 bit weights", "filter", FILTER):
        assert word in text, word
    page.locator("summary", has_text="filter").click()
    page.locator(".values-part summary").click()
    page.locator(".numbers td").first.wait_for()
    text = sidebar(resnet)
    assert "8 bit, evenly spaced, 16 scales along axis 0." in text
    op = luciole.load(data_path("models/resnet8_int8.tflite")).graph.ops[0]
    assert op.operands[1] is not None
    values = op.operands[1].data
    assert values is not None
    row = page.locator(".numbers tr").first.locator("td").all_inner_texts()
    assert row == [str(x) for x in values[0, 0, 0]]
    page.screenshot(path=screenshots / "values.png")
    with page.expect_download() as saved:
        page.get_by_text("Save .npy").click()
    np.testing.assert_array_equal(np.load(io.BytesIO(saved.value.path().read_bytes())), values)


def test_a_click_on_an_edge_shows_its_tensor(resnet: Visit) -> None:
    page = resnet.page
    box = page.locator(".edge").nth(0).bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2 + 3, box["y"] + 0.75 * box["height"])
    expect(page.locator(".head h2")).to_have_text("Edge", use_inner_text=True)
    expect(resnet.page.locator("#sidebar")).to_contain_text("input_1_int8", use_inner_text=True)
    expect(resnet.page.locator("#sidebar")).to_contain_text("real = ", use_inner_text=True)
    expect(page.locator(".focus path")).to_have_count(1)
    page.mouse.click(box["x"] + 200, box["y"])
    expect(page.locator(".focus path")).to_have_count(0)


def test_links_lead_along_the_graph_and_back(resnet: Visit) -> None:
    page = resnet.page
    page.locator(".node .title", has_text="Conv2D").first.click()
    first = page.url
    assert "#node=model" in first
    page.locator(".tensor summary").last.click()
    page.locator(".links .link").last.click()
    assert page.url != first
    page.go_back()
    resnet.settle()
    assert page.url == first
    expect(resnet.page.locator("#sidebar")).to_contain_text(FILTER, use_inner_text=True)


def test_the_keyboard_walks_along_edges(resnet: Visit) -> None:
    page = resnet.page
    page.locator("svg.graph").focus()
    seen = []
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
        seen.append(page.inner_text(".head h2"))
        assert page.inner_text("#live")
    assert seen[0] == "input"
    assert seen[1] == seen[3] == "Conv2D"
    active = page.get_attribute("svg.graph", "aria-activedescendant")
    assert page.locator(f"#{active}").get_attribute("aria-label")
    page.keyboard.press("Escape")
    expect(page.locator(".focus rect")).to_have_count(0)


CAMERA = "() => Object.values(app.view().camera)"


def test_walking_over_the_whole_graph_keeps_it_in_sight(resnet: Visit) -> None:
    page = resnet.page
    page.get_by_role("button", name="Fit").click()
    whole = resnet.run(CAMERA)
    assert isinstance(whole, list)
    assert whole[2] < 0.6
    for key in ("ArrowDown", "ArrowDown", "e", "ArrowUp"):
        page.keyboard.press(key)
        assert resnet.run(CAMERA) == pytest.approx(whole)
    page.keyboard.press("Shift+Backspace")
    page.evaluate("() => { app.view().move({ x: 0, y: -900, k: 1 }); app.view().pick(null); }")
    page.keyboard.press("ArrowDown")
    assert resnet.run("() => app.view().camera.y") == 40, "the beginning is at the upper end"


def test_space_after_a_click_on_a_button_shows_the_whole_graph(resnet: Visit) -> None:
    page = resnet.page
    page.get_by_role("button", name="Fit").click()
    whole = resnet.run(CAMERA)
    page.get_by_role("button", name="Zoom in").click()
    page.keyboard.press("Space")
    assert resnet.run(CAMERA) == pytest.approx(whole)
    page.get_by_role("button", name="Zoom in").focus()
    page.keyboard.press("Space")
    assert resnet.run(CAMERA) != pytest.approx(whole)


def test_the_keyboard_selects_edges(resnet: Visit) -> None:
    """Those of the selected box in turn, forwards and backwards; arrows lead to their ends."""
    page = resnet.page
    page.locator("svg.graph").focus()
    page.evaluate(
        "() => app.select(0, 0, app.view().graph.nodes.findIndex(n => n.title === 'Add'))"
    )
    page.locator("svg.graph").focus()
    chosen = resnet.run("() => app.view().selected")
    around = resnet.run(
        "() => app.view().scene.edges.filter(e => [e.source, e.target]"
        ".includes(app.view().selected)).map(e => e.tensors.join())"
    )
    assert isinstance(around, list)
    assert len(around) >= 3, "two operands, and who reads the sum"
    seen = []
    for _ in range(len(around) + 1):
        page.keyboard.press("e")
        resnet.settle()
        seen.append(resnet.run("() => app.view().selectedEdge.tensors.join()"))
        assert page.inner_text("#live").startswith("edge, ")
        expect(page.locator(".focus path.after")).to_have_count(1)
        assert page.locator(".focus path.after").bounding_box() is not None
    assert seen == [*around, around[0]]
    page.keyboard.press("Shift+E")
    assert resnet.run("() => app.view().selectedEdge.tensors.join()") == around[-1]
    ends = "() => [app.view().selectedEdge.source, app.view().selectedEdge.target]"
    for key, end in (("ArrowDown", 1), ("ArrowUp", 0)):
        page.evaluate("key => app.view().pick(app.view().scene.byKey.get(key))", chosen)
        page.keyboard.press("e")
        wanted = resnet.run(ends)
        assert isinstance(wanted, list)
        page.keyboard.press(key)
        assert resnet.run("() => app.view().selected") == wanted[end]
    page.keyboard.press("Escape")
    for _ in range(2):
        page.keyboard.press("e")
    assert resnet.run("() => app.view().scene.edges.indexOf(app.view().selectedEdge)") == 1


def test_a_deep_link_opens_its_node(visit: Open, view: View, digits: Digits) -> None:
    address = view(digits.quantized).as_uri()
    here = visit(address, "#node=hidden%2Ftanh")
    expect(here.page.locator(".head h2")).to_have_text("LQFullyConnected", use_inner_text=True)
    expect(here.page.locator(".focus rect")).to_have_count(1)
    assert visit(address, "#node=%3A0").page.inner_text(".head h2") == "input"
    assert visit(address, "#node=no%20such").page.locator(".focus rect").count() == 0


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("block0/op5", ""),
        ("5", "12 nodes end with 5: net/stage0/block0/op5, net/stage0/block1/op15"),
        ("stage9/op2", "No node is called stage9/op2: there are net/stage0/block0/op2, "),
        ("sigmoid", "No node is called sigmoid: there are net/stage0/block0/op0, "),
    ],
)
def test_links_find_endings_of_names(
    visit: Open, pages: View, nested_file: Path, wanted: str, said: str
) -> None:
    page = visit(pages(nested_file).as_uri(), f"#node={wanted}").page
    expect(page.locator(".bad-news")).to_have_count(1 if said else 0)
    if said:
        expect(page.locator(".bad-news")).to_contain_text(said)
    else:
        expect(page.locator("#sidebar")).to_contain_text("net/stage0/block0/op5")


def test_groups_open_and_close(groups: Visit, screenshots: Path) -> None:
    page = groups.page
    page.get_by_text("Close groups").click()
    groups.settle()
    assert titles(groups).count("Relu") == 0
    expect(page.locator(".group")).to_have_count(3)
    page.locator(".group", has_text="stage0").click()
    groups.settle()
    expect(page.locator(".frame")).to_have_count(1)
    assert "GROUP" in sidebar(groups).upper()
    page.locator("svg.graph").focus()
    page.keyboard.press("Enter")
    groups.settle()
    expect(page.locator(".frame")).to_have_count(0)
    page.get_by_text("Open groups").click()
    groups.settle()
    page.screenshot(path=screenshots / "groups.png")
    assert titles(groups).count("Relu") > 3


FOCUSED = """() => {
  const here = document.activeElement;
  return here.getAttribute('aria-label') || here.textContent;
}"""


@pytest.mark.parametrize("direction", ["vertical", "horizontal"])
def test_no_choice_of_open_groups_makes_boxes_overlap(groups: Visit, direction: str) -> None:
    if direction == "horizontal":
        groups.page.keyboard.press("Control+k")
    found = groups.run("() => app.view().groupIds()")
    assert isinstance(found, list)
    chance = np.random.default_rng(0)
    for share in (0.0, 0.2, 0.5, 0.8, 1.0):
        chosen = [str(g) for g in np.array(found)[chance.random(len(found)) < share]]
        groups.page.evaluate("ids => app.view().setOpen(new Set(ids))", chosen)
        assert groups.run(OVERLAPS) == []
        assert groups.run(OUTSIDE) == 0


def test_a_hidden_node_is_shown_by_opening_its_groups(groups: Visit) -> None:
    groups.page.get_by_text("Close groups").click()
    groups.page.evaluate("() => app.select(0, 0, 60)")
    groups.settle()
    expect(groups.page.locator("#p0-n60")).to_have_count(1)
    groups.page.keyboard.press("Control+k")
    groups.settle()
    expect(groups.page.locator("#p0-n60")).to_have_count(1)


def test_a_large_graph_is_drawn_with_its_groups_closed(
    visit: Open, view: View, tmp_path: Path, screenshots: Path
) -> None:
    here = visit(view(written(nested(450), tmp_path)).as_uri())
    assert here.page.locator(".group").count() > 5
    here.page.screenshot(path=screenshots / "large.png")


def test_from_afar_five_thousand_operators_are_a_few_paths(
    visit: Open, tmp_path: Path, screenshots: Path
) -> None:
    model = network(5000, branchy(5000), lambda i: f"n{i}")
    here = visit(page_of(model, tmp_path).as_uri())
    near = here.page.locator("svg.graph *").count()
    assert 50 < near < 4000
    before = here.run("() => app.view().camera.y")
    here.page.locator(".minimap-box").click(position={"x": 10, "y": 100})
    assert here.run("() => app.view().camera.y") < before  # type: ignore[operator]  # numbers
    here.page.keyboard.press("Space")
    here.settle()
    assert here.page.locator("svg.graph *").count() < 40
    here.page.screenshot(path=screenshots / "afar.png")
    here.page.keyboard.press("Control+Shift+e")
    message = here.page.locator("#message.bad-news")
    expect(message).to_contain_text("is too large for a PNG that can be read: save it as SVG")


def test_a_model_of_two_graphs_shows_both(visit: Open, view: View, tmp_path: Path) -> None:
    address = view(written(two_graphs(), tmp_path)).as_uri()
    here = visit(address, "#node=called")
    here.page.get_by_role("button", name="inner").click()
    here.settle()
    expect(here.page.locator(".node")).to_have_count(32)
    here.page.get_by_label("Graph", exact=True).select_option(label="main")
    here.settle()
    expect(here.page.locator(".node")).to_have_count(23)
    linked = visit(address, "#node=net%2Fstage0%2Fblock0%2Fop3&graph=1")
    expect(linked.page.locator(".node")).to_have_count(32)
    expect(linked.page.locator(".head h2")).to_have_text("FullyConnected", use_inner_text=True)


def test_what_is_wrong_is_listed_and_leads_to_the_operator(visit: Open, tmp_path: Path) -> None:
    model = nested(20)
    model.graph.ops[3].output.dtype = TensorType.INT8
    model.graph.values[0].shape_signature = (-5, 16)
    findings = verify(model)
    made = document([Subject(model, "model", findings=findings)], Blobs())
    (tmp_path / "wrong.html").write_text(html(made, {}))
    here = visit((tmp_path / "wrong.html").as_uri())
    part = here.page.locator(".findings")
    expect(part.locator("h3")).to_have_text("What is wrong")
    expect(part.locator(".tag")).to_have_count(len(findings))
    expect(part.locator(".tag").first).to_have_text("error")
    sentence = "shape signature [-5,16] contradicts shape [1,16]"
    expect(part.get_by_text(sentence)).to_be_visible()
    part.get_by_role("button", name="subgraphs[0].operators[3]").first.click()
    here.settle()
    expect(here.page.locator(".head .name").first).to_have_text("net/stage0/block0/op3")


def test_odd_models_are_drawn(visit: Open, tmp_path: Path, screenshots: Path) -> None:
    empty = luciole.Model()
    empty.add_graph(luciole.Graph(None))
    for model in (odd(), empty):
        here = visit(page_of(model, tmp_path).as_uri())
        count = here.run("() => app.view().graph.nodes.length")
        assert isinstance(count, int)
        for n in range(count):
            here.page.evaluate("n => app.select(0, 0, n)", n)
            for part in ("details.tensor", "details.values-part"):
                here.page.evaluate(
                    "s => document.querySelectorAll(s).forEach(d => { d.open = true })", part
                )
            here.settle()
        here.page.keyboard.press("Control+k")
        here.settle()
    here.page.screenshot(path=screenshots / "empty.png")


def test_the_drawing_turns(resnet: Visit, screenshots: Path) -> None:
    boxes = "() => app.view().scene.items.map(i => [i.x, i.y])"
    down = np.array(resnet.run(boxes))
    resnet.page.keyboard.press("Control+k")
    resnet.settle()
    across = np.array(resnet.run(boxes))
    assert np.ptp(down[:, 1]) > np.ptp(down[:, 0])
    assert np.ptp(across[:, 0]) > np.ptp(across[:, 1])
    resnet.page.screenshot(path=screenshots / "across.png")


def test_zoom_keys_and_wheel(resnet: Visit) -> None:
    page, scale = resnet.page, "() => app.view().camera.k"
    page.locator("svg.graph").focus()
    before = resnet.run(scale)
    page.keyboard.press("Shift+ArrowUp")
    assert resnet.run(scale) == pytest.approx(before * 1.25)  # type: ignore[operator]  # a number
    page.keyboard.press("Shift+Backspace")
    assert resnet.run(scale) == pytest.approx(1)
    y = resnet.run("() => app.view().camera.y")
    page.mouse.move(400, 400)
    page.mouse.wheel(0, 100)
    page.wait_for_function("y => app.view().camera.y === y - 100", arg=y)
    page.keyboard.press("Control+m")
    page.mouse.wheel(0, 100)
    page.wait_for_function("() => app.view().camera.k < 1")
    page.mouse.down()
    page.mouse.move(500, 450)
    page.mouse.up()
    expect(page.locator(".focus rect")).to_have_count(0)


def test_the_drawing_is_saved_as_svg_and_png(groups: Visit) -> None:
    page = groups.page
    with page.expect_download() as saved:
        page.keyboard.press("Control+Alt+e")
    root = ElementTree.fromstring(saved.value.path().read_bytes())
    svg = "{http://www.w3.org/2000/svg}"
    words = texts(root)
    assert words.count("AddN") == sum(type(op).__name__ == "AddN" for op in nested().graph.ops)
    assert "var(--paper)" not in (root.findtext(f"{svg}style") or "").split("}")[0]
    with page.expect_download() as saved:
        page.keyboard.press("Control+Shift+e")
    content = saved.value.path().read_bytes()
    assert content.startswith(b"\x89PNG")
    width, height = (int.from_bytes(content[i : i + 4], "big") for i in (16, 20))
    assert height > 2 * width > 400
    assert height <= 16000


def texts(root: ElementTree.Element) -> list[str]:
    """Everything that an SVG picture says."""
    return ["".join(t.itertext()) for t in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("option", [(), ("--horizontal",)])
def test_the_saved_drawing_says_what_the_picture_without_a_browser_says(
    visit: Open, view: View, option: tuple[str, ...]
) -> None:
    path = data_path("models/resnet8_int8.tflite")
    here = visit(view(path, *option).as_uri())
    with here.page.expect_download() as saved:
        here.page.keyboard.press("Control+Alt+e")
    ours = ElementTree.fromstring(saved.value.path().read_bytes())
    plain = ElementTree.fromstring(view(path, *option, name="plain.svg").read_bytes())
    assert sorted(texts(ours)) == sorted(texts(plain))
    difference = [float(ours.attrib[k]) - float(plain.attrib[k]) for k in ("width", "height")]
    assert difference == [2 * (24 - 40)] * 2, "they differ by the room around the drawing"


def test_dark_mode_follows_the_system_and_the_button(
    visit: Open, view: View, digits: Digits, screenshots: Path
) -> None:
    address = view(digits.quantized).as_uri()
    colour = "() => getComputedStyle(document.body).backgroundColor"
    light, dark = visit(address).run(colour), visit(address, scheme="dark")
    assert dark.run(colour) != light
    dark.page.evaluate("() => app.select(0, 0, 1)")
    dark.settle()
    dark.page.screenshot(path=screenshots / "dark.png")
    dark.page.get_by_label("Light or dark").click()
    assert dark.run(colour) == light


def test_hostile_names_are_text(visit: Open, view: View, tmp_path: Path, screenshots: Path) -> None:
    here = visit(view(written(hostile(), tmp_path)).as_uri())
    for n in range(len(HOSTILE) + 2):
        here.page.evaluate("n => app.select(0, 0, n)", n)
        here.settle()
        here.page.locator(".tensor summary").first.click()
        here.page.locator(".name").first.wait_for()
    for word in ("script", "onerror", "nnnn", "hacked"):
        here.page.fill(".find input", word)
        assert here.page.locator("#found li").count() >= 1
    here.page.screenshot(path=screenshots / "hostile.png")
    assert here.run("() => window.hacked === undefined")
    expect(here.page.locator("img")).to_have_count(0)
    here.page.fill(".find input", "no name")
    assert here.page.locator("#found li[role=option]").count() >= 1
    saved = here.run("() => app.view().scene.items.length")
    assert saved == len(HOSTILE) + 2


def test_the_page_can_be_used_without_a_mouse(resnet: Visit) -> None:
    page = resnet.page
    for selector in ("button", "select", "input", "svg.graph", "[role=tab]"):
        for element in page.locator(selector).all():
            named = element.get_attribute("aria-label") or element.get_attribute("title")
            assert named or element.inner_text().strip(), element
    page.keyboard.press("Tab")
    order = []
    for _ in range(18):
        order.append(page.evaluate(FOCUSED))
        page.keyboard.press("Tab")
    assert order[:2] == ["Open, compare, save", "Find nodes and tensors"]
    assert any("Arrow keys walk" in text for text in order)
    assert {"Model", "Ranking"} <= set(order)


@pytest.fixture
def served(digits: Digits) -> Iterator[Server]:
    """A served page whose arrays come on demand."""
    blobs = Blobs()
    made = document([Subject(luciole.load(digits.quantized), "answer.circle")], blobs)
    made["served"] = True
    running = Server(html(made, {}), blobs)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


def test_a_served_page_fetches_arrays_from_its_server_alone(visit: Open, served: Server) -> None:
    here = visit(served.url)
    assert [r for r in here.requests if "/blob/" in r] == []
    here.page.evaluate("() => app.select(0, 0, 1)")
    here.page.locator(".level-table").first.wait_for()
    fetched = [r for r in here.requests if "/blob/" in r]
    assert fetched
    assert all(r.startswith(f"{served.url}blob/") for r in fetched)


def test_a_served_page_refuses_to_be_framed(window: BrowserContext, served: Server) -> None:
    page = window.new_page()
    page.set_content(f'<iframe src="{served.url}"></iframe>')
    frame = page.frames[-1]
    frame.wait_for_url("chrome-error://**")
    assert frame.query_selector("#bar") is None
    page.close()


def test_an_address_for_once_opens_the_page(window: BrowserContext, served: Server) -> None:
    page = window.new_page()
    page.goto(served.url_for_once())
    page.wait_for_function("() => performance.getEntriesByName('drawn').length > 0")
    assert page.url == served.url
    page.close()
