"""A search's front as comma-separated values."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luciole.lquantizer.search.result import SearchResult


def csv_of(found: SearchResult) -> str:
    """Write a row for each file: name, figures, and what each layer is."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    devices = list(found.float_network.costs)
    tuned = ["loss_before", "agreement_before"] if found.is_tuned else []
    table.writerow(["file", "bytes", "loss", "agreement", "us", *devices, *tuned, *found.layers])
    for file in found.front:
        one = file.found
        figures = (one.bytes, one.loss, one.agreement, one.us)
        before = [] if one.before is None else [one.before.loss, one.before.agreement]
        table.writerow([file.path.name, *figures, *one.costs.values(), *before, *one.candidate])
    return text.getvalue()
