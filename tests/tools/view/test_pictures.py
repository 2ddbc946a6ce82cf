"""The pictures in ``docs/assets`` show what the viewer shows: not their bytes, the texts."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import BrowserContext

from docs.generate.chart import ASSETS
from docs.generate.pictures import SCALE, SCHEMES, SHOWN, SIZE, arranged, page_file


def test_the_viewer_shows_what_its_picture_shows(window: BrowserContext, tmp_path: Path) -> None:
    """``python3 -m docs.generate.pictures`` photographs it again."""
    page = window.new_page()
    shown = arranged(page, page_file(tmp_path).as_uri())
    page.close()
    assert shown == json.loads(SHOWN.read_text("utf-8"))
    assert "LQFullyConnected" in shown


def test_there_is_a_picture_for_light_and_dark() -> None:
    for scheme in SCHEMES:
        start = (ASSETS / f"viewer-{scheme}.png").read_bytes()[:24]
        assert start[:8] == b"\x89PNG\r\n\x1a\n"
        assert int.from_bytes(start[16:20], "big") == SIZE["width"] * SCALE
