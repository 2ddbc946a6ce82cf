"""Fine-tune a quantized model so that it does what the float model does, without labels.

The student's codes follow from shadow weights that gradient steps move; the loss is the distance
to the teacher's outputs (Hinton et al. 2015; Polino et al. 2018, "Model compression via
distillation and quantization").
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Mapping
from itertools import chain, count, islice
from pathlib import Path

import numpy as np

from luciole.files import check_writable
from luciole.interpreter.records import Progress, Records, Track, check_records, untracked
from luciole.ir import Array, Graph, Model
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.judging.judge import Judge
from luciole.lquantizer.judging.metric import Metric
from luciole.lquantizer.judging.records import HELD_BACK, Judges
from luciole.lquantizer.network.real import check_float
from luciole.lquantizer.rewrite.narrowed import Narrowed
from luciole.lquantizer.rewrite.rounded import Rounded
from luciole.lquantizer.training import checkpoint as files
from luciole.lquantizer.training.batches import Batches, in_parts
from luciole.lquantizer.training.checkpoint import State
from luciole.lquantizer.training.distillation import match_inputs
from luciole.lquantizer.training.labels import Labels
from luciole.lquantizer.training.levels_trainer import LevelsTrainer
from luciole.lquantizer.training.narrow_trainer import NarrowTrainer
from luciole.lquantizer.training.optimizer import schedule
from luciole.lquantizer.training.parameters import trained_ops
from luciole.lquantizer.training.rate import CLASSES_MAY_LOSE, chosen_factor, steps_of
from luciole.lquantizer.training.settings import (
    Epoch,
    FinetuneResult,
    FinetuneSettings,
    TrainingSettings,
)
from luciole.lquantizer.training.trainer import Trainer, check_teacher
from luciole.lquantizer.training.uniform_settings import NarrowSettings, UniformSettings
from luciole.lquantizer.training.uniform_trainer import UniformTrainer

CACHE_LIMIT = 1 << 30
"""Bytes of teacher outputs that are computed once and kept; more are computed batch by batch."""
Report = Callable[[str], None]
"""Takes one line for people."""


def finetune(
    student: Model | Rounded,
    teacher: Model,
    records: Records,
    *,
    epochs: int,
    labels: Array | None = None,
    labelled_output: str | None = None,
    metric: Metric | None = None,
    settings: FinetuneSettings | UniformSettings | None = None,
    latents: Mapping[str, Array] | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    learned_from: Container[bytes] = (),
    track: Track | None = None,
    report: Report | None = None,
) -> FinetuneResult:
    """Train the student's layers with learned levels, or the thresholds of a rounded network and
    what else the settings ask for; both models stay as they are.

    ``records`` are samples by the student's input names, the teacher's inputs are the same in
    order. Where an output is a softmax, student and teacher are compared by its logits, else by
    mean squared error. ``labels`` are class numbers [records, ...steps] of the only output or of
    the ``labelled_output``, logits or probabilities, mixed in where given. ``latents`` are float
    weights to start from, by the name of the layer's operator: each is moved into the cell of its
    present code, so that training starts from exactly the student. A ``metric`` judges the epochs,
    by the labels or else the teacher's outputs; labels that are no class numbers, and all with a
    ``label_weight`` of 0, are for it alone.

    Some records are held back; the state that does best on them is returned, the student's own
    included. They are none of those that the student was ``learned_from`` (``records.digests``)
    where there are others: these say more good of it than is true. After each epoch everything is
    written to ``checkpoint``; ``resume`` goes on from there, with the results that an uninterrupted
    run has.

    Raises QuantizeError for models or data that do not fit and a teacher that is quantized already,
    UnsupportedError that lists operators without a differentiable form, LucioleError for a
    checkpoint of another run.
    """
    settings = settings or (
        UniformSettings() if isinstance(student, Rounded) else FinetuneSettings()
    )
    if epochs < 1:
        raise QuantizeError(f"fine-tuning: epochs is {epochs}, it must be at least 1")
    check_float(teacher, "teacher")
    graph = student.model.graph if isinstance(student, Rounded) else student.graph
    _check_companions(labels, labelled_output, checkpoint, resume)
    judged, labels = labels, _trained_to(labels, metric, settings)
    classes = _labels(graph, teacher, records, labels, labelled_output)
    batches = Batches(graph, records, classes, settings, learned_from)
    trainer = _trainer(student, teacher, settings, latents, classes)
    check_teacher(teacher, batches.inputs)
    judge = None
    if metric is not None and len(batches.held_back):
        judge = _judge(teacher, batches, judged, metric)
    run = _Run(trainer, batches, epochs, report or _silent, judge)
    if checkpoint is not None:
        run.keep_in(checkpoint, _identity(trainer, batches, epochs), resume)
    track = track or untracked
    run.all_epochs(track("fine-tuning", epochs * batches.steps))
    return run.result()


def _check_companions(
    labels: Array | None, output: str | None, checkpoint: Path | None, resume: bool
) -> None:
    """Refuse choices that say nothing without another one."""
    if labels is None and output is not None:
        raise QuantizeError("labelled_output goes with labels")
    if checkpoint is None and resume:
        raise QuantizeError("resume goes with a checkpoint")


def _trained_to(
    labels: Array | None, metric: Metric | None, settings: TrainingSettings
) -> Array | None:
    """Return the labels that are trained to, None where they are for the metric alone."""
    if metric is None or labels is None:
        return labels
    return labels if labels.dtype.kind in "iu" and settings.label_weight > 0 else None


def _judge(teacher: Model, batches: Batches, labels: Array | None, metric: Metric) -> Judge:
    """Make a judge of the records held back, by a metric."""
    places, names = batches.held_back, [v.name for v in teacher.graph.inputs]
    records = dict(zip(names, batches.at(places), strict=True))
    judged = None if labels is None else labels[places]
    return Judge(teacher, Judges(records, HELD_BACK, judged), metric)


def _labels(
    graph: Graph,
    teacher: Model,
    records: Records,
    labels: Array | None,
    output: str | None,
) -> Labels | None:
    """Check labels, where there are any, by the teacher."""
    if labels is None:
        return None
    check_records(graph, records)
    match_inputs(graph, teacher.graph)
    pairs = zip(graph.inputs, teacher.graph.inputs, strict=True)
    return Labels.of(teacher, {b.name: records[a.name] for a, b in pairs}, labels, output)


def _trainer(
    student: Model | Rounded,
    teacher: Model,
    settings: FinetuneSettings | UniformSettings,
    latents: Mapping[str, Array] | None,
    labels: Labels | None,
) -> Trainer:
    """Make the trainer that a student needs. Raises QuantizeError where there is none."""
    if isinstance(student, Narrowed) and isinstance(settings, NarrowSettings):
        return NarrowTrainer(student, teacher, settings, latents, labels)
    if isinstance(student, Rounded) and isinstance(settings, UniformSettings):
        return UniformTrainer(student, teacher, settings, latents, labels)
    if isinstance(student, Model) and isinstance(settings, FinetuneSettings):
        trained_ops(student.graph)
        return LevelsTrainer(student, teacher, settings, latents, labels)
    raise QuantizeError(
        "UniformSettings train what quantize made with a uniform scheme (give its Result), "
        "FinetuneSettings a model of learned levels"
    )


def _silent(line: str) -> None:
    """Drop a line of the report."""


def _identity(trainer: Trainer, batches: Batches, epochs: int) -> dict[str, str]:
    """Return the digests that a checkpoint must share with a run that goes on from it."""
    return {
        "models": files.fingerprint([trainer.model, trainer.teacher_model]),
        "records": files.fingerprint_of_data([*batches.inputs, batches.labels]),
        "settings": f"{epochs} epochs, {trainer.options}",
        "records held back": files.fingerprint_of_data([batches.held_back]),
    }


class _Run:
    """The epochs of one fine-tuning, and the states that are kept of them."""

    def __init__(
        self,
        trainer: Trainer,
        batches: Batches,
        epochs: int,
        report: Report,
        judge: Judge | None = None,
    ) -> None:
        self._trainer, self._batches, self._judge = trainer, batches, judge
        self._epochs, self._report = epochs, report
        self._begun = time.perf_counter()
        self._path: Path | None = None
        self._identity: dict[str, str] = {}
        self._state: State | None = None
        moves = trainer.options.shift > 0 or batches.mixes
        cached = not moves and self._output_size() <= CACHE_LIMIT
        self._targets = self._teach(np.arange(batches.places)) if cached else None
        self._held_targets = self._teach(batches.held_back) if len(batches.held_back) else []

    def _output_size(self) -> int:
        """Count the bytes of the teacher's outputs at all places."""
        one = self._teach(np.arange(1))
        return self._batches.places * sum(array.nbytes for array in one)

    def _teach(self, places: Array) -> list[Array]:
        """Compute the teacher's outputs at some places."""
        parts = [self._trainer.teach(*self._batches.at(p)) for p in in_parts(places)]
        return [np.concatenate(output) for output in zip(*parts, strict=True)]

    def keep_in(self, path: Path, identity: dict[str, str], resume: bool) -> None:
        """Write checkpoints, and go on from the one that is there if wanted. Raises LucioleError at
        once for a place that cannot be written.
        """
        check_writable(path)
        self._path, self._identity = path, identity
        if not resume:
            return
        if not path.exists():
            self._report(f"{path}: there is no checkpoint yet, starting from the student")
            return
        self._state = files.load(path, identity)
        self._trainer.adam.restore(self._state.now)

    def all_epochs(self, progress: Progress) -> None:
        """Train the epochs that are left."""
        if self._state is None:
            first = self._judged(0, None)
            self._state = State({}, self._trainer.adam.values(), 0, [first])
            self._report_epoch(first, 0)
            self._state.rate = self._chosen_rate(first)
        self._trainer.adam.slow_down(self._state.rate)
        done = self._state.history[-1].epoch
        progress(done * self._batches.steps)
        for number in range(done + 1, self._epochs + 1):
            epoch = self._judged(number, self._trained(number, progress))
            self._keep(self._state, epoch)
            self._report_epoch(epoch, done)

    def _trained(self, number: int, progress: Progress) -> float:
        """Train for one epoch and return the mean loss of its steps."""
        step, steps = (number - 1) * self._batches.steps, self._epochs * self._batches.steps
        losses = []
        for places, inputs in self._batches.epoch(number):
            losses.append(self._step(self._trainer.prepare(step, steps), places, inputs))
            step += 1
            progress(1)
        self._trainer.prepare(steps, steps)
        loss = float(np.mean(losses))
        if not math.isfinite(loss):
            raise QuantizeError(
                f"fine-tuning: the loss became {loss} in epoch {number}: lower the learning rate"
            )
        return loss

    def _step(self, share: Array, places: Array, inputs: list[Array]) -> float:
        """Take one step and return its loss."""
        if self._targets is None:
            targets = self._trainer.teach(*inputs)
        else:
            targets = [array[places] for array in self._targets]
        labels = self._batches.labels_at(places)
        return float(self._trainer.step(share, inputs, targets, labels))

    def _chosen_rate(self, first: Epoch) -> float:
        """Choose the factor of the usual rates by trials; 1 where the user chose a rate, and where
        no records are held back to judge.
        """
        is_fixed = self._trainer.options.learning_rate is not None or not self._trainer.tries_rates
        if is_fixed or first.held_back_loss is None:
            return 1.0
        may_lose = 0.0 if first.share is None else CLASSES_MAY_LOSE
        factor = chosen_factor(self._trial, first.held_back_loss, may_lose)
        if factor != 1:
            self._report(f"weights learn at {factor:.2g} of the usual rate, by short trials")
        return factor

    def _trial(self, factor: float) -> float:
        """Train for a little while and return the loss on records held back; all is undone."""
        adam, steps = self._trainer.adam, steps_of(self._epochs * self._batches.steps)
        start = adam.state()
        adam.slow_down(factor)
        batches = chain.from_iterable(self._batches.epoch(n) for n in count(1))
        for step, (places, inputs) in enumerate(islice(batches, steps)):
            self._step(schedule(step, steps), places, inputs)
        loss = self._judged(0, None).held_back_loss
        adam.restore(start)
        return math.inf if loss is None else loss

    def _judged(self, number: int, loss: float | None) -> Epoch:
        """Measure an epoch's figures on the records held back."""
        places = self._batches.held_back
        if not len(places):
            return Epoch(number, loss, None, None, time.perf_counter() - self._begun)
        total, parts = 0.0, []
        for part in in_parts(np.arange(len(places))):
            targets = [array[part] for array in self._held_targets]
            distance, *arrays = self._trainer.judge(self._batches.at(places[part]), targets)
            total += float(distance) * len(part)
            parts.append([[np.asarray(array) for array in each] for each in arrays])
        numbers, outputs = (
            [np.concatenate(each) for each in zip(*kind, strict=True)]
            for kind in zip(*parts, strict=True)
        )
        labels = self._batches.labels_at(places)
        agreement, accuracy = self._trainer.shares(numbers, self._held_targets, labels)
        figure = None if self._judge is None else self._judge.figure_of(outputs)
        seconds = time.perf_counter() - self._begun
        return Epoch(number, loss, total / len(places), agreement, seconds, accuracy, figure)

    def _keep(self, state: State, epoch: Epoch) -> None:
        """Add an epoch; its state becomes the best one unless an earlier one was better."""
        adam = self._trainer.adam
        held_back, rivals = len(self._batches.held_back), {0, state.best_epoch}
        new = self._batches.judges_are_new
        if all(epoch.is_better_than(state.history[n], held_back, new) for n in rivals):
            state.best, state.best_epoch = adam.values(), epoch.epoch
        state.history.append(epoch)
        if self._path is not None:
            state.now = adam.state()
            files.save(self._path, self._identity, state)

    def _report_epoch(self, epoch: Epoch, done: int) -> None:
        """Report an epoch in one line; ``done`` were made by a run before."""
        parts = [f"epoch {epoch.epoch}/{self._epochs}"]
        if epoch.loss is not None:
            parts.append(f"loss {epoch.loss:.4g}")
        if epoch.judgement():
            parts.append(epoch.judgement())
        if epoch.epoch > done:
            left = epoch.seconds / (epoch.epoch - done) * (self._epochs - epoch.epoch)
            parts.append(f"{left:.0f} s left")
        self._report(", ".join(parts))

    def result(self) -> FinetuneResult:
        """Return the best state as a model."""
        state = self._state
        assert state is not None, "the epochs were run"
        self._trainer.adam.restore_values(state.best)
        best = state.history[state.best_epoch]
        held_back = self._batches.held_back
        model, count = self._trainer.exported(), self._trainer.count
        new = self._batches.judges_are_new
        return FinetuneResult(model, best, state.history, held_back, count, new)
