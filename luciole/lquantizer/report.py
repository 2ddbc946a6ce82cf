"""Report what a quantization did to each layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from luciole.ir import Array, Model, TensorType, Value
from luciole.ir.analysis.constancy import constant_bytes
from luciole.ir.analysis.decoded import is_decoder
from luciole.ir.analysis.weights import has_levels, is_layer
from luciole.ir.calls import reachable
from luciole.ir.graph import all_ops
from luciole.ir.names import short_names
from luciole.ir.shown import Shown
from luciole.ir.text.common import first_named, one_line
from luciole.ir.text.table import aligned
from luciole.lquantizer.proof import Proof, Verdict

_LONGEST_NAME = 48
"""Characters of a name in a sentence: converters write names of hundreds."""
_NAMED = 5
"""Layers that a line names, at the most."""


def shown(name: str) -> str:
    """Write a name for a sentence: in one line, and cut off where it is long."""
    return one_line(name)[:_LONGEST_NAME]


@dataclass(frozen=True)
class Histogram:
    """How often values fall into bins of equal width between two limits."""

    low: float
    high: float
    counts: list[int]


def histogram(values: Array, bins: int = 64) -> Histogram:
    """Count numbers of any shape, at least one, all finite, in bins."""
    low, high = float(values.min()), float(values.max())
    counts, _ = np.histogram(values, bins, (low, high))
    return Histogram(low, high, counts.tolist())


@dataclass
class LayerReport:
    """One layer. Errors are of its output, float network against quantized one, on the calibration
    data; of what a RELU behind it lets pass, and of the sum where it makes up for another branch.

    ``mse`` is the mean squared error, ``snr_db`` 10 log10(signal / error); ``weights_mse`` and
    ``input_mse`` are the errors of what was quantized. A layer that was left alone has a reason in
    ``skipped`` and no figures; one without learned levels that has another format in a network of
    levels has it in ``spared``.
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
    spared: str | None = None
    way: str | None = None
    """The coding of the weights that was best on held-back records."""
    input_histogram: Histogram | None = None
    """The inputs that the levels were learned from, in the units that the layer sees."""
    short: str = ""
    """The shortest part of the name that no other layer has; a config takes it, too."""
    stages: dict[str, float | None] = field(default_factory=dict)
    """Signal-to-noise ratio in dB after each stage, on held-back records: ``baseline`` (the
    published form), ``offset`` (offsets and corrected bias too), ``output_aware`` (the fit) and
    ``fine_tuned``."""
    format: str = "float"
    """The format that it has in the file, as a word of ``assignment.layer_format``; empty where
    there is none."""
    bytes_int8: int | None = None
    """With learned levels: bytes that its weights, biases and scales would take in int:w8a8."""


@dataclass
class TensorReport:
    """One tensor between operators: what it held on the calibration data, and what its integers of
    type ``dtype`` hold, from ``least`` to ``most`` in steps of ``step``.

    ``clipped`` is the share of elements beyond that, ``snr_db`` what rounding and clipping leave of
    the signal, both by the histogram. ``rule`` says what set it: a rule of ``--ranges``, the
    operator that fixes it, tensors that it shares with, or the operator that reads it so.
    """

    name: str
    dtype: str
    low: float
    high: float
    least: float
    most: float
    step: float
    clipped: float
    snr_db: float | None
    rule: str


