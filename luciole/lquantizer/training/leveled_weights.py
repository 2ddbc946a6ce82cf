"""Integer weights whose levels TensorFlow trains: offset + sum of +-a_i in whole steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from luciole.ir import Array
from luciole.ir.learned_levels import sign_codes
from luciole.ir.number_format import LearnedLevels
from luciole.ir.quantization import Affine
from luciole.lquantizer.formats.stored_levels import StoredLevels
from luciole.lquantizer.training.layers import Trained
from luciole.lquantizer.training.parameters import into_cells
from luciole.lquantizer.training.straight_through import levels_of, quantized, span
from luciole.lquantizer.training.tensorflow import Tensor, TensorFlow
from luciole.lquantizer.training.uniform_layers import WEIGHTS_FACTOR, Weights
from luciole.lquantizer.training.uniform_parameters import IntegerWeights
from luciole.lquantizer.training.uniform_settings import UniformSettings
from luciole.lquantizer.training.units import sizes

_REACH, _ROOM = 127, 125
"""Steps of the largest level at the most, and where a larger one asks for larger steps: parts of it
are rounded."""
_BASES_FACTOR = 0.05
"""Bases, offsets and scales, in units of the mean size of what they make up, learn at this share of
the rate."""


class LeveledWeights(Weights):
    """Stands for the DEQUANTIZE behind a layer's weights: shadow weights [o, n] rounded to levels
    that learn; or where weights are not trained, their codes on levels that do.
    """

    def __init__(
        self,
        tf: TensorFlow,
        weights: IntegerWeights,
        stored: StoredLevels,
        target: Array | None,
        settings: UniformSettings,
    ) -> None:
        super().__init__(tf, weights)
        self._settings, self._codes = settings, stored.codes
        scales = np.broadcast_to(weights.affine.scale, len(stored.codes)).astype(np.float32)
        shared = len(stored.basis) < len(scales)
        self._step = np.ones(1, np.float32) if shared else scales
        self._scales = tf.Variable(scales if shared else np.ones(len(scales), np.float32))
        self._has_scales = shared
        self._basis = tf.Variable(stored.basis * self._step[:, None])
        offsets = np.zeros(len(self._step)) if stored.offsets is None else stored.offsets
        self._has_offsets = stored.offsets is not None
        self._offsets = tf.Variable((offsets * self._step).astype(np.float32))
        rows = self._rows(stored, scales, target)
        self.latents = tf.Variable(rows) if settings.train_weights else tf.constant(rows)
        self._sizes = sizes(rows, 0)

    def _rows(self, stored: StoredLevels, scales: Array, target: Array | None) -> Array:
        """Choose shadow weights [o, n] in the cells of the present codes."""
        wide = stored.format
        levels = LearnedLevels(wide.basis * scales[:, None], wide.offset * scales)
        if target is None:
            return levels.decode(stored.codes).astype(np.float32)
        ranks = levels.ranks(stored.codes)
        rows = into_cells(target, levels.levels[0], ranks, self._settings.margin)
        return np.asarray(rows, np.float32)

    def _columns(self, latents: Tensor) -> Tensor:
        tf = self._tf
        basis, offsets, _ = self._levels()
        if self._settings.train_weights:
            return tf.transpose(quantized(tf, latents, basis, offsets))
        signs = sign_codes(basis.shape[1])[self._codes].astype(np.float32)
        return tf.transpose(tf.einsum("onk,ok->on", signs, basis) + offsets[:, None])

    def _levels(self) -> tuple[Tensor, Tensor, Tensor]:
        """Compute bases [o, K] and offsets [o] in whole steps, and the steps [o]."""
        tf = self._tf
        peaks = tf.stop_gradient(tf.reduce_sum(tf.abs(self._basis), 1) + tf.abs(self._offsets))
        step = tf.where(peaks <= _REACH * self._step, self._step, peaks / _ROOM)
        basis = self._whole(self._basis, step[:, None]) * self._scales[:, None]
        offsets = self._whole(self._offsets, step) * self._scales
        return basis, offsets, step * self._scales

    def _whole(self, x: Tensor, step: Tensor) -> Tensor:
        """Round to whole steps; the slope passes straight through."""
        return x + self._tf.stop_gradient(self._tf.round(x / step) * step - x)

    def trained(self) -> Iterator[Trained]:
        """List the variables that learn."""
        rate = self._settings.rate
        slow = _BASES_FACTOR * rate
        unit: Array | float = _REACH / 2 if self._has_scales else self._sizes
        yield Trained("weight_basis", self._basis, slow, unit)
        if self._has_offsets:
            yield Trained("weight_offsets", self._offsets, slow, self._sizes[:, 0])
        if self._has_scales:
            yield Trained("weight_scales", self._scales, slow, self._scales.numpy())
        if self._settings.train_weights:
            yield Trained("weights", self.latents, WEIGHTS_FACTOR * rate, self._sizes)

    def keep_in_reach(self) -> None:
        """Move shadow weights that left the levels' span back to its edge."""
        if self._settings.train_weights:
            basis, offsets, _ = self._levels()
            low, high = span(levels_of(self._tf, basis, offsets))
            self.latents.assign(self._tf.clip_by_value(self.latents, low, high))

    def stored(self) -> StoredLevels:
        """Compute codes and levels in steps as they are by now."""
        basis, offsets, step = (one.numpy() for one in self._levels())
        codes = self._codes
        if self._settings.train_weights:
            codes = LearnedLevels(basis, offsets).encode(self.latents.numpy())
        steps = np.rint(basis / step[:, None]).astype(np.int8)
        own = np.rint(offsets / step).astype(np.int8)
        rows = 1 if self._has_scales else len(steps)
        return StoredLevels(codes, steps[:rows], offsets=own if self._has_offsets else None)

    def learned(self) -> tuple[Array, Affine]:
        """Compute integers in the operator's layout, and their scales, as they are by now."""
        step = np.asarray(self._levels()[2].numpy(), np.float32)
        return self._laid(self.stored().values().astype(np.int8).T, step)
