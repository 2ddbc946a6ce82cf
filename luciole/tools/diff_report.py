"""Report the comparison of ``luciole diff``, for people, for other programs and for ONE's
viewers.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from luciole.interpreter.compare import Comparison, TensorErrors
from luciole.interpreter.metrics import Measures
from luciole.ir.names import is_stripped, short_names
from luciole.ir.text.common import one_line
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
_BAR = {True: 20, False: 10}


def as_json(comparison: Comparison, first: str, second: str) -> dict[str, Any]:
    """Turn everything into JSON values. Measures without a value are null."""
    return {
        "first": first,
        "second": second,
        "records": comparison.records,
        "layers": [_row(errors) for errors in comparison.layers],
        "outputs": [_row(errors) for errors in comparison.outputs],
        "unmatched": {"first": comparison.unmatched[0], "second": comparison.unmatched[1]},
    }


def _row(errors: TensorErrors) -> dict[str, Any]:
    top = {f"top{k}_match": share for k, share in errors.top.items()}
    kinds = {"kind": errors.kinds[0], "second_kind": errors.kinds[1]}
    return {"name": errors.name, **kinds, **errors.measures.as_dict(), **top}


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
    """Print layers with a bar each, the worst first, then the outputs."""
    short = short_names(e.name for e in comparison.layers)
    layers = (
        comparison.layers if in_order else sorted(comparison.layers, key=lambda e: -_size(e, by))
    )
    shown = layers if top is None else layers[:top]
    left_out = f", the {len(shown)} worst" if len(shown) < len(layers) else ""
    console.show(f"{len(layers)} layers over {comparison.records} records{left_out}")
    if shown:
        console.print_table(console.fitted(_layer_rows(shown, by, short)), styles=_STYLES)
    console.show()
    console.print_table(console.fitted(_output_rows(comparison.outputs)))
    _print_unmatched(comparison.unmatched)


def _size(errors: TensorErrors, by: str) -> float:
    value = errors.measures.as_dict()[by]
    return -1.0 if value is None else value


def _layer_rows(
    layers: Sequence[TensorErrors], by: str, short: Mapping[str, str]
) -> list[tuple[str, ...]]:
    wide = console.columns() >= _NARROW
    most = max((_size(e, by) for e in layers), default=0.0)
    heading = ("layer", "operator", by, "", "SNR", "cosine")
    rows = [heading + (("MPEIR", "MSE") if wide else ())]
    for e in layers:
        share = _size(e, by) / most if most > 0 else 0.0
        rows.append((one_line(short[e.name]), *_layer_cells(e, by, share, wide)))
    return rows


def _layer_cells(errors: TensorErrors, by: str, share: float, wide: bool) -> tuple[str, ...]:
    m = errors.measures
    cells = (
        _kinds(errors, wide),
        _percent(m.relative) if by == "relative" else _number(m.as_dict()[by]),
        bar(share, _BAR[wide]),
        _snr(m),
        "-" if m.cosine is None else f"{m.cosine:.4f}",
    )
    return cells + ((_number(m.mpeir), _number(m.mse)) if wide else ())


def _kinds(errors: TensorErrors, wide: bool) -> str:
    first, second = errors.kinds
    return first if first == second or not wide else f"{first} > {second}"


def _output_rows(outputs: Sequence[TensorErrors]) -> list[tuple[str, ...]]:
    tops = sorted({k for e in outputs for k in e.top})
    heading = ("output", *(f"top-{k}" for k in tops), "MAE", "MAPE", "MPEIR", "MSE", "SNR")
    rows = [heading]
    for e in outputs:
        m = e.measures
        shares = (_percent(e.top.get(k)) for k in tops)
        rows.append(
            (
                one_line(e.name),
                *shares,
                _number(m.mae),
                "-" if m.mape is None else f"{m.mape:.4g} %",
                _number(m.mpeir),
                _number(m.mse),
                _snr(m),
            )
        )
    return rows


def _print_unmatched(unmatched: tuple[list[str], list[str]]) -> None:
    short = short_names([*unmatched[0], *unmatched[1]])
    for which, all_names in zip(("first", "second"), unmatched, strict=True):
        names = [name for name in all_names if not is_stripped(name)]
        if len(names) < len(all_names):
            count = len(all_names) - len(names)
            console.show(f"the {which} model's names were taken off: {count} tensors have no pair")
        if names:
            listed = ", ".join(console.shortened(short[name], 40) for name in names[:3])
            rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
            console.show(f"only in the {which} model: {listed}{rest}")


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


def _snr(measures: Measures) -> str:
    if measures.snr_db is None:
        return "exact" if measures.mse == 0 else "-"
    return f"{measures.snr_db:.1f} dB"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
