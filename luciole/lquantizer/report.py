"""What a quantization did to each layer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from luciole.ir import Array, Model
from luciole.ir.text_common import one_line
from luciole.lquantizer.layers import constant_bytes

_LONGEST_NAME = 48
"""Characters of a layer's name in a table: converters write names of hundreds."""


@dataclass
class LayerReport:
    """One layer. Errors are of its output, float network against quantized one, on the calibration
    data.

    ``mse`` is the mean squared error, ``snr_db`` 10 log10(signal / error); ``weights_mse`` and
    ``input_mse`` are the errors of what was quantized. A layer that was left alone has a reason in
    ``skipped`` and no figures.
    """

    name: str
    input_bits: int | None = None
    weight_bits: int | None = None
    mse: float | None = None
    snr_db: float | None = None
    weights_mse: float | None = None
    input_mse: float | None = None
    bytes_before: int = 0
    bytes_after: int = 0
    skipped: str | None = None
    way: str | None = None
    """How the fit coded the weights: what was best on held-back records."""
    stages: dict[str, float | None] = field(default_factory=dict)
    """Signal-to-noise ratio in dB after each stage, on held-back records."""


@dataclass
class Report:
    """Everything that was done: layers in execution order, file sizes, warnings, seconds."""

    layers: list[LayerReport] = field(default_factory=list)
    bytes_before: int = 0
    bytes_after: int = 0
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)
    options: list[dict[str, float | int | str]] = field(default_factory=list)
    """What automatic widths were chosen from: layer, bits, bytes, noise-to-signal ratio."""
    finetuning: list[dict[str, float | None]] = field(default_factory=list)
    """Every epoch of a fine-tuning: losses, agreement with the float model, seconds."""

    def to_json(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        return asdict(self)

    def rows(self) -> list[tuple[str, ...]]:
        """The report as a table: a row of headings, then one row for each layer."""
        head = ("layer", "input bits", "weight bits", "error (mse)", "signal/noise", "bytes", "")
        rows = [head, *(_row(layer) for layer in self.layers)]
        return rows if any(row[-1] for row in rows) else [row[:-1] for row in rows]


def short(name: str) -> str:
    """A layer's name in a table: one line, and of a long one its end, which tells layers apart."""
    shown = one_line(name)
    return shown if len(shown) <= _LONGEST_NAME else f"...{shown[3 - _LONGEST_NAME :]}"


def _row(layer: LayerReport) -> tuple[str, ...]:
    name = short(layer.name)
    if layer.skipped is not None:
        empty = ("",) * 4
        return (name, *empty, f"{layer.bytes_before:,}", f"left alone: {layer.skipped}")
    mse = "" if layer.mse is None else f"{layer.mse:.3g}"
    snr = "" if layer.snr_db is None else f"{layer.snr_db:.1f} dB"
    size = f"{layer.bytes_before:,} -> {layer.bytes_after:,}"
    bits = "float" if layer.input_bits is None else str(layer.input_bits)
    return (name, bits, str(layer.weight_bits), mse, snr, size, "")


def error_of(wanted: Array, found: Array) -> tuple[float, float | None]:
    """Mean squared error, and signal-to-noise ratio in dB (None without signal or error)."""
    signal = float(np.mean(np.square(wanted, dtype=np.float64)))
    mse = float(np.mean(np.square(np.subtract(wanted, found, dtype=np.float64))))
    return mse, snr_db(signal, mse)


def snr_db(signal: float, mse: float) -> float | None:
    """10 log10(signal / error), None where there is no signal or no error."""
    return 10 * math.log10(signal / mse) if signal > 0 and mse > 0 else None


def in_order(
    model: Model, done: Mapping[str, LayerReport], skipped: Mapping[str, str]
) -> list[LayerReport]:
    """One report for every layer with weights, in the execution order of the float model."""
    reports = []
    for op in model.graph.ops:
        if op.quant is None:
            continue
        if op.name in done:
            reports.append(done[op.name])
        elif op.name in skipped:
            size = constant_bytes(op)
            why = skipped[op.name]
            reports.append(LayerReport(op.name, bytes_before=size, bytes_after=size, skipped=why))
    return reports
