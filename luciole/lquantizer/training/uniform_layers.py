"""Tensors and weights that are rounded to integers, with thresholds that TensorFlow trains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.ir.quantization import Affine
from luciole.lquantizer.training.fake_quantization import Codes, rounded_rows, rounded_tensor
from luciole.lquantizer.training.layers import Trained
from luciole.lquantizer.training.tensorflow import Tensor, TensorFlow
from luciole.lquantizer.training.uniform_parameters import IntegerWeights, TiedTensors
from luciole.lquantizer.training.uniform_settings import UniformSettings
from luciole.lquantizer.training.units import sizes

_LEAST, _MOST = 0.01, 2.0
"""Multipliers of thresholds, at the least and at the most."""
_POINTS = (0.75, 1.25)
_POINTS_FACTOR, WEIGHTS_FACTOR = 0.1, 0.05
"""Multipliers of single weights, and weights in units of their mean size, learn at these shares of
the rate."""

Floats = NDArray[np.float32]


class Thresholds:
    """The least and the largest number of tied tensors, in units of the calibrated width.

    What is trained is a vector: one number for tensors on one side of 0 and for symmetric ones,
    else one for each side; limits (low, high) are its products with a basis [2, k].
    """

    def __init__(self, tf: TensorFlow, tied: TiedTensors, settings: UniformSettings) -> None:
        self._tf, self.tied = tf, tied
        self._follows = settings.momentum is not None
        self._rate = settings.rate
        self.codes = Codes(tied.bits)
        self._basis = _basis(tied.affine)
        low, high = (float(side[0]) for side in tied.affine.range)
        start = [max(self._sides(low, high, k)) for k in range(self._basis.shape[1])]
        self.start = np.array(start, np.float32)
        self.variable = tf.Variable(self.start)

    def _sides(self, low: float, high: float, k: int) -> list[float]:
        """Compute element k of the vector for limits, by each side that it decides."""
        pairs = zip((low, high), self._basis[:, k], strict=True)
        return [side / float(factor) for side, factor in pairs if factor]

    def limits(self) -> tuple[Tensor, Tensor]:
        """Compute the least and the largest number, [] each."""
        now = self._tf.stop_gradient(self.variable) if self._follows else self.variable
        both = self._tf.linalg.matvec(self._basis, now)
        return both[0], both[1]

    def trained(self) -> Iterator[Trained]:
        """List the variables that learn. Fixed thresholds follow batches, and get no slope."""
        if self.tied.is_free:
            yield Trained("thresholds", self.variable, self._rate)

    def keep_in_reach(self) -> None:
        """Bring the vector back to where it may be."""
        size = np.abs(self.start)
        low, high = np.minimum(size, _LEAST), np.maximum(size, _MOST)
        sign = np.where(self.start < 0, np.float32(-1), np.float32(1))
        self.variable.assign(self._tf.clip_by_value(self.variable * sign, low, high) * sign)

    def follow(self, low: Tensor, high: Tensor, share: Tensor) -> None:
        """Move by a share toward a batch's limits."""
        tf = self._tf
        elements = [
            tf.reduce_max(tf.stack([side / factor for side, factor in pairs]))
            for pairs in self._pairs(low, high)
        ]
        self.variable.assign_add(share * (tf.stack(elements) - self.variable))

    def _pairs(self, low: Tensor, high: Tensor) -> Iterator[list[tuple[Tensor, np.float32]]]:
        for column in self._basis.T:
            yield [(s, f) for s, f in zip((low, high), column, strict=True) if f]

    def affine(self) -> Affine:
        """Compute scale and zero point as they are by now; as they were where nothing moved."""
        start, now = self.tied.affine, self.variable.numpy()
        if np.array_equal(now, self.start):
            return start
        low, high = (self._basis.astype(np.float64) @ now).tolist()
        least, most = start.limits
        scale = np.float32((high - low) / (most - least))
        point = int(np.clip(least + np.floor(-low / float(scale) + 0.5), least, most))
        return Affine.single(float(scale), point, start.dtype)


def _basis(affine: Affine) -> Floats:
    """Return the basis of limits, in units of their distance: a symmetric tensor stays one."""
    low, high = (float(side[0]) for side in affine.range)
    least, most = affine.limits
    middle = (least + most + 1) // 2
    if affine.parameters[1][0] == middle:
        return np.array([[(least - middle) / (most - middle)], [1]], np.float32) * (high - low)
    sides = [low < 0, high > 0]
    return np.ascontiguousarray(np.eye(2, dtype=np.float32)[:, sides] * (high - low))


