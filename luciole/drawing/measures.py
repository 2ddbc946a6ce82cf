"""Figures of operators that colour a drawing: bytes, latency, quantization errors.

They come from the model, from the quantizer's report, from ``circle-bench --json`` and from
``luciole diff --json``, and are matched by operator name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from luciole.drawing.document import Figures
from luciole.drawing.levels import InputHistogram
from luciole.drawing.text import rounded, shown_name
from luciole.ir import LucioleError
from luciole.ir.text.common import one_line

Json = dict[str, Any]


_INTEGERS = "/integers"
"""The quantizer's suffix to the name of an input or an output for its integers."""


class Measure(NamedTuple):
    """A figure of an operator: its name, its unit, and which of its ends is bad."""

    title: str
    unit: str
    worse: str


MEASURES = {
    "bytes": Measure("bytes of constants", "B", "high"),
    "bytes_before": Measure("bytes before", "B", "high"),
    "latency_us": Measure("latency", "us", "high"),
    "latency_share": Measure("share of the latency", "%", "high"),
    "snr_db": Measure("output signal/noise", "dB", "low"),
    "mse": Measure("output error (MSE)", "", "high"),
    "cosine": Measure("output cosine", "", "low"),
    "peak": Measure("output peak error / range", "", "high"),
    "stage_baseline": Measure("held-back signal/noise, published form", "dB", "low"),
    "stage_offset": Measure("held-back signal/noise, with offsets", "dB", "low"),
    "stage_output_aware": Measure("held-back signal/noise, fitted", "dB", "low"),
    "stage_fine_tuned": Measure("held-back signal/noise, fine-tuned", "dB", "low"),
    "weights_snr_db": Measure("weights signal/noise", "dB", "low"),
    "weights_mse": Measure("weights error (MSE)", "", "high"),
    "input_mse": Measure("input error (MSE)", "", "high"),
    "rounding_snr_db": Measure("signal/noise of its rounded result", "dB", "low"),
    "clipped": Measure("clipped share of its result", "%", "high"),
    "alone_agree": Measure("answers that stay where it alone is integers", "%", "low"),
    "alone_snr_db": Measure("signal/noise of the network where it alone is integers", "dB", "low"),
    "spared_agree": Measure("answers that stay where it alone is float", "%", "high"),
    "spared_snr_db": Measure("signal/noise of the network where it alone is float", "dB", "high"),
}

_TRIALS = {"only": "alone", "others": "spared"}
"""Names, in a table of sensitivities, of the networks that were tried for each layer."""

_ALSO = {
    "snr": "snr_db",
    "sqnr": "snr_db",
    "sqnr_db": "snr_db",
    "cosine_similarity": "cosine",
    "peir": "peak",
    "mpeir": "peak",
    "peak_error": "peak",
    "peak_in_range": "peak",
    "median_us": "latency_us",
}
"""Names of figures in other files, and ours."""


def add(figures: Figures, others: Figures) -> None:
    """Add figures; a later one of the same kind counts."""
    for name, own in others.items():
        figures.setdefault(name, {}).update(own)


def put(figures: Figures, others: Figures) -> None:
    """Add figures of another source, which alone counts for the kinds that it measured: in a list
    of layers, one figure has one source.
    """
    kinds = {kind for own in others.values() for kind in own}
    for own in figures.values():
        for kind in kinds & own.keys():
            del own[kind]
    add(figures, others)


def report_figures(content: Any, path: str) -> Figures:
    """Read the figures of the quantizer's report (``--report``), of layers and of tensors; that of
    ``--sensitivity`` tells what layers lose alone, and others without them.

    Raises LucioleError for another file.
    """
    layers = _rows(content, path, "layers", "a quantizer's report")
    figures = _of_rows(layers)
    for row in layers:
        figures[str(row["name"])] |= _of_trials(row) | _of_stages(row)
    for name, row in _tensors(content, path).items():
        numbers = {}
        if _is_number(row.get("snr_db")):
            numbers["rounding_snr_db"] = float(row["snr_db"])
        if _is_number(row.get("clipped")):
            numbers["clipped"] = 100 * float(row["clipped"])
        for called in (name, f"{name}{_INTEGERS}"):
            figures[called] = figures.get(called, {}) | numbers
    return figures


