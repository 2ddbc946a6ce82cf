"""Rows that a layer is fitted on or judged by, and what of them a fit needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array
from luciole.lquantizer.calibration.gram import Gram, gram_of
from luciole.lquantizer.formats.coded import Matrix

Sizes = NDArray[np.float64]
"""A number, or one of each group."""

_RECTIFICATIONS = 3
"""Rounds in which aims below a floor follow the outputs; 8 gave the same error."""
_PIECE = 250_000
"""Outputs that are judged at once."""
_TINY = float(np.finfo(np.float32).tiny)
_ALL = slice(None)


@dataclass(frozen=True)
class Moments:
    """Means of inputs [n] and targets [o], second moments h of inputs and cross moments [n, o]; of
    each group where there are several.
    """

    inputs: Matrix
    targets: Matrix
    h: Gram
    cross: Matrix

    def damped(self, share: float) -> Gram:
        """Add a share of the mean diagonal of the second moments to their diagonal."""
        return self.h.damped(share * self.size)

    @property
    def size(self) -> Sizes:
        """The mean of the second moments' diagonal, of each group: []."""
        means = self.h.diagonal.mean(-1).astype(np.float64)
        return np.asarray(np.maximum(means, _TINY))


@dataclass(frozen=True)
class Part:
    """Quantized inputs [r, n] and the outputs [r, o] they should give; of each group of channels
    where there are several, along a first axis.

    Where a RELU follows, outputs below a floor [r, o] count like the floor: what lies below it in
    target and result is no error. Means and moments then are of the targets that can be reached:
    above the floor as they are, below it the result itself (Zhang et al. 2015, "Efficient and
    Accurate Approximations of Nonlinear Convolutional Networks", section 2.2, solve for a RELU in
    turns like these).
    """

    z: Matrix
    targets: Array
    floors: Array | None = None

    def taken(self, rows: NDArray[np.bool_]) -> Part:
        """Take some of the rows."""
        floors = None if self.floors is None else self.floors[rows]
        return Part(self.z[rows], self.targets[rows], floors)

    @cached_property
    def moments(self) -> Moments:
        """With the targets as they are."""
        inputs = self.z.mean(-2)
        centred = self.z - inputs[..., None, :]
        targets, cross = self._cross(self.targets, centred)
        return Moments(inputs, targets, gram_of(centred), cross)

    def _cross(self, targets: Array, centred: Matrix) -> tuple[Matrix, Matrix]:
        mean = np.asarray(targets.mean(-2))
        across = np.swapaxes(centred, -1, -2) @ (targets - mean[..., None, :])
        return mean, np.asarray(across / np.float32(centred.shape[-2]))

    def refitted(self, weights: Matrix, share: float, rectified: bool = False) -> Matrix:
        """Compute the float weights [n, o] that best map the quantized inputs to the targets (or,
        where ``rectified``, to what can be reached of them), by ridge regression towards the given
        ones; the ridge is a share of the moments' mean diagonal.
        """
        m = self.moments
        ridge = np.asarray(share * m.size, np.float32)[..., None, None]
        left = m.damped(share)
        refitted = left.solved(m.cross + ridge * weights)
        if not rectified:
            return refitted
        centred = self.z - m.inputs[..., None, :]
        for _ in range(_RECTIFICATIONS):
            y = self.z @ refitted
            aims = self._reachable(y + (m.targets - y.mean(-2))[..., None, :])
            refitted = left.solved(self._cross(aims, centred)[1] + ridge * weights)
        return refitted

    def bias(self, weights: Matrix) -> Array:
        """Compute the bias [o] that gives the outputs of weights [n, o] the mean of their
        targets.
        """
        m = self.moments
        means = (m.inputs[..., None, :] @ weights)[..., 0, :]
        bias = np.asarray(m.targets - means, np.float32)
        if self.floors is None:
            return bias
        y, moved = self.z @ weights, bias
        for _ in range(_RECTIFICATIONS):
            moved = np.asarray(self._gap(y, moved), np.float32)
        before, after = (self.errors(y, one) for one in (bias, moved))
        return np.where((after < before)[..., None], moved, bias)

    def steady_bias(self, weights: Matrix, before: Array, records: NDArray[np.intp]) -> Array:
        """Compute the bias [o] on the way from the one ``before`` to ``bias``, as far as the
        records that the rows are of [r] agree on it: the positive part of 1 - 1 / t^2, where t is
        the records' mean error over its standard error (James and Stein 1961, "Estimation with
        Quadratic Loss"). One record among many that has an error of its own moves nothing.
        """
        bias = self.bias(weights)
        order = np.argsort(records, kind="stable")
        begins = np.flatnonzero(np.diff(records[order], prepend=-1))
        if len(begins) < 2:
            return bias
        y = self.z @ weights + before[..., None, :]
        off = (self.targets if self.floors is None else self._reachable(y)) - y
        counts = np.diff(begins, append=len(records)).astype(np.float32)
        means = np.add.reduceat(off[..., order, :], begins, -2) / counts[:, None]
        unsure = means.var(-2, ddof=1, dtype=np.float64) / len(begins)
        step = means.mean(-2, dtype=np.float64)
        share = 1 - unsure / np.maximum(np.square(step), np.maximum(unsure, _TINY))
        return np.asarray(before + share * (bias - before), np.float32)

    def _gap(self, y: Array, bias: Array) -> NDArray[np.float64]:
        """Compute the mean over all rows of how far outputs without a bias [o] are below what can
        be reached of their targets with it: [o].
        """
        total = np.zeros(bias.shape)
        for rows in self._pieces():
            part = y[..., rows, :]
            aims = self._reachable(part + bias[..., None, :], rows)
            total += np.subtract(aims, part, out=aims).sum(-2, dtype=np.float64)
        return np.asarray(total / y.shape[-2])

    def _reachable(self, y: Array, rows: slice = _ALL) -> Array:
        """Compute the targets of some rows' outputs, lowered to the outputs where both are below a
        floor.
        """
        assert self.floors is not None, "floors are asked for where there are some"
        targets, floors = self.targets[..., rows, :], self.floors[..., rows, :]
        return np.where(targets > floors, targets, np.minimum(y, floors))

    def error(self, y: Array, bias: Array | None = None) -> float:
        """Compute the mean squared error of outputs [r, o], and a bias [o] that is to be added."""
        return float(np.mean(self.errors(y, bias)))

    def errors(self, y: Array, bias: Array | None = None) -> Sizes:
        """Compute the mean squared error of outputs [r, o], and a bias [o] that is to be added, of
        each group: [].
        """
        total = np.zeros(y.shape[:-2])
        for rows in self._pieces():
            part = y[..., rows, :] if bias is None else y[..., rows, :] + bias[..., None, :]
            off = self._above(part, rows) - self._above(self.targets[..., rows, :], rows)
            total += np.square(off, out=off).sum((-2, -1), dtype=np.float64)
        return np.asarray(total / (y.shape[-2] * y.shape[-1]))

    @property
    def signal(self) -> float:
        """Mean square of the targets, counted from the floor."""
        if self.floors is None:
            return float(np.mean(np.square(self.targets), dtype=np.float64))
        above = np.maximum(self.targets - self.floors, 0)
        return float(np.mean(np.square(above, out=above), dtype=np.float64))

    def _above(self, y: Array, rows: slice) -> Array:
        return y if self.floors is None else np.maximum(y, self.floors[..., rows, :])

    def _pieces(self) -> Iterator[slice]:
        """Part the rows, so that what is computed of some takes little memory."""
        count = self.targets.shape[-2]
        step = max(1, _PIECE * count // max(1, self.targets.size))
        return (slice(begin, begin + step) for begin in range(0, count, step))
