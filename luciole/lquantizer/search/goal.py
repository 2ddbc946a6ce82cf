"""Objectives of a search, bounds that its files keep to, and when it ends."""

from __future__ import annotations

from dataclasses import dataclass

from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.search.additive import ACCURACY, LATENCY, OBJECTIVES, ON_DEVICE, SIZE


@dataclass(frozen=True)
class Goal:
    """Objectives, and the bounds that files must keep to."""

    objectives: tuple[str, ...] = (ACCURACY, SIZE)
    max_size: int | None = None
    max_us: float | None = None
    devices: tuple[str, ...] = ()
    """Names of devices whose costs may be objectives."""
    target_drop: float | None = None
    """The most that files may lose, in the judge's unit."""

    def __post_init__(self) -> None:
        """Refuse unknown objectives."""
        known = (*OBJECTIVES, *(f"{ON_DEVICE}{name}" for name in self.devices))
        for name in self.objectives:
            if name not in known:
                raise QuantizeError(f"objective {name!r}: {', '.join(known)} are possible")
            if self.objectives.count(name) > 1:
                raise QuantizeError(f"objective {name!r} is there twice")
        if ACCURACY not in self.objectives or len(self.objectives) < 2:
            raise QuantizeError("objectives are accuracy and at least one of size and latency")

    @property
    def timed(self) -> bool:
        """Whether time matters."""
        return LATENCY in self.objectives or self.max_us is not None

    def allows(self, size: float, us: float) -> bool:
        """Check whether a network keeps to the bounds."""
        small = self.max_size is None or size <= self.max_size
        return small and (self.max_us is None or us <= self.max_us)


@dataclass(frozen=True)
class Budget:
    """When the evolution ends: after so many evaluations in all, or minutes from the beginning of
    this run on, but not before the first networks.
    """

    evaluations: int | None = None
    minutes: float | None = None
    files: int = 12
