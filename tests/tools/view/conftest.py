"""One headless Chromium for all tests of the page, and pages of models."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)

import luciole
from luciole.tools.common.console import to_json
from luciole.tools.data import load_data
from luciole.tools.demo import DIGITS_PREPROCESS
from luciole.tools.view import command

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""What a headless Chromium needs where it may be root and has no network."""

DIGITS = Path(str(resources.files("luciole"))) / "demo_data"


@dataclass
class Digits:
    """The bundled network, float and quantized to 3 bits, with the report and the data."""

    float_model: Path
    quantized: Path
    report: Path
    data: str = f"{DIGITS / 'digits.npz'}:x_train"
    preprocess: str = DIGITS_PREPROCESS


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Digits:
    """Quantized once for all tests."""
    folder = tmp_path_factory.mktemp("digits")
    found = Digits(folder / "float.circle", folder / "answer.circle", folder / "report.json")
    model = luciole.load(DIGITS / "digits.circle")
    data = load_data(found.data, model.graph, limit=300, preprocess=found.preprocess)
    result = luciole.quantize(model, data.records, encode_bits=3)
    luciole.save(model, found.float_model)
    luciole.save(result.model, found.quantized)
    found.report.write_text(to_json(result.report.to_json()))
    return found


@dataclass
class Visit:
    """An open page, with everything that went wrong and everything that it asked for."""

    page: Page
    address: str
    wrong: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def run(self, expression: str) -> object:
        """What a JavaScript expression gives in the page."""
        found: object = self.page.evaluate(expression)
        return found

    def said(self, message: ConsoleMessage) -> None:
        """Keep what the browser complains of."""
        if message.type in ("error", "warning"):
            self.wrong.append(message.text)

    def settle(self) -> None:
        """Wait until the page has drawn."""
        self.page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    def check(self) -> None:
        """No error on the console, and no request off the page."""
        assert self.wrong == []
        inner = ("data:", "blob:")
        outside = [r for r in self.requests if not r.startswith((self.address, *inner))]
        assert outside == []


expect.set_options(timeout=30_000)  # milliseconds: other tests may take the machine
Scheme = Literal["light", "dark"]
Open = Callable[..., Visit]
View = Callable[..., Path]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium; tests are skipped where there is none."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("LUCIOLE_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("needs chromium: install it or set LUCIOLE_CHROMIUM to its path")
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def window(browser: Browser) -> Iterator[BrowserContext]:
    """One window for all pages, 1280 x 800."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    context.new_page()  # a window without pages would close
    yield context
    context.close()


@pytest.fixture
def visit(window: BrowserContext) -> Iterator[Open]:
    """Opens pages, and checks each of them at the end."""
    opened: list[Visit] = []

    def go(address: str, fragment: str = "", scheme: Scheme = "light") -> Visit:
        page = window.new_page()
        page.emulate_media(color_scheme=scheme)
        here = Visit(page, address)
        page.on("console", here.said)
        page.on("pageerror", lambda error: here.wrong.append(str(error)))
        page.on("request", lambda request: here.requests.append(request.url))
        page.goto(address + fragment)
        page.wait_for_function("() => performance.getEntriesByName('drawn').length > 0")
        here.settle()
        opened.append(here)
        return here

    yield go
    for here in opened:
        here.check()
        here.page.close()


@pytest.fixture
def view(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> View:
    """Runs ``circle-view ... -o FILE`` and gives the file."""

    def write(*argv: str | Path, name: str = "page.html") -> Path:
        target = tmp_path / name
        assert command.main([*map(str, argv), "-o", str(target)]) == 0, capsys.readouterr().err
        return target

    return write


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> View:
    """The same, each page written once for all tests that look at it."""
    folder = tmp_path_factory.mktemp("pages")

    @cache
    def write(*argv: str | Path) -> Path:
        target = folder / f"page{len(list(folder.iterdir()))}.html"
        assert command.main([*map(str, argv), "-o", str(target)]) == 0
        return target

    return write


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures of the pages are kept: LUCIOLE_SCREENSHOTS, or a temporary folder."""
    folder = Path(os.environ.get("LUCIOLE_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
