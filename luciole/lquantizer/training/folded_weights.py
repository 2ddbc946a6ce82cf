"""Layers whose batch normalization is folded into rounded weights while it is trained.

Three forms: with statistics of the batch behind a convolution by rounded weights, as PyTorch folds
("approximate"); with weights scaled by long-run statistics and results brought to those of the
batch, which a second convolution by float weights measures (Krishnamoorthi 2018, "Quantizing deep
convolutional networks for efficient inference", section 3.2.2, "exact"); and by long-run
statistics alone, as inference computes (frozen).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer.formats.integers import weight_scales
from luciole.lquantizer.rewrite.batch_norm import Normalized
from luciole.lquantizer.training.layers import Trained
from luciole.lquantizer.training.tensorflow import Tensor, TensorFlow
from luciole.lquantizer.training.tf_math import activate, dense_products
from luciole.lquantizer.training.tf_windows import products
from luciole.lquantizer.training.uniform_layers import RoundedWeights
from luciole.lquantizer.training.uniform_parameters import IntegerWeights
from luciole.lquantizer.training.uniform_settings import NarrowSettings

_LEAST = 1e-12
_NORM_FACTOR = 0.05
"""Scales and shifts, in units of their size, learn at this share of the rate."""


class Phase:
    """Whether a step is taken or a state judged, and whether statistics are frozen."""

    def __init__(self, tf: TensorFlow) -> None:
        self.training = False
        """Minded while a function is traced."""
        self.frozen = tf.Variable(False)


class FoldedWeights(RoundedWeights):
    """Stands for a layer's rounded weights, and as ``forward`` for the layer itself."""

    def __init__(
        self,
        tf: TensorFlow,
        weights: IntegerWeights,
        normalized: Normalized,
        settings: NarrowSettings,
        phase: Phase,
    ) -> None:
        super().__init__(tf, weights, normalized.weights, settings, False)
        self._phase, self._narrow_settings = phase, settings
        norm = normalized.norm
        self._epsilon = norm.epsilon
        self._gamma, self._beta = tf.Variable(norm.gamma), tf.Variable(norm.beta)
        self._mean, self._variance = tf.Variable(norm.mean), tf.Variable(norm.variance)
        self._start_shares = _shares(norm.fold(normalized.weights)[0], weights, len(self._high) > 1)
        self.convolutions = 0
        """How many were traced: an exact step has two, all else one."""

    def _columns(self, latents: Tensor) -> Tensor:
        """Fold by long-run statistics, and round."""
        folded = latents * self._factor()
        return self._rounded(folded, self._limits(folded))

    def _factor(self) -> Tensor:
        variance = self._tf.stop_gradient(self._variance)
        return self._gamma / self._tf.sqrt(variance + self._epsilon)

    def _limits(self, folded: Tensor) -> Tensor:
        """Compute the limits of integers: a share, which learns, of the largest weight."""
        tf = self._tf
        by_channel = len(self._high) > 1
        peaks = tf.reduce_max(tf.abs(folded), 0 if by_channel else None)
        peaks = tf.maximum(tf.stop_gradient(tf.reshape(peaks, (-1,))), _LEAST)
        return peaks * self._start_shares * self._shares

    def forward(self, x: Tensor) -> Tensor:
        """Compute the layer, its batch normalization and its activation."""
        tf, weights = self._tf, self(self.latents)
        if not self._phase.training:
            result = self._by_long_run(x, weights)
        elif self._narrow_settings.freeze_norms >= 1:
            result = self._by_batch(x, weights)
        else:
            result = tf.cond(
                self._phase.frozen,
                lambda: self._by_long_run(x, weights),
                lambda: self._by_batch(x, weights),
            )
        op = self.weights.op
        assert isinstance(op, Conv2D | DepthwiseConv2D | FullyConnected), "it has weights"
        return activate(tf, result, op.activation)

    def _by_long_run(self, x: Tensor, weights: Tensor) -> Tensor:
        mean = self._tf.stop_gradient(self._mean)
        return self._sums(x, weights) + self._beta - self._factor() * mean

    def _by_batch(self, x: Tensor, weights: Tensor) -> Tensor:
        exact = self._narrow_settings.folding == "exact"
        return self._exact(x, weights) if exact else self._approximate(x, weights)

    def _approximate(self, x: Tensor, weights: Tensor) -> Tensor:
        """Undo the scaling behind the convolution, and normalize as usual."""
        tf, factor = self._tf, self._factor()
        small = tf.abs(factor) < _LEAST
        y = self._sums(x, weights) / tf.where(small, tf.ones_like(factor) * _LEAST, factor)
        mean, variance = self._followed(y)
        return self._gamma * (y - mean) / tf.sqrt(variance + self._epsilon) + self._beta

    def _exact(self, x: Tensor, weights: Tensor) -> Tensor:
        """Correct the result from long-run statistics to those of the batch."""
        tf = self._tf
        shape, order = self.weights.layout()
        floats = tf.transpose(tf.reshape(self.latents, shape), order)
        long_run = tf.sqrt(tf.stop_gradient(self._variance) + self._epsilon)  # before it follows
        y = self._sums(x, weights) * long_run
        mean, variance = self._followed(self._sums(x, floats))
        own = tf.sqrt(variance + self._epsilon)
        return y / own + self._beta - self._gamma * mean / own

    def _followed(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """Measure a batch by channel, and let long-run statistics follow."""
        tf = self._tf
        mean, variance = tf.nn.moments(y, list(range(len(y.shape) - 1)))
        share = 1 - self._narrow_settings.norm_momentum
        for kept, now in ((self._mean, mean), (self._variance, variance)):
            kept.assign_add(share * (tf.stop_gradient(now) - kept))
        return mean, variance

    def _sums(self, x: Tensor, weights: Tensor) -> Tensor:
        self.convolutions += 1
        op = self.weights.op
        if isinstance(op, FullyConnected):
            return dense_products(self._tf, op, x, weights)
        assert isinstance(op, Conv2D | DepthwiseConv2D), "no other layer is normalized"
        return products(self._tf, op, x, weights)

    def trained(self) -> Iterator[Trained]:
        """List the variables that learn, and those that follow batches, which get no slope."""
        yield from super().trained()
        rate = self._settings.rate * _NORM_FACTOR
        for name, variable in (("gamma", self._gamma), ("beta", self._beta)):
            yield Trained(name, variable, rate, float(np.abs(variable.numpy()).mean()) or 1.0)
        yield Trained("mean", self._mean, 0.0)
        yield Trained("variance", self._variance, 0.0)

    def _scales(self) -> NDArray[np.float32]:
        high = self._limits(self.latents * self._factor()).numpy()
        return np.asarray(high / self.weights.most, np.float32)

    def bias(self) -> Array:
        """Compute the layer's bias with the batch normalization folded in [o]."""
        shift = self._beta - self._factor() * self._mean
        return np.asarray(shift.numpy(), np.float32)


def _shares(folded: Array, weights: IntegerWeights, by_channel: bool) -> NDArray[np.float32]:
    """Choose the share of the largest weight that integers reach at first, which has the least
    squared error.
    """
    scales = weight_scales(folded, weights.most, channels=by_channel, searched=True)
    rows = folded if by_channel else folded.reshape(1, -1)
    peaks = np.maximum(np.abs(rows).max(1), _LEAST)
    return np.asarray(np.clip(scales * weights.most / peaks, 0.05, 1.0), np.float32)
