"""Evaluate candidates of the published search: some training for all, all for the front."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from luciole.interpreter.records import Records
from luciole.ir import Model
from luciole.lquantizer.judging.judge import Judge
from luciole.lquantizer.judging.records import Judges, evenly
from luciole.lquantizer.rewrite.batch_norm import Normalized
from luciole.lquantizer.search.evaluate import Figures
from luciole.lquantizer.search.published.genes import widths_of
from luciole.lquantizer.search.published.network import Network, Start
from luciole.lquantizer.search.published.options import DELAY, FREEZE, SeedOptions
from luciole.lquantizer.search.published.packing import packed
from luciole.lquantizer.search.published.size import FORMULA, OPERATIONS, bit_operations, bytes_of
from luciole.lquantizer.search.runners import Task
from luciole.lquantizer.search.space import Candidate, Space
from luciole.lquantizer.training.labels import Labels
from luciole.lquantizer.training.settings import Epoch, FinetuneResult
from luciole.lquantizer.training.uniform_settings import NarrowSettings

PARTIAL, FINAL = "partial", "final"
_MOMENTUM = 0.99
"""Ranges of tensors between layers follow batches, each new one by 1 minus this (section 4.3.2)."""


@dataclass(frozen=True)
class SeedMaterials:
    """Materials of a worker: a model's bytes and the functions that read and write models, records
    to train on and their labels where given, and others that judge.
    """

    model: bytes
    read: Callable[[bytes], Model]
    write: Callable[[Model], bytes]
    training: Records
    labels: Labels | None
    judges: Judges
    space: Space
    options: SeedOptions
    folded: Sequence[Normalized] = ()
    """Batch normalizations that were folded into the model's layers."""

    def __call__(self) -> SeedEvaluator:
        """Begin: read the model and find ranges."""
        return SeedEvaluator(self)


@dataclass(frozen=True)
class SeedFigures(Figures):
    """A candidate's file, and its other figures, by name."""

    costs: Mapping[str, float] = field(default_factory=dict)


class SeedEvaluator:
    """Trains candidates: "partial" ones for their figures, "final" ones become files."""

    def __init__(self, materials: SeedMaterials) -> None:
        self._materials, options = materials, materials.options
        self.model = materials.read(materials.model)
        calibration = evenly(materials.training, options.calibration)
        self.network = Network.of(self.model, calibration, materials.folded)
        self.start = Start.of(self.network, calibration, options.granularity, options.seed)

    @cached_property
    def judge(self) -> Judge:
        """The float network's answers on the records that judge."""
        labels = self._materials.labels
        return Judge(
            self.model, self._materials.judges, None, 0 if labels is None else labels.output
        )

    def __call__(self, task: Task) -> dict[str, Any]:
        """Do a task of plain values, with a result of plain values."""
        candidate: Candidate = tuple(task["candidate"])
        final = task["stage"] == FINAL
        trained = self.train(candidate, final=final)
        model = self.packed(trained.model, candidate)
        content = self._materials.write(model)
        read = self._materials.read
        loss, agreement = self._judged(read(content)) if final else _held_back(trained.best)
        figures = SeedFigures(len(content), loss, agreement, costs=self.costs_of(candidate))
        return {"figures": asdict(figures), "model": content if final else None}

    @property
    def space(self) -> Space:
        """The space of candidates."""
        return self._materials.space

    def untrained(self, candidate: Candidate) -> Model:
        """Make the network of integers of a candidate as rounding leaves it."""
        return self.start.narrowed(widths_of(self.space, candidate)).integers()

    def packed(self, model: Model, candidate: Candidate) -> Model:
        """Store a candidate's weights in its numbers of bits, where that makes files smaller."""
        widths = widths_of(self.space, candidate).weights
        return packed(model, widths, lambda made: len(self._materials.write(made)))

    def train(self, candidate: Candidate, *, final: bool) -> FinetuneResult:
        """Train a candidate to the float network, and to labels where there are any."""
        from luciole.lquantizer.training import finetune

        materials = self._materials
        return finetune(
            self.start.narrowed(widths_of(materials.space, candidate)),
            self.network.model,
            materials.training,
            epochs=materials.options.final if final else materials.options.partial,
            labels=None if materials.labels is None else materials.labels.numbers,
            labelled_output=materials.options.labelled_output,
            settings=self._settings(final),
            latents=dict(self.start.latents),
        )

    def _settings(self, final: bool) -> NarrowSettings:
        options = self._materials.options
        return NarrowSettings(
            seed=options.seed,
            mirror=options.mirror,
            momentum=_MOMENTUM,
            delay=DELAY if final else 0.0,
            round_tensors=final or options.inputs,
            folding=options.folding if final else "approximate",
            freeze_norms=FREEZE if final else 1.0,
        )

    def costs_of(self, candidate: Candidate) -> dict[str, float]:
        """Count bytes as the publication does, and bit operations where tensors have genes."""
        widths = widths_of(self._materials.space, candidate)
        size = bytes_of(self.network.layers(), widths.weights, self.start.by_channel)
        if not self._materials.options.inputs:
            return {FORMULA: size}
        return {FORMULA: size, OPERATIONS: bit_operations(self.network.model.graph, widths)}

    def _judged(self, model: Model) -> tuple[float, float | None]:
        """Judge a file on records that nothing was learned from: by labels where there are any."""
        lost = self.judge.judge(model)
        return self.judge.share_lost(lost), lost.agreement


def _held_back(best: Epoch) -> tuple[float, float | None]:
    """Take the best epoch on records held back: wrong answers where there are labels, else the
    distance to the float network's.
    """
    assert best.held_back_loss is not None, "some records are held back"
    loss = best.held_back_loss if best.accuracy is None else 1 - best.accuracy
    return float(np.nan_to_num(loss, nan=np.inf)), best.agreement
