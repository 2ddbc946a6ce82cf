"""The logistic function."""

import numpy as np

from luciole.ir import Array


def logistic(x: Array) -> Array:
    """Compute 1 / (1 + e^-x) in the type of x, without overflow and exact to the last denormal."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1) / (1 + small), x.dtype)