@dataclass
class Report(Shown):
    """Everything that was done: layers in execution order, file sizes, warnings, seconds."""

    layers: list[LayerReport] = field(default_factory=list)
    bytes_before: int = 0
    bytes_after: int = 0
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)
    options: list[dict[str, float | int | str]] = field(default_factory=list)
    """The figures behind automatic widths: layer, bits, bytes, noise-to-signal ratio."""
    stays_float: dict[str, int] = field(default_factory=dict)
    """Bytes of float constants by the operator that reads them, learned layers left out."""
    finetuning: list[dict[str, float | None]] = field(default_factory=list)
    """Every epoch of a fine-tuning: losses, agreement with the float model, seconds."""
    floats: list[str] = field(default_factory=list)
    """Operators that compute with floats between others that do with integers, with the reason."""
    rules: list[str] = field(default_factory=list)
    """A line for each rule of another tool's recipe: the operators that it chose for."""
    judged: Verdict | None = None
    """The loss of a network that was chosen for a target; None where none was given."""
    tensors: list[TensorReport] = field(default_factory=list)
    """Every tensor that was rounded, in execution order."""
    proof: Proof | None = None
    """The verdict on the file that was made of it; None where nobody asked."""

    def __repr__(self) -> str:
        done = sum(layer.skipped is None for layer in self.layers)
        size = f"{self.bytes_before:,} -> {self.bytes_after:,} bytes"
        return f"<Report: {done} of {len(self.layers)} layers quantized, {size}>"

    def __str__(self) -> str:
        lines = [repr(self), *aligned(self.rows())]
        for reason, names in self.left_alone().items():
            lines.append(f"left alone: {', '.join(names)}: {reason}")
        lines += self.beside_levels()
        lines += [f"warning: {text}" for text in self.warnings]
        return "\n".join([*lines, *(self.proof.lines() if self.proof else ())])

    def to_json(self) -> dict[str, Any]:
        """Turn the report into plain JSON values."""
        return asdict(self)

    def rows(self) -> list[tuple[str, ...]]:
        """List the layers that were quantized as a table: a row of headings, then one row for each.
        The figures in the middle are signal-to-noise ratios of its output in dB, stage by stage.
        """
        done = [layer for layer in self.layers if layer.skipped is None]
        stages = list(dict.fromkeys(stage for layer in done for stage in layer.stages))
        head = [_HEADINGS.get(stage, stage) for stage in stages] or ["signal/noise"]
        return [("layer", "format", *head, "bytes"), *(_row(layer, stages) for layer in done)]

    def left_alone(self) -> dict[str, list[str]]:
        """Group the layers that were left alone by the reason."""
        return self._by_reason(lambda layer: layer.skipped)

    def beside_levels(self) -> list[str]:
        """Write a line for each reason why layers have no learned levels but another format, and
        one of the layers that would be smaller without them.
        """
        spared = self._by_reason(lambda layer: layer.spared)
        lines = [f"no levels: {first_named(n, _NAMED)}: {why}" for why, n in spared.items()]
        larger = [
            f"{shown(one.short or one.name)} ({one.bytes_int8:,} bytes, not {one.bytes_after:,})"
            for one in self.layers
            if one.bytes_int8 is not None and one.bytes_int8 < one.bytes_after
        ]
        if larger:
            names = first_named(larger, _NAMED)
            lines.append(f"smaller in int:w8a8, which a config can give: {names}")
        return lines

    def _by_reason(self, reason: Callable[[LayerReport], str | None]) -> dict[str, list[str]]:
        reasons: dict[str, list[str]] = {}
        for layer in self.layers:
            why = reason(layer)
            if why is not None:
                reasons.setdefault(why, []).append(shown(layer.short or layer.name))
        return reasons


def float_bytes(model: Model) -> dict[str, int]:
    """Count the bytes of float constants by the name of the operator that reads them first, in all
    graphs, the largest first; learned layers are left out.
    """
    sizes: dict[str, int] = {}
    counted: set[int] = set()
    for op in all_ops(model.graphs):
        if has_levels(op) or is_decoder(op):
            continue
        own = {id(v.buffer): v.buffer for v in op.operands if v is not None and _is_float(v)}
        size = sum(len(b) for key, b in own.items() if key not in counted and b is not None)
        counted |= own.keys()
        if size:
            sizes[op.name] = sizes.get(op.name, 0) + size
    return dict(sorted(sizes.items(), key=lambda entry: -entry[1]))


def _is_float(value: Value) -> bool:
    floats = (TensorType.FLOAT16, TensorType.FLOAT32, TensorType.FLOAT64)
    return value.is_constant and value.dtype in floats


_HEADINGS = {"output_aware": "fit", "fine_tuned": "tuned"}


def _row(layer: LayerReport, stages: Sequence[str]) -> tuple[str, ...]:
    ratios = [layer.stages.get(stage) for stage in stages] if stages else [layer.snr_db]
    shown = ["" if ratio is None else f"{ratio:.1f}" for ratio in ratios]
    size = f"{layer.bytes_before:,} -> {layer.bytes_after:,}"
    return (one_line(layer.short or layer.name), layer.format, *shown, size)


def error_of(exact: Array, computed: Array) -> tuple[float, float | None]:
    """Compute mean squared error, and signal-to-noise ratio in dB (None without signal or
    error).
    """
    signal = float(np.mean(np.square(exact, dtype=np.float64)))
    mse = float(np.mean(np.square(np.subtract(exact, computed, dtype=np.float64))))
    return mse, snr_db(signal, mse)


def snr_db(signal: float, mse: float) -> float | None:
    """Compute 10 log10(signal / error), None where there is no signal or no error."""
    return 10 * math.log10(signal / mse) if signal > 0 and mse > 0 else None


def in_order(
    model: Model, done: Mapping[str, LayerReport], skipped: Mapping[str, str]
) -> list[LayerReport]:
    """Give one report for every layer, in the execution order of the float model; those of graphs
    that are called come behind.
    """
    layers = list(filter(is_layer, all_ops(reachable(model.graph))))
    short, reports = short_names(op.name for op in layers), []
    for op in layers:
        if op.name in done:
            reports.append(done[op.name])
        elif op.name in skipped:
            size, why = constant_bytes(op), skipped[op.name]
            reports.append(LayerReport(op.name, bytes_before=size, bytes_after=size, skipped=why))
    for layer in reports:
        layer.short = short[layer.name]
    return reports
