"""Choose how to fine-tune, and hold what that gives."""

from __future__ import annotations

import math
from dataclasses import dataclass

from luciole.ir import Array, Model
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.judging.records import MOST_JUDGES, judging_places
from luciole.lquantizer.proof import Proof

RATES = (4e-3, 1e-3, 1e-4, 1e-5)
"""Learning rates for 1, 2, 3 and more bits, measured on MNIST and CIFAR-10: larger ones move too
many weights to another level and back, from three bits on, and smaller ones do not get far enough
(an LSTM with two bits, six epochs on 20,000 digits: 96.7 % at 1e-3, 96.0 % at 3e-4; with one bit
that of both directions has 90.6 % at 2e-3, 92.3 % at 4e-3). One bit, the same epochs: a transformer
encoder has 96.3, 96.5 and 96.6 % at 2e-3, 4e-3 and 8e-3, autoencoders errors of 0.171, 0.169 and
0.168, and of 0.210, 0.208 and 0.209; 20 epochs on 60,000 digits bring the first one to 0.161, 0.159
and 0.161. Codes of 4 bits that were fitted to outputs lie close to the edges of their cells
(ResNet-8, means of three draws: 75.2 % at 1e-5, 74.7 % at 3e-5).
"""

FLOAT_RATE = 1e-4
"""The learning rate of layers that stayed float: ResNet-8 with 2 bits, tuned for 10 epochs on 1,000
images, has 67.2 % where they stay as they are, 69.3 % at 3e-5, 70.2 % at 3e-4."""


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of every training. Learning rates fall to 0 along half a cosine."""

    batch: int | None = None
    """Records in a batch; when not given, as many as make 300 steps an epoch, 32 to 100."""
    learning_rate: float | None = None
    temperature: float = 2.0
    """Of the softmax in the distillation loss (Hinton et al. 2015, "Distilling the Knowledge in a
    Neural Network", section 2)."""
    seed: int = 0
    held_back: float | None = None
    """Share of the records that only judge the epochs, at most ``held_back_most``. When not given
    those judge that judge everywhere, the last of each five: of 100 of them one is a whole point
    of agreement, more than most epochs gain."""
    held_back_most: int = MOST_JUDGES
    shift: int = 0
    """Pixels by which images [records, height, width, channels] are moved at random, at most."""
    mirror: bool = False
    """Whether images are turned left to right at random: right where left and right do not matter,
    wrong for digits."""
    mix: float = 0.0
    """Share of a batch's records each of which is mixed with another one, so that the teacher is
    heard between records, too (Beyer et al. 2022, "Knowledge distillation: A good teacher is
    patient and consistent", section 3.1). Classifiers of floats are taught so, without labels. It
    serves a thousand images (ResNet-8 with 2 bits: 69.3 -> 70.5 %) and harms 60,000 digits in one
    bit (784-690-10: 96.3 -> 93.9 %), whose mixtures are like no digit."""
    hints: tuple[str, ...] = ()
    """Tensors, by shell pattern, that student and teacher both compute and that shall be alike
    (Romero et al. 2015, "FitNets", section 2.2)."""
    hint_weight: float = 1.0
    label_weight: float = 0.5
    """Share of the labels' cross-entropy in the loss, where labels are given."""
    margin: float = 0.05
    """How far inside of its code's cell a shadow weight starts, in steps between two levels."""
    restarts: int = 0
    """How often the learning rate goes back to its start, and Adam forgets what it has seen."""

    def __post_init__(self) -> None:
        self._check(
            ("batch", self.batch is None or self.batch >= 1, "at least 1"),
            ("learning_rate", self.learning_rate is None or self.learning_rate > 0, "above 0"),
            ("temperature", self.temperature > 0, "above 0"),
            ("held_back", 0 <= (self.held_back or 0) < 1, "0 or more and below 1"),
            ("held_back_most", self.held_back_most >= 0, "0 or more"),
            ("shift", self.shift >= 0, "0 or more"),
            ("mix", 0 <= self.mix <= 1, "0 to 1"),
            ("label_weight", 0 <= self.label_weight <= 1, "0 to 1"),
            ("margin", 0 < self.margin < 0.5, "above 0 and below 0.5"),
            ("restarts", self.restarts >= 0, "0 or more"),
        )

    def _check(self, *rules: tuple[str, bool, str]) -> None:
        """Refuse the first field that does not keep its rule: name, whether it does, the rule."""
        for name, good, rule in rules:
            if not good:
                setting = getattr(self, name)
                raise QuantizeError(f"fine-tuning: {name} is {setting}, it must be {rule}")

    def batch_of(self, records: int) -> int:
        """Return the number of records of a batch, out of ``records``."""
        return min(records, max(32, min(100, records // 300)) if self.batch is None else self.batch)

    def held_back_of(self, records: int) -> int:
        """Return how many of ``records`` records judge; one is left to train on at least."""
        if self.held_back is None:
            share = len(judging_places(records, self.held_back_most))
        else:
            share = round(records * self.held_back)
        return min(share, self.held_back_most, records - 1)


@dataclass(frozen=True)
class FinetuneSettings(TrainingSettings):
    """How a model of learned levels is fine-tuned. ``learning_rate`` is for weights, inputs and
    biases of every layer; by its bits when not given (``RATES``).
    """

    relative: bool = True
    """Whether rates count in units of each layer's own size, so that scaling a model's inputs or
    weights changes nothing; the units are about 1 in the network that the rates are from."""
    basis_factor: float = 0.1
    """Weight bases and weight offsets learn at this share of the rate."""
    train_inputs: bool = True
    """Whether the levels of the layers' inputs are trained."""
    new_offsets: bool = False
    """Whether weights get an offset where the student's layers have none."""
    float_layers: bool = True
    """Whether weights and biases of layers that stayed float are trained too."""

    def rate(self, bits: int) -> float:
        """Return the learning rate of parameters with this many bits."""
        if self.learning_rate is not None:
            return self.learning_rate
        return RATES[min(bits, len(RATES)) - 1]


@dataclass(frozen=True)
class Epoch:
    """One epoch. Number 0 is the student as it was given, without a training loss.

    ``held_back_loss`` is the distance to the teacher on records that were held back, ``agreement``
    the share of them for which student and teacher choose the same class (None for regression),
    ``accuracy`` that for which the student chooses the label (None without labels), ``metric`` what
    the user's own metric says of it (None without one).
    """

    epoch: int
    loss: float | None
    held_back_loss: float | None
    agreement: float | None
    seconds: float
    accuracy: float | None = None
    metric: float | None = None

    @property
    def share(self) -> float | None:
        """The share of right answers: those of the labels where there are any, else the teacher's;
        None where there are no answers.
        """
        return self.agreement if self.accuracy is None else self.accuracy

    def is_better_than(self, other: Epoch, held_back: int, judges_are_new: bool = True) -> bool:
        """Check whether this later epoch's state replaces another's, judged on ``held_back`` of
        the records.

        Right answers decide where they differ by more than two standard errors: the highest of many
        epochs is high by chance. Else the distance does, between trained states. The student that
        was given stays where neither speaks for training; not at all where it was learned from the
        judges. A metric of the user's own decides alone where it differs.
        """
        if self.metric is not None and other.metric is not None and self.metric != other.metric:
            return self.metric > other.metric
        if self.held_back_loss is None or other.held_back_loss is None:
            return True
        if self.share is not None and other.share is not None:
            gain = self.share - other.share
            chance = math.sqrt((2 - self.share - other.share) / held_back)
            if abs(gain) > 2 * chance:
                return gain > 0
            if other.epoch == 0 and (gain > 0 or not judges_are_new):
                return True
        return self.held_back_loss < other.held_back_loss

    def judgement(self) -> str:
        """Write the epoch's figure on the records held back, empty where there are none."""
        if self.metric is not None:
            return f"metric {self.metric:.6g}"
        if self.accuracy is not None:
            return f"accuracy {100 * self.accuracy:.2f} %"
        if self.agreement is not None:
            return f"agreement {100 * self.agreement:.2f} %"
        return "" if self.held_back_loss is None else f"error {self.held_back_loss:.4g}"


@dataclass
class FinetuneResult:
    """The best model, the epoch that it comes from, every epoch, the numbers of the records that
    were held back, how many numbers were trained, and whether the student was learned from none of
    the records that judge.
    """

    model: Model
    best: Epoch
    history: list[Epoch]
    held_back: Array
    trained: int = 0
    judges_are_new: bool = True
    proof: Proof | None = None
    """Verdict on the model's file beside the teacher; None where nobody asked."""

    @property
    def gained(self) -> bool:
        """Whether the model is another one than the student that was given."""
        return self.best.epoch > 0

    def summary(self) -> str:
        """Write which epoch was kept, and its gain on the records held back."""
        first, best = self.history[0].judgement(), self.best.judgement()
        if not self.gained:
            return f"gained nothing, the model is as it was before ({first})"
        kept = f"kept epoch {self.best.epoch} of {self.history[-1].epoch}"
        if not first:
            return kept
        caveat = "" if self.judges_are_new else ", by records that levels were learned from before"
        return f"{kept}: {first} -> {best}{caveat}"
