"""Photograph pages to look at them: ``python3 -m docs.generate.screenshots FOLDER [MODELS]``.

README, the site's first page and a how-to, the viewer of each model, and, with ``--search PAGE``,
the page of a search: whole pages, 1400 and 420 pixels wide, light and dark, in the folder. Nobody
keeps them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from docs.generate.pictures import SCHEMES

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
WIDTHS = (1400, 420)
HEIGHT = 900
HOW_TO = "how-to/quantize"
_PAGE = """<!doctype html><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<base href="{base}/"><style>body {{ max-width: 50em; margin: 2em auto; padding: 0 1em;
font-family: sans-serif }} img {{ max-width: 100% }} pre {{ overflow: auto }} td {{ padding: .3em }}
table {{ display: block; overflow: auto }}</style>{body}"""


def readme(folder: Path) -> Path:
    """Render README as a page of its own."""
    import markdown

    text = (ROOT / "README.md").read_text("utf-8")
    body = markdown.markdown(text, extensions=["tables", "fenced_code", "md_in_html"])
    path = folder / "readme.html"
    path.write_text(_PAGE.format(base=ROOT.as_uri(), body=body), "utf-8")
    return path


def site(folder: Path) -> dict[str, Path]:
    """Build the site, and return the pages of it that are photographed."""
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(build, cwd=ROOT, env=environment, check=True)
    return {"site": folder / "index.html", "how-to": folder / f"{HOW_TO}.html"}


def viewers(models: Sequence[Path], folder: Path) -> dict[str, Path]:
    """Write the viewer's page of each model."""
    import luciole

    pages = {f"viewer-{model.stem}": folder / f"{model.stem}.html" for model in models}
    for model, page in zip(models, pages.values(), strict=True):
        luciole.view(model).save(page)
    return pages


def photograph(browser: Browser, pages: dict[str, Path], folder: Path) -> list[Path]:
    """Write pictures of pages, each in all widths and both schemes, and return where they are."""
    pictures = []
    for scheme in SCHEMES:
        for width in WIDTHS:
            page = browser.new_page(
                viewport={"width": width, "height": HEIGHT}, color_scheme=scheme
            )
            for name, file in pages.items():
                page.goto(file.as_uri())
                page.wait_for_timeout(800)
                pictures.append(folder / f"{name}-{width}-{scheme}.png")
                page.screenshot(path=pictures[-1], full_page=True)
            page.close()
    return pictures


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the pictures' files."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--search", type=Path, help="the report.html of a search")
    asked = parser.parse_args(arguments)
    chromium = os.environ.get("LUCIOLE_CHROMIUM") or shutil.which("chromium")
    asked.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as driver:
        here = Path(place)
        pages = {"readme": readme(here), **site(here / "site"), **viewers(asked.models, here)}
        if asked.search is not None:
            pages["search"] = asked.search.resolve()
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for picture in photograph(browser, pages, asked.folder):
            print(picture)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
