"""The viewer's offline page of each file of a front, beside it, as ``circle-view -o`` has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import luciole

if TYPE_CHECKING:
    from luciole.files import Fill
    from luciole.lquantizer.search.result import FrontFile, SearchResult


def write_pages(search: SearchResult, fill: Fill) -> None:
    """Write a page for each file of a front."""
    for file in search.front:
        fill(file.viewer.name, _page(file))


def _page(file: FrontFile) -> str:
    from luciole.drawing.blobs import Blobs
    from luciole.drawing.described import Look, described
    from luciole.drawing.document import Subject
    from luciole.drawing.page import html
    from luciole.tools.common.reading import read_model

    path, blobs = file.path, Blobs()
    read = read_model(str(path))
    subject = Subject(read.model, path.name, read.dialect.name, path.stat().st_size, read.findings)
    document = described([subject], blobs, Look(), luciole.__version__)
    return html(document, blobs.embedded())
