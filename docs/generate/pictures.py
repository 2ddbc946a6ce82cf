"""Make the pictures of README and the site: ``python3 -m docs.generate.pictures`` (Chromium).

The viewer is photographed, light and dark, with the bundled network beside its 2-bit form; what
the page shows then is kept beside the pictures, and tests compare it with what it shows now.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from docs.generate import chart, times

if TYPE_CHECKING:
    from playwright.sync_api import Page, ViewportSize

SCHEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
SIZE: ViewportSize = {"width": 1100, "height": 740}
SCALE = 1.5
"""Pixels of a picture for each one of the page, for screens that have more."""

SHOWN = chart.ASSETS / "viewer.json"
"""Texts of the viewer's page when it was photographed, without figures, which differ by machine."""

RECORDS = 300
_TEXTS = """() => [...document.querySelectorAll("svg text, aside h2, aside h3, aside th")]
  .map(e => e.textContent.replace(/[-+0-9.,]+/g, "#").trim()).filter(t => t && t.length < 60)"""


def page_file(folder: Path) -> Path:
    """Write the viewer's page of the bundled network and its 2-bit form."""
    import numpy as np

    import luciole

    data = Path(str(resources.files("luciole"))) / "demo_data"
    with np.load(data / "digits.npz") as arrays:
        images = (arrays["x_train"][:RECORDS].astype(np.float32) - 4.884) / 6.017
    model = luciole.load(data / "digits.circle")
    result = luciole.quantize(model, images, encode_bits=2)
    path = folder / "digits.html"
    luciole.view(model, result, data=images).save(path)
    return path


def arranged(page: Page, address: str) -> list[str]:
    """Open the page with the first layer chosen. Returns the kinds of text that it shows."""
    page.goto(address)
    page.wait_for_function("() => performance.getEntriesByName('drawn').length > 0")
    page.get_by_text("LQFullyConnected").first.click()
    page.mouse.move(0, 0)
    page.wait_for_timeout(500)
    texts: list[str] = page.evaluate(_TEXTS)
    return sorted(set(texts))


def photograph(chromium: str) -> None:
    """Write the pictures of the viewer and what they show."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        address = page_file(Path(folder)).as_uri()
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for scheme in SCHEMES:
            page = browser.new_page(viewport=SIZE, device_scale_factor=SCALE, color_scheme=scheme)
            texts = arranged(page, address)
            page.screenshot(path=chart.ASSETS / f"viewer-{scheme}.png")
        browser.close()
    SHOWN.write_text(json.dumps(texts, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main() -> int:
    """Make all pictures."""
    chart.DRAWING.write_text(chart.chart(chart.figures()), "utf-8")
    times.DRAWING.write_text(times.times(times.figures()), "utf-8")
    chromium = os.environ.get("LUCIOLE_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        print("the viewer is not photographed: chromium is missing", file=sys.stderr)
        return 1
    photograph(chromium)
    return 0


if __name__ == "__main__":
    sys.exit(main())
