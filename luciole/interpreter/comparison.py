"""What a comparison of two models found, and how it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from luciole.interpreter.growth import Growth
from luciole.interpreter.metrics import Measures, Range
from luciole.ir.names import is_stripped, short_names
from luciole.ir.text.common import first_named, one_line
from luciole.ir.text.table import aligned, number_text, percent_text, shortened

MOST_LISTED = 3
"""Names that a sentence lists."""
_LONGEST = 40
_MOST_PERCENT = 100_000


@dataclass
class TensorErrors:
    """One tensor of both models: its name in the first one, the kinds of the operators that compute
    it, the distance, and for outputs how often the largest elements are the same (by their number).
    """

    name: str
    kinds: tuple[str, str]
    measures: Measures
    ranges: dict[str, Range]
    top: dict[int, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Turn the errors into plain JSON values. Measures without a value are None."""
        top = {f"top{k}_match": share for k, share in self.top.items()}
        kinds = {"kind": self.kinds[0], "second_kind": self.kinds[1]}
        return {"name": self.name, **kinds, **self.measures.as_dict(), **top}


@dataclass
class Comparison:
    """All compared tensors in the order in which the first model computes them, its outputs, the
    computed tensors of each model that the other one has not, and the layer in which the relative
    error grows most, None where it grows nowhere.
    """

    records: int
    layers: list[TensorErrors]
    outputs: list[TensorErrors]
    unmatched: tuple[list[str], list[str]]
    growth: Growth | None = None

    def to_json(self) -> dict[str, Any]:
        """Turn everything into plain JSON values."""
        return {
            "records": self.records,
            "layers": [errors.to_json() for errors in self.layers],
            "outputs": [errors.to_json() for errors in self.outputs],
            "unmatched": {"first": self.unmatched[0], "second": self.unmatched[1]},
            "growth": None if self.growth is None else self.growth.to_json(),
        }

    def ranked(self, by: str = "relative") -> list[TensorErrors]:
        """List the layers by one of the measures, the worst first."""
        return sorted(self.layers, key=lambda errors: -size_of(errors, by))

    def output_rows(self) -> list[tuple[str, ...]]:
        """Write the outputs as a table: a row of headings, then one row for each."""
        tops = sorted({k for e in self.outputs for k in e.top})
        shares = [f"top-{k}" for k in tops]
        rows: list[tuple[str, ...]]
        rows = [("output", *shares, "MAE", "MAPE", "MPEIR", "MSE", "SNR")]
        for errors in self.outputs:
            m = errors.measures
            cells = (number_text(m.mae), mape_text(m.mape), number_text(m.mpeir))
            rows.append(
                (
                    one_line(errors.name),
                    *(percent_text(errors.top.get(k)) for k in tops),
                    *(*cells, number_text(m.mse), snr_text(m)),
                )
            )
        return rows

    def unmatched_lines(self) -> Iterator[str]:
        """Name tensors of each model that the other one has not."""
        short = short_names([*self.unmatched[0], *self.unmatched[1]])
        for which, names in zip(("first", "second"), self.unmatched, strict=True):
            named = [name for name in names if not is_stripped(name)]
            if len(named) < len(names):
                count = len(names) - len(named)
                yield f"the {which} model's names were taken off: {count} tensors have no pair"
            if named:
                yield f"only in the {which} model: {_listed(short[name] for name in named)}"

    def __str__(self) -> str:
        short = short_names(errors.name for errors in self.layers)
        rows = [("layer", "operator", "relative", "SNR", "cosine")]
        rows += [(one_line(short[e.name]), e.kinds[0], *layer_cells(e)) for e in self.ranked()]
        head = f"{len(self.layers)} layers over {self.records} records"
        layers = aligned(rows) if self.layers else []
        growth = [] if self.growth is None else [self.growth.line(short)]
        outputs = aligned(self.output_rows())
        return "\n".join([head, *layers, *growth, "", *outputs, *self.unmatched_lines()])


def _listed(names: Iterable[str]) -> str:
    return first_named([shortened(name, _LONGEST) for name in names], MOST_LISTED)


def size_of(errors: TensorErrors, by: str) -> float:
    """Return a measure to rank by; none is below all others."""
    value = errors.measures.as_dict()[by]
    return -1.0 if value is None else value


def layer_cells(errors: TensorErrors) -> tuple[str, str, str]:
    """Write the relative error, the signal-to-noise ratio and the cosine of a layer."""
    m = errors.measures
    return percent_text(m.relative), snr_text(m), cosine_text(m)


def snr_text(measures: Measures) -> str:
    """Write the signal-to-noise ratio."""
    if measures.snr_db is None:
        return "exact" if measures.mse == 0 else "-"
    return f"{measures.snr_db:.1f} dB"


def cosine_text(measures: Measures) -> str:
    """Write the cosine of the angle between the tensors."""
    return "-" if measures.cosine is None else f"{measures.cosine:.4f}"


def mape_text(percent: float | None) -> str:
    """Write a mean absolute percentage error, which is no figure where a reference is close to
    0.
    """
    if percent is None:
        return "-"
    return f"{percent:.4g} %" if percent < _MOST_PERCENT else f"over {_MOST_PERCENT:,} %"
