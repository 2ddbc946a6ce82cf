"""Choose how the published search is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, get_args

from luciole.ir.errors import missing_extra
from luciole.lquantizer.assignment.schemes import Granularity
from luciole.lquantizer.errors import QuantizeError, check_at_least, check_workers
from luciole.lquantizer.search.published.evolution import OFFSPRING, PARENTS
from luciole.lquantizer.training.uniform_settings import Folding

PARTIAL, FINAL = 12, 50
"""Epochs of partial and of final training (section 7.1)."""
DELAY, FREEZE = 20 / FINAL, 40 / FINAL
"""Shares of the final training: until the first tensors between layers are not rounded yet, from
the second on batch normalizations are frozen (section 7.1: 20 epochs, and the last 10)."""
GENERATIONS = 16
"""Generations of 24 hours (section 7.2)."""


@dataclass(frozen=True)
class SeedOptions:
    """How the published search is run: widths of 2 to 8 bits for each group of layers.

    Weights have a symmetric scale for each ``channel`` (section 7.3) or ``tensor``; tensors between
    layers asymmetric ones, of 8 bits unless ``inputs`` are searched too. Candidates are trained for
    ``partial`` epochs, the front and the uniform candidates for ``final``. ``folding`` is of batch
    normalizations in the final training; the partial one takes "approximate" (section 6.3.3).
    Evolution goes on for so many ``generations``. ``tied`` are shell patterns of layers that share
    a choice, ``fixed`` makes one: {"conv1": "w8"}. Labels are
    of the ``labelled_output``, or the only one. ``judges`` records are for the report alone,
    ``calibration`` others for the first ranges, and all others are trained on. ``workers`` are
    processes of this machine, ``cluster`` is the address of a Dask scheduler instead.
    """

    generations: int = GENERATIONS
    parents: int = PARENTS
    offspring: int = OFFSPRING
    partial: int = PARTIAL
    final: int = FINAL
    folding: Folding = "exact"
    granularity: Granularity = "channel"
    inputs: bool = False
    tied: tuple[str, ...] = ()
    fixed: Mapping[str, str] = field(default_factory=dict)
    labelled_output: str | None = None
    mirror: bool = False
    calibration: int = 500
    judges: int = 1000
    files: int = 12
    seed: int = 0
    workers: int = 1
    cluster: str | None = None

    def __post_init__(self) -> None:
        """Refuse unknown words, numbers out of their range, and to begin without TensorFlow."""
        check_at_least(self, 2, ["parents"])
        check_at_least(self, 0, ["generations", "seed"])
        names = ("offspring", "partial", "final", "calibration", "judges", "files", "workers")
        check_at_least(self, 1, names)
        check_workers(self.workers)
        for name, kinds in (("folding", get_args(Folding)), ("granularity", get_args(Granularity))):
            word = getattr(self, name)
            if word not in kinds:
                raise QuantizeError(f"{name} is {word!r}: {', '.join(kinds)} are possible")
        if find_spec("tensorflow") is None:
            raise missing_extra("preset 'seed': this needs TensorFlow", "tensorflow")

    def settings(self) -> dict[str, Any]:
        """List the settings that tell searches apart: all but budget and runners."""
        names = ("parents", "offspring", "partial", "final", "folding", "granularity", "inputs")
        rest = ("tied", "mirror", "seed", "labelled_output")
        return {**{n: getattr(self, n) for n in (*names, *rest)}, "fixed": dict(self.fixed)}