def _of_stages(row: Mapping[str, object]) -> dict[str, float]:
    """Read a layer's signal-to-noise ratios after each stage, on held-back records."""
    stages = row.get("stages")
    named = stages.items() if isinstance(stages, Mapping) else ()
    figures = {f"stage_{name}": figure for name, figure in named}
    return {
        n: float(figure) for n, figure in figures.items() if n in MEASURES and _is_number(figure)
    }


def _of_trials(row: Mapping[str, Any]) -> dict[str, float]:
    """Read the losses of networks in which a layer alone is integers, or alone is not."""
    figures = {}
    for name, called in _TRIALS.items():
        tried = row.get(name)
        noise, agree = (tried.get(k) if isinstance(tried, Mapping) else None for k in _LOST)
        if isinstance(noise, int | float) and noise > 0:
            figures[f"{called}_snr_db"] = -10 * math.log10(noise)
        if isinstance(agree, int | float):
            figures[f"{called}_agree"] = float(agree)
    return figures


_LOST = ("noise", "agree")


def _tensors(content: Any, path: str) -> dict[str, Mapping[str, Any]]:
    """Read the tensors of a report of uniform integers, by name, as they are made."""
    if not isinstance(content, Mapping) or "tensors" not in content:
        return {}
    rows: dict[str, Mapping[str, Any]] = {}
    for row in _rows(content, path, "tensors", "a quantizer's report"):
        rows.setdefault(str(row["name"]), row)
    return rows


def report_histograms(content: Any, path: str) -> dict[str, InputHistogram]:
    """Read the inputs' histograms of a report, where it has ``input_histogram``: low, high,
    counts.
    """
    histograms = {}
    for row in _rows(content, path, "layers", "a quantizer's report"):
        histogram = row.get("input_histogram")
        if isinstance(histogram, Mapping) and {"low", "high", "counts"} <= histogram.keys():
            histograms[str(row["name"])] = _histogram(histogram, path)
    return histograms


def _histogram(content: Mapping[str, Any], path: str) -> InputHistogram:
    low, high, counts = (content[key] for key in ("low", "high", "counts"))
    numbers: list[Any] = [low, high, *counts] if isinstance(counts, list) else []
    if not numbers or not all(_is_number(n) and math.isfinite(n) for n in numbers):
        raise LucioleError(f"{path}: an input_histogram has finite low, high and a list of counts")
    counts = [int(count) for count in counts]
    return InputHistogram(float(low), float(high), counts, "the quantizer's report")


def report_notes(content: Any, path: str) -> dict[str, str]:
    """Find the quantizer's words on layers: why one was left alone, how it was coded."""
    notes = {}
    for row in _rows(content, path, "layers", "a quantizer's report"):
        if isinstance(row.get("skipped"), str):
            notes[str(row["name"])] = f"The quantizer left it alone: {row['skipped']}."
        elif isinstance(row.get("way"), str):
            notes[str(row["name"])] = f"How the weights were coded: {row['way']}."
    for name, row in _tensors(content, path).items():
        said = _of_tensor(row)
        for called in (name, f"{name}{_INTEGERS}") if said else ():
            notes[called] = " ".join(filter(None, (notes.get(called), said)))
    return notes


def _of_tensor(row: Mapping[str, Any]) -> str:
    """Describe in words the range of a tensor, the reach of its integers, and the rule for it."""
    keys = ("low", "high", "least", "most", "step", "clipped")
    if not all(_is_number(row.get(key)) for key in keys):
        return ""
    low, high, least, most, step, clipped = (row[key] for key in keys)
    return (
        f"Its result held {low:.4g} to {high:.4g}; {row.get('dtype')} reaches {least:.4g} to "
        f"{most:.4g} in steps of {step:.4g} ({row.get('rule')}), {100 * clipped:.3g} % is clipped."
    )


def latency_figures(content: Any, path: str) -> Figures:
    """Read the figures of ``circle-bench --json``. Raises LucioleError for another file."""
    figures = _of_rows(_rows(content, path, "operators", "circle-bench's JSON"))
    total = sum(f.get("latency_us", 0.0) for f in figures.values())
    for f in figures.values():
        if total and "latency_us" in f:
            f["latency_share"] = 100 * f["latency_us"] / total
    return figures


