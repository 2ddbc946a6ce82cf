"""Fine-tune a quantized model so that it does what the float model does, without labels.

The student's codes follow from shadow weights that gradient steps move; the loss is the distance
to the teacher's outputs (Hinton et al. 2015; Polino et al. 2018, "Model compression via
distillation and quantization").
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from luciole.interpreter.records import Progress, Track, untracked
from luciole.ir import Array, Model
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.training import checkpoint as files
from luciole.lquantizer.training.batches import Batches, in_parts
from luciole.lquantizer.training.checkpoint import State
from luciole.lquantizer.training.optimizer import schedule
from luciole.lquantizer.training.settings import Epoch, FinetuneResult, FinetuneSettings
from luciole.lquantizer.training.trainer import Trainer

CACHE_LIMIT = 1 << 30
"""Bytes of teacher outputs that are computed once and kept; more are computed batch by batch."""
Report = Callable[[str], None]
"""Takes one line for people."""


def finetune(
    student: Model,
    teacher: Model,
    records: Mapping[str, Array],
    *,
    epochs: int,
    labels: Array | None = None,
    settings: FinetuneSettings | None = None,
    latents: Mapping[str, Array] | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    track: Track | None = None,
    report: Report | None = None,
) -> FinetuneResult:
    """Train the student's layers with learned levels; both models stay as they are.

    ``records`` are samples by the student's input names, the teacher's inputs are the same in
    order. Where an output is a softmax, student and teacher are compared by its logits, else by
    mean squared error. ``labels`` are class numbers [records], mixed in where given. ``latents``
    are float weights to start from, by the name of the layer's operator: each is moved into the
    cell of its present code, so that training starts from exactly the student.

    Some records are held back; the state that does best on them is returned, the student's own
    included. After each epoch everything is written to ``checkpoint``; ``resume`` goes on from
    there, with the results that an uninterrupted run has.

    Raises QuantizeError for models or data that do not fit, UnsupportedError that lists operators
    without a differentiable form, LucioleError for a checkpoint of another run.
    """
    settings = settings or FinetuneSettings()
    if epochs < 1:
        raise QuantizeError(f"fine-tuning: epochs is {epochs}, it must be at least 1")
    batches = Batches(student.graph, records, labels, settings)
    trainer = Trainer(student, teacher, settings, latents, labels is not None)
    trainer.check_teacher(batches.inputs)
    run = _Run(trainer, batches, epochs, report or _silent)
    if checkpoint is not None:
        run.keep_in(checkpoint, _identity(student, teacher, batches, epochs, settings), resume)
    track = track or untracked
    run.all_epochs(track("fine-tuning", epochs * batches.steps))
    return run.result()


def _silent(line: str) -> None:
    """Tell nobody."""


def _identity(
    student: Model, teacher: Model, batches: Batches, epochs: int, settings: FinetuneSettings
) -> dict[str, str]:
    """Name what a checkpoint must share with a run that goes on from it."""
    return {
        "models": files.fingerprint([student, teacher]),
        "records": files.fingerprint_of_data([*batches.inputs, batches.labels]),
        "settings": f"{epochs} epochs, {settings}",
    }


class _Run:
    """The epochs of one fine-tuning, and what is kept of them."""

    def __init__(self, trainer: Trainer, batches: Batches, epochs: int, report: Report) -> None:
        self._trainer, self._batches = trainer, batches
        self._epochs, self._report = epochs, report
        self._begun = time.perf_counter()
        self._path: Path | None = None
        self._identity: dict[str, str] = {}
        self._state: State | None = None
        cached = trainer.settings.shift == 0 and self._output_size() <= CACHE_LIMIT
        self._wanted = self._teach(np.arange(batches.places)) if cached else None
        self._held_wanted = self._teach(batches.held_back) if len(batches.held_back) else []

    def _output_size(self) -> int:
        """Count the bytes of the teacher's outputs at all places."""
        one = self._teach(np.arange(1))
        return self._batches.places * sum(array.nbytes for array in one)

    def _teach(self, places: Array) -> list[Array]:
        """Compute the teacher's outputs at some places."""
        parts = [self._trainer.teach(*self._batches.at(p)) for p in in_parts(places)]
        return [np.concatenate(output) for output in zip(*parts, strict=True)]

    def keep_in(self, path: Path, identity: dict[str, str], resume: bool) -> None:
        """Write checkpoints, and go on from the one that is there if wanted."""
        self._path, self._identity = path, identity
        if not resume:
            return
        if not path.exists():
            self._report(f"{path}: there is no checkpoint yet, starting from the student")
            return
        self._state = files.load(path, identity)
        self._trainer.adam.restore(self._state.now)

    def all_epochs(self, progress: Progress) -> None:
        """Train what is left to train."""
        if self._state is None:
            first = self._judged(0, None)
            self._state = State({}, self._trainer.adam.values(), 0, [first])
            self._tell(first, 0)
        done = self._state.history[-1].epoch
        progress(done * self._batches.steps)
        for number in range(done + 1, self._epochs + 1):
            epoch = self._judged(number, self._trained(number, progress))
            self._keep(self._state, epoch)
            self._tell(epoch, done)

    def _trained(self, number: int, progress: Progress) -> float:
        """Train for one epoch and return the mean loss of its steps."""
        trainer, batches = self._trainer, self._batches
        step, steps = (number - 1) * batches.steps, self._epochs * batches.steps
        losses = []
        for places, inputs in batches.epoch(number):
            if self._wanted is None:
                wanted = trainer.teach(*inputs)
            else:
                wanted = [array[places] for array in self._wanted]
            labels = batches.labels_at(places)
            losses.append(float(trainer.step(schedule(step, steps), inputs, wanted, labels)))
            step += 1
            progress(1)
        loss = float(np.mean(losses))
        if not math.isfinite(loss):
            raise QuantizeError(
                f"fine-tuning: the loss became {loss} in epoch {number}: lower the learning rate"
            )
        return loss

    def _judged(self, number: int, loss: float | None) -> Epoch:
        """Measure an epoch's figures on the records held back."""
        places = self._batches.held_back
        if not len(places):
            return Epoch(number, loss, None, None, time.perf_counter() - self._begun)
        totals = np.zeros(2)
        for part in in_parts(np.arange(len(places))):
            wanted = [array[part] for array in self._held_wanted]
            found = self._trainer.judge(self._batches.at(places[part]), wanted)
            totals += np.array([float(f) for f in found]) * len(part)
        distance, agreement = (float(t) for t in totals / len(places))
        share = None if math.isnan(agreement) else agreement
        return Epoch(number, loss, distance, share, time.perf_counter() - self._begun)

    def _keep(self, state: State, epoch: Epoch) -> None:
        """Add an epoch; its state becomes the best one unless an earlier one was better."""
        adam = self._trainer.adam
        held_back, rivals = len(self._batches.held_back), {0, state.best_epoch}
        if all(epoch.is_better_than(state.history[n], held_back) for n in rivals):
            state.best, state.best_epoch = adam.values(), epoch.epoch
        state.history.append(epoch)
        if self._path is not None:
            state.now = adam.state()
            files.save(self._path, self._identity, state)

    def _tell(self, epoch: Epoch, done: int) -> None:
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
        return FinetuneResult(self._trainer.exported(), best, state.history, held_back)
