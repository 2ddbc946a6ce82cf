"""Choose how a network is trained whose integers keep to any number of bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from luciole.lquantizer.training.uniform_settings import UniformSettings

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
