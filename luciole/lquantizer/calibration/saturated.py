"""Judge a tensor's range by what saturating readers make of it.

A TANH or LOGISTIC gives the same for 20 as for 10: where nothing else reads a tensor, directly,
in parts or through a dense layer, the error of large numbers costs nothing, and the steps are of
more use near 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from luciole.ir import Array, Op, TensorType, Value
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.quant import Like
from luciole.kernels.core.evaluation import computed
from luciole.lquantizer.calibration.least import Floats, least_lossy
from luciole.lquantizer.calibration.spread import spread
from luciole.lquantizer.formats.affine import Range, of_range

_SAMPLE = 8192
"""Elements of a tensor that are kept."""
_PICKED = 256
"""Elements of a record that are kept where a whole one has too many."""
_SHARES = np.geomspace(2.0**-6, 1, 49)
"""Shares of a range that are tried: the extremes may lie far beyond what saturates."""


@dataclass
class Saturated:
    """The operators from a tensor [records, ...] to the saturating ones, in order of execution, and
    a sample of its numbers.
    """

    value: Value
    ops: Sequence[Op]
    sample: list[Array] = field(default_factory=list)

    @classmethod
    def of(cls, value: Value) -> Saturated | None:
        """Find the operators; None where something else reads the tensor, too."""
        ops = list(_to_saturation(value))
        return cls(value, [op for op in ops if op is not None]) if ops and None not in ops else None

    def add(self, batch: Array) -> None:
        """Keep some of the first records, or some elements of each where all of them would be too
        many and operators take them one by one.
        """
        if batch[:1].size > _SAMPLE and all(_saturates(op) for op in self.ops):
            batch = _parts(batch.reshape(len(batch), -1))
        held = sum(array.size for array in self.sample)
        left = (_SAMPLE - held) // max(1, batch[:1].size)
        if left > 0:
            self.sample.append(batch[:left])

    def range(self) -> Range | None:
        """Search the range whose 8 bits leave the least error in the operators' results, each
        result's error beside its own power; None where the records do not lie along their first
        axis, and where none is small enough to be kept.
        """
        if not any(array.size for array in self.sample):
            return None
        held = np.concatenate(self.sample)
        exact = self._results(held)
        if any(len(array) != len(held) for array in exact):
            return None
        powers = [float(np.square(array, dtype=np.float64).mean()) or 1.0 for array in exact]

        def loss(limits: Range) -> float:
            affine = of_range(limits, TensorType.INT8)
            results = self._results(affine.decode(affine.encode(held)).astype(np.float32))
            errors = (
                float(np.square(a - b).mean()) / power
                for a, b, power in zip(results, exact, powers, strict=True)
            )
            return sum(errors)

        def losses(limits: Floats) -> Floats:
            return np.array([loss((low, high)) for low, high in limits.tolist()])

        return least_lossy((float(held.min()), float(held.max())), losses, _SHARES)

    def _results(self, array: Array) -> list[Array]:
        """Compute the results of the saturating operators."""
        arrays = {self.value: array}
        for op in self.ops:
            operands = [None if v is None else arrays.get(v, v.data) for v in op.operands]
            arrays |= dict(zip(op.results, computed(op, operands), strict=True))
        return [arrays[op.results[0]] for op in self.ops if _saturates(op)]


def _parts(flat: Array) -> Array:
    """Pick elements of each record [records, elements], its least and its largest among them."""
    limits = flat.min(1, keepdims=True), flat.max(1, keepdims=True)
    return np.concatenate([*limits, spread(flat, _PICKED)], axis=1)


def _to_saturation(value: Value) -> Iterator[Op | None]:
    """Yield the operators from a tensor to the saturating ones, and None where there are others."""
    if value.is_output or not value.users:
        yield None
    for op in dict.fromkeys(use.op for use in value.users):
        yield op if _saturates(op) or _leads_on(op, value) else None
        if _leads_on(op, value):
            for result in op.results:
                yield from _to_saturation(result)


def _saturates(op: Op) -> bool:
    return op.quant is not None and op.quant.saturation is not None


def _leads_on(op: Op, value: Value) -> bool:
    """Return whether an operator takes a tensor apart, or multiplies it by constant weights."""
    others = [v for v in op.operands if v is not None and v is not value]
    splits = op.quant is not None and isinstance(op.quant.result, Like) and len(op.results) > 1
    return (splits or isinstance(op, FullyConnected)) and all(v.data is not None for v in others)
