"""Hold what a search found, as plain values, and the files of its front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from luciole.lquantizer.search.additive import corner, values_of
from luciole.lquantizer.search.networks import Found
from luciole.lquantizer.search.nsga2 import hypervolumes
from luciole.lquantizer.search.space import Space, recipe


@dataclass(frozen=True)
class FrontFile:
    """A network of the front: its file, its config, and what it was found to be."""

    path: Path
    config: Path
    found: Found
    options: dict[str, str]
    """Each layer's option, by its name."""

    @property
    def viewer(self) -> Path:
        """Where a page that shows it goes."""
        return self.path.with_suffix(".html")

    def recipe(self) -> dict[str, Any]:
        """Write the content of its config."""
        return recipe(self.options)


@dataclass
class SearchResult:
    """The files of the front, from the smallest to the largest; every evaluation in its order, by
    short fits, and the greedy networks among them; the best uniform networks, fitted as the files
    are; and the float network.
    """

    front: list[FrontFile]
    objectives: tuple[str, ...]
    float_network: Found
    layers: list[str]
    """The genes' short names."""
    evaluated: list[Found] = field(default_factory=list)
    uniform: dict[str, Found] = field(default_factory=dict)
    greedy: list[Found] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)
    """How many weights each gene has."""
    failed: int = 0
    unreached: int = 0
    """Networks that a search begins with, but for its budget."""
    unit: str = ""
    """The unit of drops; empty where nobody asked for them."""

    def hypervolumes(self) -> list[float]:
        """Measure after each evaluation the dominated share of the box up to the float network's
        bytes, time and a loss of 1.
        """
        end = corner(self.float_network.sum, self.objectives)
        points = np.array([values_of(one.sum, self.objectives) for one in self.evaluated]) / end
        return hypervolumes(points, [1.0] * len(end))

    def rows(self) -> list[list[str]]:
        """List the front as a table: headings, then a row for each file."""
        tuned = ["loss before", "agreement before"] if self.is_tuned else []
        costs, drop = self.float_network.costs, [self.unit] if self.unit else []
        head = ["file", "bytes", "loss", "agreement", *drop, *tuned, *costs, "options"]
        return [head, *(self._row(file) for file in self.front)]

    @property
    def is_tuned(self) -> bool:
        """Whether the front was fine-tuned."""
        return any(file.found.before is not None for file in self.front)

    def _row(self, file: FrontFile) -> list[str]:
        network = file.found
        before = [] if network.before is None else _figures(network.before)
        widths = " ".join(network.candidate)
        costs = [f"{cost:,.0f}" for cost in network.costs.values()]
        figures = [*_figures(network), *self._drop(network), *before, *costs]
        return [file.path.name, f"{network.bytes:,}", *figures, widths]

    def _drop(self, one: Found) -> list[str]:
        """Write a network's loss in the unit that was asked for."""
        if not self.unit:
            return []
        return ["" if one.drop is None else f"{one.drop:.4g}"]

    def to_json(self) -> dict[str, Any]:
        """Turn it into plain JSON values."""
        return {
            "objectives": list(self.objectives),
            "layers": self.layers,
            "weights": self.weights,
            "float": asdict(self.float_network),
            "front": [{"file": f.path.name, **asdict(f.found)} for f in self.front],
            "uniform": {name: asdict(one) for name, one in self.uniform.items()},
            "greedy": [asdict(one) for one in self.greedy],
            "evaluated": [asdict(one) for one in self.evaluated],
            "hypervolume": self.hypervolumes(),
            "failed": self.failed,
            "unreached": self.unreached,
            "unit": self.unit,
        }


def _figures(one: Found) -> list[str]:
    agreement = "" if one.agreement is None else f"{100 * one.agreement:.2f} %"
    return [f"{one.loss:.3g}", agreement]


def files_of(folder: Path, space: Space, front: Sequence[Found]) -> list[FrontFile]:
    """Name the files of a front: by place and size."""
    names = [f"front-{n:02d}-{one.bytes}B" for n, one in enumerate(front, 1)]
    return [
        FrontFile(
            folder / f"{name}.circle", folder / f"{name}.json", one, space.by_layer(one.candidate)
        )
        for name, one in zip(names, front, strict=True)
    ]
