"""What can be chosen for a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.search.search import Budget, Goal
from luciole.lquantizer.search.space import OPTIONS, check_options

_MINUTES = 10.0


@dataclass(frozen=True)
class SearchOptions:
    """How networks are searched.

    ``objectives`` are accuracy and one or both of size and latency; files are no larger than
    ``max_size`` bytes, and their operators together take at most ``max_us`` microseconds. The
    evolution ends after so many ``evaluations`` in all, or ``minutes`` of a run (10 where neither
    is given); at most ``files`` become files. ``options`` is what layers may be, ``tied`` shell
    patterns of layers that are the same, ``fixed`` an option for layers by such a pattern. Layers
    are fitted to ``calibration`` records, ``judges`` others tell what is lost, and candidates are
    told apart on ``few`` of the first. ``workers`` are processes of this machine, ``cluster`` is
    the address of a Dask scheduler instead.
    """

    objectives: tuple[str, ...] = ("accuracy", "size")
    max_size: int | None = None
    max_us: float | None = None
    evaluations: int | None = None
    minutes: float | None = None
    files: int = 12
    options: tuple[str, ...] = OPTIONS
    tied: tuple[str, ...] = ()
    fixed: Mapping[str, str] = field(default_factory=dict)
    calibration: int = 500
    judges: int = 1000
    few: int = 100
    seed: int = 0
    workers: int = 1
    cluster: str | None = None

    def __post_init__(self) -> None:
        """Refuse what there is not."""
        check_options((*self.options, *self.fixed.values()))
        for name in ("evaluations", "files", "calibration", "judges", "few", "workers"):
            found = getattr(self, name)
            if found is not None and found < 1:
                raise QuantizeError(f"{name} is {found}: at least 1 is needed")
        assert self.goal is not None, "objectives are checked when a goal is made"

    @property
    def goal(self) -> Goal:
        """The objectives and bounds. Raises QuantizeError for unknown ones."""
        return Goal(self.objectives, self.max_size, self.max_us)

    @property
    def budget(self) -> Budget:
        """When the evolution ends."""
        unlimited = self.evaluations is None and self.minutes is None
        return Budget(self.evaluations, _MINUTES if unlimited else self.minutes, self.files)

    def settings(self) -> dict[str, Any]:
        """List what another search would be found with: all but budget, bounds and runners."""
        names = ("objectives", "options", "tied", "few", "seed")
        return {**{n: getattr(self, n) for n in names}, "fixed": dict(self.fixed)}
