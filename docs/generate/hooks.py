"""What mkdocs calls while it builds the site: pages and parts of pages come from the code."""

from __future__ import annotations

import configparser
import html
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # this repository's luciole, also where another one is installed

from docs.generate import formats, notebooks, one, passes, programs, quantization, rooms  # noqa: E402

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

PROGRAMS = "reference/programs"
"""The folder of the programs' pages; the pages in it besides index.md are generated."""


def first_page(readme: str) -> str:
    """Turn README into the site's first page: without its heading and its last part, its links
    and pictures by where they are from there; files outside of docs are only named.
    """
    text = readme.partition("\n")[2].partition("\n## Reading on")[0]
    text = re.sub(r"\[([^\]]+)\]\((?!docs/|\w+:)[^)]+\)", r"\1", text)
    return text.replace("](docs/", "](").replace('"docs/assets', '"assets')


PARTS: dict[str, Callable[[], str]] = {
    "changelog": lambda: (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
    "formats": formats.table,
    "first-page": lambda: first_page((ROOT / "README.md").read_text(encoding="utf-8")),
    "folders": rooms.folders,
    "levels": quantization.levels,
    "one-options": one.options,
    "one-programs": one.programs,
    "passes": passes.directives,
    "programs": programs.table,
    "rooms": rooms.picture,
    "rooms-table": rooms.table,
    "walk": quantization.walk,
}
"""What stands in for ``<!-- generated: NAME -->`` in a page."""


GENERATED: dict[str, Callable[[], dict[str, str]]] = {
    PROGRAMS: programs.pages,
    "notebooks": notebooks.pages,
}
"""The generated pages of folders, whose index.md stands in the navigation."""


def on_config(config: MkDocsConfig) -> None:
    """Link to the sources, where they have an address, and name generated pages in the navigation,
    behind the page that lists them.
    """
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    config.repo_url = setup["addresses"]["sources"] or None
    for folder, pages in GENERATED.items():
        for listed in _lists(config.nav):
            if f"{folder}/index.md" in listed:
                listed += [f"{folder}/{name}.md" for name in pages()]


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    for folder, pages in GENERATED.items():
        for name, text in pages().items():
            files.append(File.generated(config, f"{folder}/{name}.md", content=text))


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put generated parts where a page asks for them. Raises KeyError for an unknown part."""
    return re.sub(r"<!-- generated: (\S+) -->", lambda found: PARTS[found[1]](), markdown)


_UNIT = r"(?:%|[KMG]?B|[mun]?s|dB|MHz)(?!\w)"
_PARTS = re.compile(
    rf"<pre.*?</pre>|<code>([^<]*)</code>|<code.*?</code>|<[^>]*>|(\d) (?={_UNIT})", re.DOTALL
)
"""Blocks, code in sentences, tags, and ends of numbers in front of their units."""
_HYPHENED = re.compile(r"\S*-\S*")
_MOST_KEPT = 24
"""Letters of a word of code that fits on a line of a narrow screen."""


def on_page_content(content: str, **_: object) -> str:
    """Keep short words of code in sentences, such as options, from breaking at their hyphens, and
    numbers beside their units.
    """

    def word(part: re.Match[str]) -> str:
        is_short = len(html.unescape(part[0])) <= _MOST_KEPT
        return f'<span class="unbroken">{part[0]}</span>' if is_short else part[0]

    def kept(part: re.Match[str]) -> str:
        code, digit = part.groups()
        if code is not None:
            return f"<code>{_HYPHENED.sub(word, code)}</code>"
        return part[0] if digit is None else f"{digit}&nbsp;"

    return _PARTS.sub(kept, content)


def _lists(nav: Any) -> Iterator[list[Any]]:
    """Find all lists of a navigation, whose entries are pages or dictionaries by title."""
    if isinstance(nav, list):
        yield nav
        for entry in nav:
            yield from _lists(entry)
    elif isinstance(nav, dict):
        for entry in nav.values():
            yield from _lists(entry)
