"""Describe what a method is told of one layer, what it gives back, and how much of a network it
takes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.ir.quantization import Affine
from luciole.lquantizer.assignment.config import Choice
from luciole.lquantizer.calibration.moments import Part
from luciole.lquantizer.calibration.rows import Rows
from luciole.lquantizer.formats.coded import Coded
from luciole.lquantizer.formats.levels import Fit


@dataclass(frozen=True)
class LayerProblem:
    """One layer to learn: rows that its weights meet in the quantized network, the float network's
    outputs there [r, o], its weights [o, n] and bias [o], the record each row is from [r], and
    whether its outputs are the network's answer, with no branch added to them. There are no rows
    where the layer's weights are all that is known.
    """

    rows: Rows
    targets: Array
    weights: Array
    bias: Array
    records: NDArray[np.intp]
    is_last: bool = False
    seed: int = 0
    floors: Array | None = None
    """[r, o]: outputs below them count like them, because a RELU follows."""
    units: Array | None = None
    """[o]: what outputs were divided by in front, and are judged times."""
    float_rows: Rows | None = None
    """The rows in the float network, for methods whose scope asks for them."""
    with_branch: bool = False
    """Whether each of the layers makes up for the error of a branch."""
    step: float | None = None
    """The scale of the integers that the layer reads, None where it reads real numbers."""
    trained: Affine | None = None
    """The integers that the weights were trained to be."""

    @classmethod
    def without_rows(cls, weights: Array, bias: Array, seed: int = 0) -> LayerProblem:
        """State the problem of a layer of which the weights are all that is known."""
        rows = Rows(np.empty((0, weights.shape[1]), np.float32))
        targets = np.empty((0, len(weights)), np.float32)
        return cls(rows, targets, weights, bias, np.empty(0, np.intp), seed=seed)

    @property
    def factors(self) -> Array:
        """Factors of outputs before they are judged: [o] or []."""
        return np.ones((), np.float32) if self.units is None else self.units

    def part(self) -> Part | None:
        """Return the rows and the outputs that they should give, of each group of channels where
        there are several; None where nothing is known of the layer's rows.
        """
        if not len(self.targets):
            return None
        floors = None if self.floors is None else self._by_group(self.floors)
        return Part(self.rows.values, self._by_group(self.targets), floors)

    def by_group(self, weights: Array) -> Array:
        """Shape weights [o, n] as the product with rows takes them: [n, o], or [groups, n, o]."""
        groups = self.rows.values.shape[:-2]
        return np.swapaxes(weights.reshape(*groups, -1, weights.shape[-1]), -1, -2)

    def steady_bias(self, part: Part, weights: Array) -> Array:
        """Compute the bias [o] of learned weights [n, o], or [groups, n, o], that moves from the
        layer's own as far as records agree on it.
        """
        before = self.bias.reshape((*part.targets.shape[:-2], -1))
        return part.steady_bias(weights, before, self.records).reshape(-1)

    def _by_group(self, outputs: Array) -> Array:
        """Split outputs [r, o] by groups where there are several: [groups, r, o]."""
        if self.rows.values.ndim == 2:
            return outputs
        split = outputs.reshape(len(outputs), len(self.rows.values), -1)
        return np.ascontiguousarray(split.transpose(1, 0, 2))


@dataclass
class LearnedLayer:
    """A learned layer: the input's basis and offset (None: float) and coded weights [n, o]."""

    inputs: Fit | None
    weights: Coded
    bias: Array
    """[o]"""
    way: str = ""
    """Which of several ways was the best on held-back rows."""
    stages: dict[str, float] = field(default_factory=dict)
    """For each stage the output's mean squared error on held-back rows."""
    signal: float = 0.0
    """The mean square of the target outputs there."""
    warning: str | None = None
    """A doubt about the layer for users."""


@dataclass(frozen=True)
class Scope:
    """The layers that a method takes on, and the rows that it gets of them.

    A method that learns layers ``together`` learns those that share their weights as one, leaves
    the ends of convolutional networks alone unless they are named, and sees layers without their
    fused activations and at some positions of each record only. One that ``rescales`` gets a
    network whose channels were made alike where that helps its levels. Rows that are ``masked`` say
    what of them lies inside the image.
    """

    convolutions: bool = True
    together: bool = True
    float_rows: bool = False
    corrects_biases: bool = True
    rescales: bool = True
    masked: bool = True


Format = TypeVar("Format", contravariant=True)
Learned = TypeVar("Learned", covariant=True)


class Method(Protocol[Format, Learned]):
    """How one layer is learned: what it is to become, and what was learned for it then."""

    @property
    def scope(self) -> Scope:
        """The preparation that the walk over the network makes for this method."""

    @property
    def seed(self) -> int:
        """The seed of everything random."""

    def learn(self, problem: LayerProblem, format: Format, /) -> Learned:
        """Learn a layer; deterministic for a given seed."""


LevelsMethod = Method[Choice, LearnedLayer]
"""How a layer gets learned levels."""
