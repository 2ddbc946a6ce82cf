"""Report the comparison of ``luciole diff``, for people, for other programs and for ONE's
viewers.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from luciole.interpreter.comparison import (
    Comparison,
    TensorErrors,
    cosine_text,
    size_of,
    snr_text,
)
from luciole.ir.names import short_names
from luciole.ir.text.common import one_line
from luciole.ir.text.table import number_text, percent_text
from luciole.tools.common import console

_COLOURS = (
    "#ffffcc", "#ffeda0", "#fed976", "#feb24c", "#fd8d3c", "#fc4e2a", "#e31a1c", "#bd0026",
    "#800026",
)  # fmt: skip
"""YlOrRd of https://colorbrewer2.org in 9 steps, as ONE's visq has it."""

_STYLES = {2: "bold", 3: "dark_orange", 4: "dim", 5: "dim"}
_VISQ_DIGITS = 4
_EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]
_NARROW = 100
_TOP_5 = (
    "top-1: records with the same first class; top-5: the share of the first 5 classes in common"
)
_BAR = {True: 20, False: 10}


def as_json(comparison: Comparison, first: str, second: str) -> dict[str, Any]:
    """Turn everything into JSON values. Measures without a value are null."""
    return {"first": first, "second": second, **comparison.to_json()}


def as_visq(comparison: Comparison, metric: str, first: str) -> dict[str, Any]:
    """Arrange one measure of every layer in the layout of ONE's visq, with its colours.

    MPEIR has colours from 0 to 1, SRMSE from 0 to its largest value, MSE and TAE over the range
    that they have in single records.
    """
    errors = {e.name: e.measures.as_dict()[metric] for e in comparison.layers}
    known = {name: value for name, value in errors.items() if value is not None}
    low, high = _colour_range(comparison, metric, list(known.values()))
    step = (high - low) / len(_COLOURS)
    scheme = [
        {"b": _rounded(low + i * step), "e": _rounded(low + (i + 1) * step), "c": colour}
        for i, colour in enumerate(_COLOURS)
    ]
    meta = {"model": os.path.basename(first), "metric": metric.upper(), "colorscheme": scheme}
    return {"meta": meta, "error": [{name: _rounded(value) for name, value in known.items()}]}


def _rounded(number: float) -> float:
    return round(number, _VISQ_DIGITS)


def _colour_range(
    comparison: Comparison, metric: str, values: Sequence[float]
) -> tuple[float, float]:
    if metric == "mpeir":
        return 0.0, 1.0
    if metric == "srmse":
        return 0.0, max(values, default=0.0)
    ranges = [e.ranges[metric] for e in comparison.layers if metric in e.ranges]
    return min((r.low for r in ranges), default=0.0), max((r.high for r in ranges), default=0.0)


_TITLES = {
    "mae": "Mean Absolute Error (MAE)",
    "mape": "Mean Absolute Percentage Error (MAPE)",
    "mpeir": "Mean Peak Error to Interval Ratio (MPEIR)",
    "mse": "Mean Squared Error (MSE)",
    "top1": "Ratio of Matched Indices between Top-1 results of the models",
    "top5": "Ratio of Matched Indices between Top-5 results of the models",
}


def print_measures(comparison: Comparison, names: Sequence[str]) -> None:
    """Print measures of the outputs as ONE's circle-eval-diff does: a title for each measure, and a
    line for each output that has it.
    """
    for name in names:
        console.show(_TITLES[name])
        for errors in comparison.outputs:
            console.show(_measure_line(errors, name))


def _measure_line(errors: TensorErrors, name: str) -> str:
    output = one_line(errors.name)
    if name.startswith("top"):
        share = errors.top.get(int(name[3:]))
        if share is None:
            return f"Top-{name[3:]} metric for {output} is ignored: it scores no such classes"
        return f"Mean Top-{name[3:]} match ratio for {output} is {share:.6g}"
    value = errors.measures.as_dict()[name]
    percent = "%" if name == "mape" else ""
    return f"{name.upper()} for {output} is {'nan' if value is None else f'{value:.6g}{percent}'}"


def print_report(comparison: Comparison, by: str, in_order: bool, top: int | None) -> None:
    """Print layers with a bar each, the worst first, where the error grows most, and then the
    outputs.
    """
    short = short_names(e.name for e in comparison.layers)
    layers = comparison.layers if in_order else comparison.ranked(by)
    shown = layers if top is None else layers[:top]
    left_out = f", the {len(shown)} worst" if len(shown) < len(layers) else ""
    console.show(f"{len(layers)} layers over {comparison.records} records{left_out}")
    if shown:
        console.print_table(console.fitted(_layer_rows(shown, by, short)), styles=_STYLES)
    if comparison.growth is not None:
        hint = "" if in_order else "; --in-order lists layers as they run"
        console.show(f"{comparison.growth.line(short)}{hint}")
    console.show()
    console.print_table(console.fitted(comparison.output_rows()))
    if any(5 in errors.top for errors in comparison.outputs):
        console.show(_TOP_5)
    for line in comparison.unmatched_lines():
        console.show(line)


def _layer_rows(
    layers: Sequence[TensorErrors], by: str, short: Mapping[str, str]
) -> list[tuple[str, ...]]:
    wide = console.columns() >= _NARROW
    most = max((size_of(e, by) for e in layers), default=0.0)
    heading = ("layer", "operator", by, "", "SNR", "cosine")
    rows = [heading + (("MPEIR", "MSE") if wide else ())]
    for e in layers:
        share = size_of(e, by) / most if most > 0 else 0.0
        rows.append((one_line(short[e.name]), *_layer_cells(e, by, share, wide)))
    return rows


def _layer_cells(errors: TensorErrors, by: str, share: float, wide: bool) -> tuple[str, ...]:
    m = errors.measures
    cells = (
        _kinds(errors, wide),
        percent_text(m.relative) if by == "relative" else number_text(m.as_dict()[by]),
        bar(share, _BAR[wide]),
        snr_text(m),
        cosine_text(m),
    )
    return cells + ((number_text(m.mpeir), number_text(m.mse)) if wide else ())


def _kinds(errors: TensorErrors, wide: bool) -> str:
    first, second = errors.kinds
    return first if first == second or not wide else f"{first} > {second}"


def bar(share: float, width: int) -> str:
    """Draw a bar for a share of ``width`` characters: blocks in eighths, # where the output cannot
    show these.
    """
    eighths = math.ceil(share * width * 8)
    try:
        "█▏".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return "#" * math.ceil(share * width)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8]