def error_figures(content: Any, path: str) -> Figures:
    """Read the figures of ``luciole diff --json``, or of any list of objects with ``name`` and
    errors.

    Raises LucioleError where there is none.
    """
    lists = [content] if isinstance(content, list) else []
    if isinstance(content, Mapping):
        lists += [v for v in content.values() if isinstance(v, list)]
    for rows in lists:
        figures = _of_rows(r for r in rows if isinstance(r, Mapping) and "name" in r)
        if any(f.keys() - {"bytes_before"} for f in figures.values()):
            return figures
    raise LucioleError(f"{path}: no list of objects with a name and errors such as mse or snr_db")


def _rows(content: Any, path: str, key: str, what: str) -> list[Mapping[str, Any]]:
    rows = content.get(key) if isinstance(content, Mapping) else None
    if not isinstance(rows, list) or not all(isinstance(r, Mapping) and "name" in r for r in rows):
        raise LucioleError(f"{path}: not {what}: a list {key!r} of objects with a name is needed")
    return rows


def _of_rows(rows: Iterable[Mapping[str, Any]]) -> Figures:
    figures: Figures = {}
    for row in rows:
        own = {
            _ALSO.get(key, key): float(value)
            for key, value in row.items()
            if _ALSO.get(key, key) in MEASURES and key != "bytes" and _is_number(value)
        }
        figures.setdefault(str(row["name"]), {}).update(own)
    return figures


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def set_measures(document: Json, figures: Figures) -> None:
    """Put figures into the nodes of all models of a document, and list their kinds in the
    document.
    """
    by_shown = {shown_name(name): own for name, own in figures.items()}
    present: set[str] = set()
    for node in _operators(document):
        known: dict[str, float | None] = {"bytes": float(node["bytes"])} if node["bytes"] else {}
        own: dict[str, float] = {}
        for name in _names(node):
            own = by_shown.get(name, {}) | own
        known |= {k: rounded(v) for k, v in own.items()}
        known = _of_weights(node) | known
        node["measures"] = {k: v for k, v in known.items() if v is not None}
        present |= node["measures"].keys()
    document["measures"] = [
        {"key": key, **MEASURES[key]._asdict()} for key in MEASURES if key in present
    ]


def set_notes(document: Json, notes: Mapping[str, str]) -> None:
    """Put the quantizer's words into the nodes that they are about."""
    by_shown = {shown_name(name): one_line(note, 400) for name, note in notes.items()}
    for node in _operators(document):
        matching = [by_shown[name] for name in _names(node) if name in by_shown]
        if matching:
            node["note"] = matching[0]


def names_any(document: Json, names: Iterable[str]) -> bool:
    """Return whether a name is one of an operator of a document."""
    known = {name for node in _operators(document) for name in _names(node)}
    return any(shown_name(name) in known for name in names)


def _names(node: Json) -> list[str]:
    """List the names of a node, its own first: the one before it was equalized, and the quantizer's
    name of the layer.
    """
    return [node[key] for key in ("name", "original", "layer") if key in node]


def _operators(document: Json) -> Iterable[Json]:
    for model in document["models"]:
        for graph in model["graphs"]:
            yield from (node for node in graph["nodes"] if node["what"] == "op")


def _of_weights(node: Json) -> dict[str, float | None]:
    error = node.get("levels", {}).get("weights", {}).get("error", {})
    return {f"weights_{key}": error.get(key) for key in ("snr_db", "mse") if key in error}


def set_bytes_before(document: Json) -> None:
    """Set, in a document of two models, what each operator of the second took in the first."""
    first = {node["id"]: node for node in _operators(document)}
    for node in _operators({"models": document["models"][1:]}):
        twin = first.get(node.get("twin", ""))
        if twin is not None and twin["bytes"]:
            node["measures"].setdefault("bytes_before", float(twin["bytes"]))
    if not any(m["key"] == "bytes_before" for m in document["measures"]):
        document["measures"].insert(
            1, {"key": "bytes_before", **MEASURES["bytes_before"]._asdict()}
        )
