"""Batch normalizations that a Keras file has and the converter folds into layers: read unfolded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from luciole.importers.keras.convert import keras_model
from luciole.ir import Array


@dataclass(frozen=True)
class KerasBatchNorm:
    """A layer's weights [o, n] and bias [o], and the scale, shift, long-run mean and variance [o]
    of the batch normalization that reads it.
    """

    weights: Array
    bias: Array
    gamma: Array
    beta: Array
    mean: Array
    variance: Array
    epsilon: float


def keras_batch_norms(path: Path) -> list[KerasBatchNorm]:
    """Read convolutions and dense layers of a .keras or .h5 file that a batch normalization reads.

    Raises what ``convert.load`` does.
    """
    return list(_found(keras_model(path)))


def _found(model: Any) -> Iterator[KerasBatchNorm]:
    for layer in model._flatten_layers(include_self=False):
        if type(layer).__name__ != "BatchNormalization":
            continue
        maker = getattr(getattr(layer.input, "_keras_history", None), "operation", None)
        rows = None if maker is None else _rows(maker)
        if rows is not None:
            yield _read(rows, maker, layer)


def _rows(maker: Any) -> Array | None:
    """Shape a layer's kernel as [o, n]; None for one without, or with an activation of its own."""
    kind = type(maker).__name__
    if getattr(getattr(maker, "activation", None), "__name__", "linear") != "linear":
        return None
    if kind == "Dense":
        return np.asarray(maker.kernel).T
    if kind == "Conv2D":
        return np.asarray(maker.kernel).transpose(3, 0, 1, 2).reshape(maker.filters, -1)
    if kind == "DepthwiseConv2D":
        kernel = np.asarray(maker.kernel)
        return kernel.transpose(2, 3, 0, 1).reshape(-1, kernel.shape[0] * kernel.shape[1])
    return None


def _read(rows: Array, maker: Any, norm: Any) -> KerasBatchNorm:
    count = len(rows)
    bias = np.zeros(count) if maker.bias is None else np.asarray(maker.bias)
    gamma = np.ones(count) if norm.gamma is None else np.asarray(norm.gamma)
    beta = np.zeros(count) if norm.beta is None else np.asarray(norm.beta)
    mean, variance = np.asarray(norm.moving_mean), np.asarray(norm.moving_variance)
    return KerasBatchNorm(rows, bias, gamma, beta, mean, variance, float(norm.epsilon))
