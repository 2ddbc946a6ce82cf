"""SOFTMAX and LOG_SOFTMAX kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, TensorType
from luciole.ir.ops.softmax import LogSoftmax, Softmax
from luciole.kernels.registry import reference


def _below_largest(x: Array) -> Array:
    """Each element minus the largest of its row: no exponential of these overflows."""
    return x - x.max(axis=-1, keepdims=True) if x.size else x.copy()


@reference(Softmax, TensorType.FLOAT32)
def softmax(op: Softmax, x: Array) -> Array:
    """e^(beta (x - largest)), divided by the row's sum of it."""
    beta = x.dtype.type(op.beta)
    with np.errstate(all="ignore"):
        powers = np.exp(_below_largest(-x if beta < 0 else x) * abs(beta))
        return np.asarray(powers / powers.sum(axis=-1, keepdims=True), x.dtype)


@reference(LogSoftmax, TensorType.FLOAT32)
def log_softmax(op: LogSoftmax, x: Array) -> Array:
    """x - largest - log(the row's sum of e^(x - largest))."""
    with np.errstate(all="ignore"):
        below = _below_largest(x)
        return np.asarray(below - np.log(np.exp(below).sum(axis=-1, keepdims=True)), x.dtype)