class RoundedTensor:
    """Stands for a QUANTIZE: its input rounded, as long as tensors are."""

    def __init__(
        self, tf: TensorFlow, thresholds: Thresholds, settings: UniformSettings, rounds: Tensor
    ) -> None:
        self._tf, self._thresholds, self._rounds = tf, thresholds, rounds
        self._delayed, self._steps = settings.switches, settings.gradient == "step"

    def __call__(self, x: Tensor) -> Tensor:
        """Round, or pass on."""
        low, high = self._thresholds.limits()
        y = rounded_tensor(self._tf, x, low, high, self._thresholds.codes, self._steps)
        return self._tf.where(self._rounds > 0, y, x) if self._delayed else y


class Weights(ABC):
    """Stands for the DEQUANTIZE behind a layer's weights: ``latents`` are what it reads of the
    layer, constant or a variable.
    """

    latents: Tensor

    def __init__(self, tf: TensorFlow, weights: IntegerWeights) -> None:
        self._tf, self.weights = tf, weights

    def __call__(self, latents: Tensor) -> Tensor:
        """Round, and lay out as the layer wants them."""
        shape, order = self.weights.layout()
        columns = self._columns(latents)
        return self._tf.transpose(self._tf.reshape(columns, shape), order)

    @abstractmethod
    def _columns(self, latents: Tensor) -> Tensor:
        """Compute the weights [n, o] that the layer multiplies with."""

    @abstractmethod
    def trained(self) -> Iterator[Trained]:
        """List the variables that learn."""

    @abstractmethod
    def keep_in_reach(self) -> None:
        """Bring variables back to where they may be."""

    @abstractmethod
    def learned(self) -> tuple[Array, Affine]:
        """Compute codes in the operator's layout, and their scales, as they are by now."""

    def _laid(self, codes: Array, scales: Floats) -> tuple[Array, Affine]:
        """Lay integers [n, o] out as the operator has them, beside their scales [o] or [1]."""
        start = self.weights.affine
        shape, order = self.weights.layout()
        laid = np.ascontiguousarray(np.transpose(codes.reshape(shape), order))
        return laid, Affine.channels(scales, np.zeros(len(scales)), start.axis, start.dtype)


class RoundedWeights(Weights):
    """Stands for the DEQUANTIZE behind a layer's weights: shadow weights, rounded; or where the
    codes are ``kept``, these times a scale that learns.
    """

    def __init__(
        self,
        tf: TensorFlow,
        weights: IntegerWeights,
        latents: Floats,
        settings: UniformSettings,
        kept: bool,
    ) -> None:
        super().__init__(tf, weights)
        self._settings, self._kept = settings, kept
        self._high = weights.most * weights.affine.scale
        self._shares = tf.Variable(np.ones_like(self._high))
        columns = np.ascontiguousarray(latents.T)
        self.latents = tf.Variable(columns) if settings.train_weights else tf.constant(columns)
        self._size = sizes(columns, 1)
        self._points = tf.Variable(np.ones_like(columns)) if settings.train_points else None

    def _columns(self, latents: Tensor) -> Tensor:
        """Round the shadow weights [n, o]."""
        if self._kept:
            return latents * self._shares
        w = latents if self._points is None else latents * self._points
        return self._rounded(w, self._high * self._shares)

    def _rounded(self, w: Tensor, high: Tensor) -> Tensor:
        """Round columns [n, o] to integers that reach from minus ``high`` to it, [o] or [1]."""
        tf, steps = self._tf, self._settings.gradient == "step"
        codes = Codes(self.weights.bits, narrow=True)
        if len(self._high) > 1:
            return rounded_rows(tf, w, high, codes, steps)
        return rounded_tensor(tf, w, -high[0], high[0], codes, steps)

    def trained(self) -> Iterator[Trained]:
        """List the variables that learn."""
        rate = self._settings.rate
        yield Trained("weight_thresholds", self._shares, rate)
        if self._points is not None:
            yield Trained("points", self._points, _POINTS_FACTOR * rate)
        if self._settings.train_weights:
            yield Trained("weights", self.latents, WEIGHTS_FACTOR * rate, self._size)

    def keep_in_reach(self) -> None:
        """Bring multipliers back to where they may be."""
        limit = self._tf.clip_by_value
        self._shares.assign(limit(self._shares, _LEAST, _MOST))
        if self._points is not None:
            self._points.assign(limit(self._points, *_POINTS))

    def learned(self) -> tuple[Array, Affine]:
        """Compute codes in the operator's layout, and their scales, as they are by now."""
        scales = self._scales()
        return self._laid(
            np.rint(self._columns(self.latents).numpy() / scales).astype(np.int8), scales
        )

    def _scales(self) -> Floats:
        return np.asarray(self.weights.affine.scale * self._shares.numpy(), np.float32)
