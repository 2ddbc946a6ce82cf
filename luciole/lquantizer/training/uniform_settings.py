"""Choose how a network of uniform integers is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.training.settings import TrainingSettings

Gradient = Literal["step", "clip"]
Loss = Literal["kl", "rmse"]

RATE = 2e-2
"""The learning rate of thresholds, for some hundred steps (Goncharenko et al. 2019 take 1e-3 for
thousands): ResNet-8 with 4 bit weights goes from 45.9 to 65.9 % in 280 steps at 1e-2, to 71.8 % at
2e-2, to 70.0 % at 4e-2."""


@dataclass(frozen=True)
class UniformSettings(TrainingSettings):
    """How a network of uniform integers is trained: its thresholds, which are the largest numbers
    that its tensors' and its weights' integers reach, and besides what is asked for.

    ``learning_rate`` counts in units of each tensor's own size: of thresholds in units of the
    calibrated ones, so that what is trained are multipliers (Goncharenko et al. 2019, "FAT: Fast
    Adjustable Threshold for Uniform Neural Network Quantization", section 3.2).
    """

    gradient: Gradient = "step"
    """Whether thresholds are moved by what rounding does, too (``step``: Esser et al. 2020,
    "Learned Step Size Quantization"; Jain et al. 2020, "Trained Quantization Thresholds"), or by
    what is cut off alone (``clip``: Goncharenko et al. 2019)."""
    loss: Loss = "kl"
    """For outputs that are classes, the divergence of distributions or the root mean squared error
    of logits. Other outputs have the mean squared error."""
    train_points: bool = False
    """Whether each weight has a multiplier of its own, 0.75 to 1.25 (Goncharenko et al. 2019,
    section 3.3)."""
    train_weights: bool = False
    """Whether the weights themselves are trained."""
    train_biases: bool = False
    momentum: float | None = None
    """If given, tensors' thresholds are not trained but follow what batches hold, each new batch by
    1 minus this (Jacob et al. 2018, "Quantization and Training of Neural Networks for Efficient
    Integer-Arithmetic-Only Inference", section 3.1)."""
    delay: float = 0.0
    """Share of the steps in which tensors between operators are not rounded yet."""
    freeze: float = 1.0
    """Share of the steps after which tensors' thresholds stay as they are."""

    def __post_init__(self) -> None:
        """Refuse unknown words, and numbers out of their range."""
        super().__post_init__()
        for name, kinds in (("gradient", get_args(Gradient)), ("loss", get_args(Loss))):
            word = getattr(self, name)
            if word not in kinds:
                raise QuantizeError(f"{name} is {word!r}: {', '.join(kinds)} are possible")
        self._check(
            ("momentum", 0 <= (self.momentum or 0) < 1, "0 or more and below 1"),
            ("delay", 0 <= self.delay < 1, "0 or more and below 1"),
            ("freeze", self.delay < self.freeze <= 1, "above delay, and 1 at the most"),
        )

    def batch_of(self, records: int) -> int:
        """Return the number of records of a batch, out of ``records``: as few as 16, for the few
        variables learn more from many steps (ResNet-8: 70.3 instead of 69.7 % after 2 epochs).
        """
        return min(records, max(16, min(100, records // 300)) if self.batch is None else self.batch)

    @property
    def switches(self) -> bool:
        """Whether there are steps in which tensors between operators are not rounded."""
        return self.delay > 0

    @property
    def rate(self) -> float:
        """The learning rate of thresholds."""
        return RATE if self.learning_rate is None else self.learning_rate


Folding = Literal["approximate", "exact"]


@dataclass(frozen=True)
class NarrowSettings(UniformSettings):
    """How a network with batch normalizations still to fold is trained, weights and biases too."""

    train_weights: bool = True
    train_biases: bool = True
    folding: Folding = "approximate"
    """How statistics of a batch come in: behind the convolution, or by a second one."""
    norm_momentum: float = 0.9
    """Long-run statistics move to each batch's by 1 minus this."""
    freeze_norms: float = 1.0
    """Share of the steps after which long-run statistics stay, and normalize."""
    round_tensors: bool = True
    """Whether tensors between layers are rounded while training, once the delay is over."""

    def __post_init__(self) -> None:
        """Refuse unknown words, and numbers out of their range."""
        super().__post_init__()
        self._check(
            ("folding", self.folding in get_args(Folding), "approximate or exact"),
            ("norm_momentum", 0 <= self.norm_momentum < 1, "0 or more and below 1"),
            ("freeze_norms", 0 <= self.freeze_norms <= 1, "0 to 1"),
        )

    @property
    def switches(self) -> bool:
        """Whether there are steps in which tensors between operators are not rounded."""
        return super().switches or not self.round_tensors
