"""Choose the models that a served page shows, also after the user opens another file in it."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import luciole
from luciole.drawing.blobs import Blobs
from luciole.drawing.described import Look, described
from luciole.drawing.document import Subject
from luciole.drawing.page import html
from luciole.importers.reader import named, reader_of_bytes
from luciole.ir import LucioleError, Model
from luciole.ir.analysis.widths import bits_of
from luciole.ir.findings import refusal
from luciole.ir.graph import all_ops
from luciole.ir.text.common import one_line
from luciole.tools.view.server import View

Json = dict[str, Any]

MOST_OPENED = 1 << 30
"""Bytes of a file that a page gives its server."""


class Shown:
    """Settings that the views of a server are made with. Only one file is read at a time."""

    def __init__(self, subjects: Sequence[Subject], blobs: Blobs, look: Look) -> None:
        self.subjects, self.look = tuple(subjects), look
        self.reading = threading.Lock()
        self._next = blobs.numbers.stop

    def opened(self, name: str, data: bytes, beside: bool) -> View:
        """Read a file's bytes and show its model, alone or ``beside`` the first one that was shown
        at first. The numbers of the arrays are all new.

        Of two, the one whose weights have fewer bits comes second. Raises LucioleError for what is
        not a model, for kinds that are not read from bytes, and while another file is read.
        """
        return self._opened(self.subjects, name, data, beside)

    def _opened(self, before: tuple[Subject, ...], name: str, data: bytes, beside: bool) -> View:
        """Make the view after a file was opened in one that shows other models."""
        if not self.reading.acquire(blocking=False):
            raise LucioleError("another file is being read")
        try:
            subject = opened_subject(name, data)
            subjects = _in_order(before[0], subject) if beside and before else [subject]
            blobs = Blobs(self._next)
            made = described(subjects, blobs, self.look, luciole.__version__) | served()
            self._next = blobs.numbers.stop
        finally:
            self.reading.release()
        page, document = html(made, {}).encode(), json.dumps(made, allow_nan=False).encode()
        return View(page, document, blobs, partial(self._opened, tuple(subjects)), len(data))


def served() -> Json:
    """Return the entries of a document whose page has a server."""
    return {"served": True, "most_opened": MOST_OPENED}


def opened_subject(name: str, data: bytes) -> Subject:
    """Read a file's bytes, also of a model that ``verify`` refuses. Raises LucioleError for what
    has no graph.
    """
    path = Path(one_line(Path(name).name or "file", 200))
    reader = reader_of_bytes(data, path.name)
    with named(path):
        model, findings, dialect, nodes = reader.read_bytes(data)
    if not model.graphs:
        raise LucioleError(f"{path.name}: {refusal(findings)}")
    return Subject(model, path.name, dialect.name, len(data), findings, nodes=nodes)


def _in_order(first: Subject, second: Subject) -> list[Subject]:
    """Put the model that was quantized behind the one that it may have been made of. What only the
    comparison before knew of the first is left out.
    """
    first = replace(first, originals={})
    return sorted([first, second], key=lambda subject: -_weight_bits(subject.model))


def _weight_bits(model: Model) -> float:
    """Return the mean width of the layers' weights, 0 without any."""
    widths = [bits.weights for op in all_ops(model.graphs) if (bits := bits_of(op)) is not None]
    return sum(widths) / len(widths) if widths else 0.0
