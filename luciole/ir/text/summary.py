"""A model on a page: its figures, in sum and layer by layer."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from luciole.ir import Model, Op, Value
from luciole.ir.analysis.figures import macs, parameters
from luciole.ir.analysis.widths import bits_of
from luciole.ir.graph import all_ops
from luciole.ir.names import short_names
from luciole.ir.text.common import one_line, utf8
from luciole.ir.text.table import aligned, size_text
from luciole.ir.value import shape_text


@dataclass
class Kind:
    """All operators of a kind: how many, their multiply-accumulates, bytes of their constants."""

    kind: str
    count: int = 0
    macs: int = 0
    bytes: int = 0


@dataclass
class LayerSummary:
    """One operator with weights; bits of a weight and of an element of its input."""

    name: str
    kind: str
    shape: str
    weight_bits: int
    input_bits: int | None
    macs: int | None
    bytes: int


@dataclass
class Summary:
    """A model's figures. ``file_bytes`` is None where there is no file."""

    model: str
    file_bytes: int | None
    constant_bytes: int
    parameters: int
    inputs: list[str]
    outputs: list[str]
    kinds: list[Kind]
    bytes_by_type: dict[str, int]
    layers: list[LayerSummary]

    def as_json(self) -> dict[str, Any]:
        """Turn the figures into JSON values, with the totals."""
        content = asdict(self)
        content["operators"] = sum(kind.count for kind in self.kinds)
        content["macs"] = sum(kind.macs for kind in self.kinds)
        return content

    def lines(self) -> list[str]:
        """Write the figures of the whole model."""
        rows = {
            "model": one_line(self.model),
            "size": self._sizes(),
            "parameters": f"{self.parameters:,}",
            "MACs": f"{sum(kind.macs for kind in self.kinds):,}",
            "inputs": ", ".join(map(one_line, self.inputs)),
            "outputs": ", ".join(map(one_line, self.outputs)),
            "operators": str(sum(kind.count for kind in self.kinds)),
        }
        return [f"{name:<11} {text}" for name, text in rows.items()]

    def _sizes(self) -> str:
        types = ", ".join(f"{n} {size_text(b)}" for n, b in self.bytes_by_type.items() if b)
        constants = f"constants {size_text(self.constant_bytes)}"
        file = "" if self.file_bytes is None else f"{size_text(self.file_bytes)}, "
        return f"{file}{constants}" + (f" ({types})" if types else "")

    def kind_rows(self) -> list[tuple[str, ...]]:
        """Write kinds of operators as a table: a row of headings, then one row for each."""
        rows: list[tuple[str, ...]] = [("operator", "count", "MACs", "constants")]
        for kind in self.kinds:
            size = size_text(kind.bytes) if kind.bytes else ""
            rows.append((one_line(kind.kind), str(kind.count), _count(kind.macs), size))
        return rows

    def layer_rows(self, wide: bool = True) -> list[tuple[str, ...]]:
        """Write layers as a table, a ``wide`` one with the shapes of results."""
        heading = ("layer", "operator", "bits w/a", "MACs", "constants")
        rows: list[tuple[str, ...]] = [(*heading, "result") if wide else heading]
        short = short_names(layer.name for layer in self.layers)
        for layer in self.layers:
            row = (
                one_line(short[layer.name]),
                one_line(layer.kind),
                f"{layer.weight_bits}/{'-' if layer.input_bits is None else layer.input_bits}",
                _count(layer.macs or 0),
                size_text(layer.bytes),
            )
            rows.append((*row, layer.shape) if wide else row)
        return rows

    def __str__(self) -> str:
        layers = ["", *aligned(self.layer_rows())] if self.layers else []
        return "\n".join([*self.lines(), "", *aligned(self.kind_rows()), *layers])


def summary(model: Model, name: str = "model", file_bytes: int | None = None) -> Summary:
    """Gather the figures of a model, and of its file where there is one. An unknown extent counts
    as 1.
    """
    main = model.graphs[:1]
    constants = {id(v.buffer): v for g in model.graphs for v in g.values if v.is_constant}
    by_type: Counter[str] = Counter()
    for value in constants.values():
        by_type[value.dtype.name] += _bytes(value)
    counts = {id(v.buffer): n for op in all_ops(model.graphs) for v, n in parameters(op).items()}
    return Summary(
        name,
        file_bytes,
        sum(by_type.values()),
        sum(counts.values()),
        [_typed(v) for graph in main for v in graph.inputs],
        [_typed(v) for graph in main for v in graph.outputs],
        _kinds(model),
        dict(by_type.most_common()),
        [layer for op in all_ops(model.graphs) if (layer := _layer(op)) is not None],
    )


def _typed(value: Value) -> str:
    return f"{value.dtype.name.lower()}{shape_text(value.shape)} {utf8(value.name)}"


def _bytes(value: Value) -> int:
    return 0 if value.buffer is None else len(value.buffer)


def _constant_bytes(op: Op) -> int:
    held = {id(v.buffer): v for v in op.operands if v is not None and v.is_constant}
    return sum(map(_bytes, held.values()))


def _kinds(model: Model) -> list[Kind]:
    """Sum up kinds of operators, the commonest first."""
    kinds: dict[str, Kind] = {}
    for op in all_ops(model.graphs):
        kind = kinds.setdefault(op.kind, Kind(utf8(op.kind)))
        kind.count += 1
        kind.macs += macs(op) or 0
        kind.bytes += _constant_bytes(op)
    return sorted(kinds.values(), key=lambda k: (-k.macs, -k.count))


def _layer(op: Op) -> LayerSummary | None:
    bits = bits_of(op)
    if bits is None:
        return None
    shape = shape_text(op.output.shape) if op.results else ""
    count = macs(op)
    return LayerSummary(
        utf8(op.name), utf8(op.kind), shape, bits.weights, bits.input, count, _constant_bytes(op)
    )


def _count(number: int) -> str:
    return f"{number:,}" if number else ""
