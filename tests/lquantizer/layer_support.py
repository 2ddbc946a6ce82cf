"""Second moments and weights of one layer, and what its codes lose."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.lquantizer.formats.coded import Coded


def moments(inputs: int, seed: int = 1, damping: float = 0.01) -> Array:
    """Second moments of strongly correlated inputs: four sources and a little noise."""
    generator = np.random.default_rng(seed)
    mixed = generator.normal(size=(400, 4)) @ generator.normal(size=(4, inputs))
    z = mixed + 0.3 * generator.normal(size=(400, inputs))
    h = z.T @ z / len(z)
    return np.asarray(h + damping * np.diag(h).mean() * np.eye(inputs), np.float32)


def weights_of(inputs: int, outputs: int, seed: int = 2) -> Array:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(inputs, outputs)).astype(np.float32)


def loss(h: Array, weights: Array, coded: Coded) -> float:
    """tr (Q - W) H (Q - W)^T."""
    error = coded.values().astype(np.float64) - weights
    return float(np.trace(error.T @ h.astype(np.float64) @ error))
