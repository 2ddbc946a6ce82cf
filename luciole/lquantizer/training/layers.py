"""Layers with learned levels whose parameters TensorFlow trains."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from luciole.ir import Array, learned_levels
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.lquantizer.formats.even_levels import is_even
from luciole.lquantizer.training.parameters import LQOp, TrainableParameters, row_shape
from luciole.lquantizer.training.settings import FinetuneSettings
from luciole.lquantizer.training.straight_through import levels_of, quantized, span
from luciole.lquantizer.training.tensorflow import Tensor, TensorFlow
from luciole.lquantizer.training.tf_math import activate, dense
from luciole.lquantizer.training.tf_windows import convolution
from luciole.lquantizer.training.units import of_sums, of_weights, sizes

_BASES = ("weight_basis", "input_basis")


class Trained(NamedTuple):
    """A variable, its name, its learning rate in a unit that is one number or broadcasts, and
    whether codes follow from it.
    """

    name: str
    variable: Tensor
    rate: float
    unit: Array | float = 1.0
    chooses_codes: bool = False


class _Units(NamedTuple):
    """How large a layer's numbers are."""

    weights: Array
    """[o, 1]"""
    offsets: Array
    """[o]"""
    inputs: float
    outputs: Array
    """[o]"""

    @classmethod
    def of(cls, start: TrainableParameters) -> _Units:
        """Measure weights, the span of the input's levels, and sums of their products, row by row.
        An offset moves all weights of a row at once, which adds up where the errors of single
        weights cancel.
        """
        count, means = start.latents.shape[1], sizes(start.latents, 0)
        levels, _ = learned_levels.levels(start.input_basis, start.input_offset)
        reach = float(levels[-1] - levels[0])
        weights, sums = of_weights(means), of_sums(means, count, reach)
        return cls(weights, weights[:, 0] / math.sqrt(count), reach, sums[:, 0])


class TrainableLayer:
    """An operator with learned levels, or several that share all of them: the forward pass is what
    the exported operator computes.

    The input is quantized before a convolution pads it, so that padding is exactly 0. Levels that
    are evenly spaced stay so.
    """

    def __init__(
        self, tf: TensorFlow, op: LQOp, start: TrainableParameters, settings: FinetuneSettings
    ) -> None:
        self.tf = tf
        self.op = op
        self._settings = settings
        self._units = _Units.of(start)
        self._bits = start.weight_basis.shape[1], start.input_basis.shape[0]
        self._powers = {
            name: 2.0 ** np.arange(1 - basis.shape[-1], 1, dtype=np.float32)
            for name, basis in start.items()
            if name in _BASES and is_even(basis)
        }
        arrays = {n: a[..., -1:] if n in self._powers else a for n, a in start.items()}
        self.variables = {name: tf.Variable(array) for name, array in arrays.items()}
        self.round_weights()

    def _own(self) -> dict[str, Tensor]:
        """Compute the present parameters: of evenly spaced levels the largest basis element is a
        variable, and the others follow.
        """
        powers = self._powers
        return {n: v * powers[n] if n in powers else v for n, v in self.variables.items()}

    def round_weights(self) -> None:
        """Round the shadow weights for the pass that begins."""
        own = self._own()
        self._rows = quantized(self.tf, own["latents"], own["weight_basis"], own["weight_offset"])

    def forward(self, op: LQOp) -> Callable[[Tensor], Tensor]:
        """Make the forward pass of one of the operators: quantize, multiply, add, activate."""
        return partial(self._forward, op)

    def _forward(self, op: LQOp, x: Tensor) -> Tensor:
        tf, own = self.tf, self._own()
        basis, offset = own["input_basis"][None], own["input_offset"][None]
        encoded = tf.reshape(quantized(tf, tf.reshape(x, (1, -1)), basis, offset), tf.shape(x))
        y = self._product(op, tf.ensure_shape(encoded, x.shape))
        return activate(tf, y + own["bias"], op.activation)

    def _product(self, op: LQOp, x: Tensor) -> Tensor:
        """Compute an operator's sums."""
        if not isinstance(op, LQConv2D):
            return dense(self.tf, x, self._rows)
        filters = self.tf.reshape(self._rows, (-1, *row_shape(op)))
        return convolution(self.tf, op, x, self.tf.transpose(filters, (1, 2, 3, 0)))

    def keep_in_reach(self) -> None:
        """Move shadow weights that left the levels' span back to its edge."""
        own = self._own()
        low, high = span(levels_of(self.tf, own["weight_basis"], own["weight_offset"]))
        latents = self.variables["latents"]
        latents.assign(self.tf.clip_by_value(latents, low, high))

    def trained(self) -> Iterator[Trained]:
        """List the variables that learn."""
        choice = self._settings
        unit, own = self._units, self.variables
        rate = choice.rate(self._bits[0])
        slow = rate * choice.basis_factor
        trained = [
            Trained("latents", own["latents"], rate, unit.weights, chooses_codes=True),
            Trained("weight_basis", own["weight_basis"], slow, unit.weights),
            Trained("bias", own["bias"], rate, unit.outputs),
        ]
        if choice.new_offsets or self.op.weights_offsets is not None:
            trained.append(Trained("weight_offset", own["weight_offset"], slow, unit.offsets))
        if choice.train_inputs:
            rate = choice.rate(self._bits[1])
            names = ("input_basis", "input_offset")
            trained += [Trained(name, own[name], rate, unit.inputs) for name in names]
        yield from trained if choice.relative else (t._replace(unit=1.0) for t in trained)

    def learned(self) -> TrainableParameters:
        """Copy the present state as arrays."""
        return TrainableParameters(**{name: v.numpy() for name, v in self._own().items()})
