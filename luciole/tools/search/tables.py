"""A search's front as comma-separated values."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luciole.lquantizer.search.result import SearchResult


def csv_of(search: SearchResult) -> str:
    """Write a row for each file: name, figures, and the format of each layer; no time where none
    was measured.
    """
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    timed = search.float_network.us > 0
    devices = list(search.float_network.costs)
    tuned = ["loss_before", "agreement_before"] if search.is_tuned else []
    drop = [f"drop: {search.unit}"] if search.unit else []
    head = ["file", "bytes", "loss", "agreement", *drop, "us", *devices, *tuned, *search.layers]
    table.writerow(head)
    for file in search.front:
        one = file.found
        drops = [one.drop] if search.unit else []
        us = one.us if timed else None
        figures = (one.bytes, one.loss, one.agreement, *drops, us)
        before = [] if one.before is None else [one.before.loss, one.before.agreement]
        table.writerow([file.path.name, *figures, *one.costs.values(), *before, *one.candidate])
    return text.getvalue()
