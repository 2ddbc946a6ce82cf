"""Other files opened in a page: chosen, dropped, with keys alone, refused."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import FileChooser, expect

import luciole
from luciole.drawing.blobs import Blobs
from luciole.drawing.described import Look, described
from luciole.drawing.document import Subject
from luciole.drawing.page import html
from luciole.tools.view.opening import MOST_OPENED, Shown, served
from luciole.tools.view.server import Server
from tests.support import data_path
from tests.tools.view.conftest import Digits, Open, Scheme, View, Visit

DROP = """([name, content, zone]) => {
  const bytes = Uint8Array.from(atob(content), c => c.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], name));
  const event = (kind) => new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true });
  document.body.dispatchEvent(event('dragover'));
  const target = document.querySelectorAll('.zone')[zone];
  if (!target.getBoundingClientRect().width) throw new Error('the zones are hidden');
  target.dispatchEvent(event('drop'));
}"""
ALONE, BESIDE = 0, 1


@pytest.fixture
def server(digits: Digits) -> Iterator[Server]:
    """A served page of the quantized digits, which opens what it is given."""
    subjects, blobs = [Subject(luciole.load(digits.quantized), "answer.circle")], Blobs()
    page = html(described(subjects, blobs, Look()) | served(), {})
    shown = Shown(subjects, blobs, Look())
    running = Server(page, blobs, 0, shown.opened, MOST_OPENED)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


def drop(here: Visit, path: Path, zone: int) -> None:
    """Drop a file on one of the two zones."""
    content = base64.b64encode(path.read_bytes()).decode()
    here.page.evaluate(DROP, [path.name, content, zone])


def captions(here: Visit) -> list[str]:
    here.settle()
    return here.page.locator(".caption-title").all_inner_texts()


def choose(here: Visit, keys: str, path: Path) -> None:
    """Choose a file with keys alone, on the page that has the focus. A browser on a busy machine
    opens no dialog while it closes the last one: keys are pressed again.
    """
    here.page.bring_to_front()
    here.page.wait_for_function("document.hasFocus()")
    choosers: list[FileChooser] = []

    def keep(chooser: FileChooser) -> None:
        choosers.append(chooser)

    here.page.once("filechooser", keep)
    for _ in range(6):
        here.page.keyboard.press(keys)
        for _ in range(50):
            if choosers:
                choosers[0].set_files(path)
                return
            here.page.wait_for_timeout(100)
    raise AssertionError(f"{keys} opens no dialog")


def test_a_second_file_is_dropped_to_compare_and_its_layers_are_paired(
    visit: Open, server: Server, digits: Digits
) -> None:
    here = visit(server.url)
    drop(here, digits.float_model, BESIDE)
    expect(here.page.locator(".pane")).to_have_count(2)
    assert captions(here) == ["float.circle", "answer.circle"], "the float one comes first"
    here.page.evaluate("() => app.select(1, 0, 1)")
    expect(here.page.locator(".tag.replaced").first).to_be_visible()
    here.page.locator(".picker").first.wait_for()
    expect(here.page.locator("#sidebar")).to_contain_text("of the original weights clipped")
    assert here.page.title() == "float.circle and answer.circle"
    here.page.reload()
    here.settle()
    assert captions(here) == ["float.circle", "answer.circle"], "the server shows it too"


def test_a_second_page_of_the_server_compares_with_what_it_shows_itself(
    visit: Open, server: Server, digits: Digits
) -> None:
    resnet = data_path("models/resnet8_int8.tflite")
    mine, yours = visit(server.url), visit(server.url)
    drop(mine, resnet, ALONE)
    expect(mine.page.locator(".caption-title")).to_have_text("resnet8_int8.tflite")
    drop(yours, digits.float_model, BESIDE)
    expect(yours.page.locator(".pane")).to_have_count(2)
    assert captions(yours) == ["float.circle", "answer.circle"]
    drop(mine, digits.float_model, BESIDE)
    expect(mine.page.locator(".pane")).to_have_count(2)
    assert captions(mine) == ["float.circle", "resnet8_int8.tflite"]
    yours.page.evaluate("() => app.select(1, 0, 1)")
    yours.page.locator(".picker").first.wait_for()
    for here, names in ((mine, captions(mine)), (yours, captions(yours))):
        here.page.reload()
        here.settle()
        assert captions(here) == names


def test_a_model_is_compared_with_a_page_and_both_keep_their_values(
    visit: Open, server: Server, view: View, digits: Digits
) -> None:
    page = view(digits.float_model, name="float.html")
    here = visit(server.url)
    drop(here, page, BESIDE)
    expect(here.page.locator(".pane")).to_have_count(2)
    drop(here, data_path("models/resnet8_int8.tflite"), BESIDE)
    expect(here.page.locator(".caption-title", has_text="resnet8")).to_have_count(1)
    for place, operand in ((0, "bias"), (1, "filter")):
        here.page.evaluate(f"() => app.select({place}, 0, 1)")
        here.page.locator("summary", has_text=operand).click()
        here.page.locator(".values-part summary").first.click()
        here.page.locator(".numbers td").first.wait_for()


def test_another_file_is_opened_instead_with_its_values(visit: Open, server: Server) -> None:
    here = visit(server.url, "#node=:1")
    path = data_path("models/resnet8_int8.tflite")
    drop(here, path, ALONE)
    expect(here.page.locator(".caption-title")).to_have_text("resnet8_int8.tflite")
    assert "#" not in here.page.url
    here.page.locator(".node .title", has_text="Conv2D").first.click()
    here.page.locator("summary", has_text="filter").click()
    here.page.locator(".values-part summary").click()
    here.page.locator(".numbers td").first.wait_for()
    row = here.page.locator(".numbers tr").first.locator("td").all_inner_texts()
    op = luciole.load(path).graph.ops[0]
    assert op.operands[1] is not None
    assert op.operands[1].data is not None
    assert row == [str(x) for x in op.operands[1].data[0, 0, 0]]


def test_files_are_opened_and_compared_with_keys_alone(
    visit: Open, server: Server, digits: Digits
) -> None:
    here = visit(server.url)
    choose(here, "Control+o", digits.float_model)
    expect(here.page.locator(".caption-title")).to_have_text("float.circle")
    choose(here, "Control+Shift+o", digits.quantized)
    expect(here.page.locator(".pane")).to_have_count(2)
    assert captions(here) == ["float.circle", "answer.circle"]
    here.page.keyboard.press("ArrowDown")
    here.page.keyboard.press("ArrowDown")
    assert here.run("() => app.selection.n") is not None, "the drawing has the focus"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"nothing known", "broken.circle: not a .circle"),
        (b"PK\x03\x04 and so on", "broken.circle: .keras, .h5 or SavedModel is read by its path"),
        (b"\x18\0\0\0CIR0" + bytes(40), "broken.circle: "),
    ],
)
def test_what_is_no_model_is_refused_in_one_line(
    visit: Open, server: Server, tmp_path: Path, content: bytes, words: str
) -> None:
    here = visit(server.url)
    (tmp_path / "broken.circle").write_bytes(content)
    drop(here, tmp_path / "broken.circle", ALONE)
    message = here.page.locator("#message.bad-news")
    expect(message).to_contain_text(words)
    assert message.locator("bdi").inner_text().count("\n") == 0
    assert captions(here) == ["answer.circle"]
    here.page.keyboard.press("Escape")
    expect(here.page.locator("#message")).to_be_hidden()
    here.wrong = [w for w in here.wrong if "422" not in w]  # the browser says what it was answered


def test_a_file_that_is_too_large_is_not_sent(visit: Open, server: Server, tmp_path: Path) -> None:
    here = visit(server.url)
    here.run("() => { app.doc.most_opened = 10; }")
    (tmp_path / "large.circle").write_bytes(bytes(11))
    before = list(here.requests)
    drop(here, tmp_path / "large.circle", ALONE)
    expect(here.page.locator("#message")).to_contain_text("the page takes up to 10")
    assert here.requests == before


# ------------------------------------------------------------------------------- pages as files
def test_a_page_that_is_a_file_opens_and_compares_other_pages(
    visit: Open, view: View, digits: Digits, tmp_path: Path
) -> None:
    first = view(digits.float_model, name="float.html")
    second = view(digits.quantized, name="answer.html")
    here = visit(first.as_uri())
    drop(here, second, BESIDE)
    expect(here.page.locator(".pane")).to_have_count(2)
    assert captions(here) == ["float.circle", "answer.circle"]
    models = [luciole.load(digits.float_model), luciole.load(digits.quantized)]
    made = described([Subject(model, "m") for model in models], Blobs(), Look())
    wanted = [n.get("twin") for n in made["models"][1]["graphs"][0]["nodes"]]
    twins = here.run("() => app.doc.models[1].graphs[0].nodes.map(n => n.twin ?? null)")
    assert twins == wanted, "paired as by Python"
    statuses = here.run("() => app.doc.differences.map(d => d.status).sort()")
    assert statuses == sorted(d["status"] for d in made["differences"])
    here.page.evaluate("() => app.select(1, 0, 1)")
    expect(here.page.locator(".tag.replaced").first).to_be_visible()
    here.page.locator(".picker").first.wait_for()
    drop(here, second, ALONE)
    expect(here.page.locator(".pane")).to_have_count(1)
    assert captions(here) == ["answer.circle"]
    here.page.evaluate("() => app.select(0, 0, 1)")
    here.page.locator(".picker").first.wait_for()


def test_a_page_that_is_a_file_refuses_models_and_other_pages(
    visit: Open, view: View, digits: Digits, tmp_path: Path
) -> None:
    here = visit(view(digits.float_model).as_uri())
    drop(here, digits.quantized, ALONE)
    expect(here.page.locator("#message")).to_contain_text("Run circle-view answer.circle")
    damaged = view(digits.quantized, name="damaged.html")
    for text in (
        "<p>hello</p>",
        '<script id="document">{</script><script id="blobs">{}</script>',
        '<script id="document">{"models": []}</script><script id="blobs">{}</script>',
        damaged.read_text().replace('"flat":', '"other":'),
    ):
        damaged.write_text(text)
        drop(here, damaged, BESIDE)
        expect(here.page.locator("#message.bad-news")).to_be_visible()
        assert captions(here) == ["float.circle"]
        here.page.get_by_role("button", name="Close", exact=True).click()
    assert here.run("() => window.hacked === undefined")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [420, 640, 1400])
def test_pictures_with_a_dropped_second_file(
    visit: Open,
    server: Server,
    digits: Digits,
    screenshots: Path,
    width: int,
    scheme: Scheme,
) -> None:
    here = visit(server.url, scheme=scheme)
    here.page.set_viewport_size({"width": width, "height": 800})
    drop(here, digits.float_model, BESIDE)
    expect(here.page.locator(".pane")).to_have_count(2)
    here.page.evaluate("() => app.select(1, 0, 1)")
    here.page.locator(".picker").first.wait_for()
    here.settle()
    here.page.screenshot(path=screenshots / f"dropped{width}{scheme}.png")
    visible = here.page.locator(".node .title").all()
    assert len([t for t in visible if t.is_visible()]) >= 4
