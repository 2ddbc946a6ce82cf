"""Choose how to search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

from luciole.ir.errors import expect, missing_extra
from luciole.lquantizer.errors import QuantizeError, check_at_least, check_drop, check_workers
from luciole.lquantizer.search.device import Device, read_device
from luciole.lquantizer.search.finishing import FIT, Finish
from luciole.lquantizer.search.goal import Budget, Goal
from luciole.lquantizer.search.space import OPTIONS, read_options

_MINUTES = 10.0


@dataclass(frozen=True)
class SearchOptions:
    """How networks are searched.

    ``objectives`` are accuracy and one or both of size and latency; files are no larger than
    ``max_size`` bytes, their operators together take at most ``max_us`` microseconds, and they lose
    at most ``target_drop``: points of the answers that change, with labels of right ones, without
    classes percent of the variance, with a metric in its unit. The
    evolution ends after so many ``evaluations`` in all, or ``minutes`` of a run (10 where neither
    is given); at most ``files`` become files. ``options`` are words of formats that layers may
    have, ``tied`` shell patterns of layers that are the same, ``fixed`` an option for layers by
    such a pattern. Layers are fitted to ``calibration`` records, ``judges`` others tell what is
    lost, and candidates are told apart on ``few`` of the first. ``workers`` are processes of this
    machine, ``cluster`` is the address of a Dask scheduler instead. ``finish`` is "fit", or
    "finetune:4" for so many epochs of training without labels of what becomes files, on all records
    that do not judge; "finetune:4,mirror" turns images left to right at random. ``devices`` are
    files that say what operators cost elsewhere, or names of ready ones; "latency:NAME" is the
    objective.
    """

    objectives: tuple[str, ...] = ("accuracy", "size")
    max_size: int | None = None
    max_us: float | None = None
    target_drop: float | None = None
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
    finish: str = FIT
    devices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse unknown options, and numbers out of their range."""
        object.__setattr__(self, "options", read_options(self.options))
        words = read_options(self.fixed.values())
        object.__setattr__(self, "fixed", dict(zip(self.fixed, words, strict=True)))
        names = ("evaluations", "files", "calibration", "judges", "few", "workers")
        check_at_least(self, 1, names)
        check_workers(self.workers)
        for name in ("minutes", "max_size", "max_us"):
            number = getattr(self, name)
            expect(number, (int, float, np.number, type(None)), f"{name}: a number")
            if number is not None and not number > 0:
                raise QuantizeError(f"{name} is {number}: more than 0 is needed")
        check_drop(self.target_drop)
        check_at_least(self, 0, ["seed"])
        assert self.goal is not None, "objectives are checked when a goal is made"
        if self.finishing.epochs and find_spec("tensorflow") is None:
            raise missing_extra(f"finish {self.finish!r}: this needs TensorFlow", "tensorflow")

    @property
    def goal(self) -> Goal:
        """The objectives and bounds. Raises QuantizeError for unknown ones, and for devices that
        cannot be read.
        """
        names = tuple(device.name for device in self.read_devices)
        return Goal(self.objectives, self.max_size, self.max_us, names, self.target_drop)

    @cached_property
    def read_devices(self) -> list[Device]:
        """The devices of the files. Raises QuantizeError for one that cannot be read."""
        return [read_device(source) for source in self.devices]

    @property
    def finishing(self) -> Finish:
        """The step after the full fit. Raises QuantizeError for an unknown one."""
        return Finish.parse(self.finish)

    @property
    def budget(self) -> Budget:
        """When the evolution ends."""
        unlimited = self.evaluations is None and self.minutes is None
        return Budget(self.evaluations, _MINUTES if unlimited else self.minutes, self.files)

    def settings(self) -> dict[str, Any]:
        """List the settings that tell searches apart: no budget, bounds, finish or runners."""
        names = ("objectives", "options", "tied", "few", "seed")
        settings = {**{n: getattr(self, n) for n in names}, "fixed": dict(self.fixed)}
        return settings | ({"devices": list(map(str, self.read_devices))} if self.devices else {})
