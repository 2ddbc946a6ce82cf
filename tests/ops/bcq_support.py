"""BCQ layers as plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from luciole.ir import Array, Model
from luciole.ir.ops.bcq_fully_connected import BCQFullyConnected
from luciole.schema.enums import ActivationFunctionType as Act
from tests.support import one_op, run_native, run_reference

CONSTANT = (1, 2, 3, 4)
Clusters = Sequence[tuple[int, int]]


@dataclass
class Layer:
    """One layer as plain arrays; ``signs`` [p, hidden] of True (+1) and False (-1)."""

    scales: Array
    signs: Array
    clusters: Clusters
    bias: Array | None = None
    activation: Act = Act.NONE

    @property
    def hidden(self) -> int:
        return int(self.signs.shape[1])

    def operands(self, x: Array) -> list[Array | None]:
        clusters = np.array(self.clusters, np.int32).reshape(-1, 2)
        return [x, self.scales, packed(self.signs), self.bias, clusters]

    def attributes(self) -> dict[str, Any]:
        return {"weights_hidden_size": self.hidden, "activation": self.activation}

    def model(self, x: Array, constant: tuple[int, ...] = CONSTANT) -> Model:
        return one_op(BCQFullyConnected, self.operands(x), constant, **self.attributes())

    def reference(self, x: Array) -> Array:
        (y,) = run_reference(BCQFullyConnected, self.operands(x), CONSTANT, **self.attributes())
        return y

    def native(self, x: Array) -> Array:
        """The compiled kernel's result; fails where the reference would have run instead."""
        return run_native(self.model(x), x)


def packed(signs: Array) -> Array:
    """Sign j is bit j mod 32 of word j div 32, by Python's own integers."""
    words = [
        [sum(1 << j for j in range(32) if row[w + j]) for w in range(0, len(row), 32)]
        for row in signs
    ]
    return np.array(words, np.uint32).view(np.int32).reshape(len(signs), signs.shape[1] // 32)


def weights_of(layer: Layer) -> list[list[float]]:
    """The weight matrix, number by number, from the layout in docs/reference/file-format.md."""
    matrix = []
    first = 0
    for bits, size in layer.clusters:
        for row in range(size):
            planes = [first + plane * size + row for plane in range(bits)]
            matrix.append(
                [
                    sum(float(layer.scales[p]) * (1 if layer.signs[p, j] else -1) for p in planes)
                    for j in range(layer.hidden)
                ]
            )
        first += bits * size
    return matrix


ACTIVATE: dict[Act, Callable[[Array], Array]] = {
    Act.NONE: lambda y: y,
    Act.RELU: lambda y: np.where(y > 0, y, 0),
    Act.RELU_N1_TO_1: lambda y: np.minimum(np.maximum(y, -1), 1),
    Act.RELU6: lambda y: np.minimum(np.maximum(y, 0), 6),
    Act.TANH: np.tanh,
}


def oracle(layer: Layer, x: Array) -> Array:
    """Row times column, in Python's own numbers."""
    matrix = weights_of(layer)
    wide = np.zeros((len(matrix), x.shape[1]))
    for o, b in np.ndindex(wide.shape):
        wide[o, b] = sum(w * float(v) for w, v in zip(matrix[o], x[:, b], strict=True))
    wide = wide if layer.bias is None else wide + layer.bias[:, None]
    found: Array = np.asarray(ACTIVATE[layer.activation](wide))
    return found


def magnitude(layer: Layer, x: Array) -> float:
    """The largest sum of absolute values behind a result: what rounding is measured against."""
    inputs = np.abs(x.astype(np.float64)).sum(axis=0).max(initial=0)
    bias = 0 if layer.bias is None else np.abs(layer.bias).max(initial=0)
    return float(np.abs(layer.scales).sum() * inputs + bias)


def random_layer(hidden: int, clusters: Clusters, bias: bool = True, seed: int = 0) -> Layer:
    rng = np.random.default_rng([hidden, seed])
    planes, rows = sum(b * n for b, n in clusters), sum(n for _, n in clusters)
    scales = rng.uniform(0.2, 1.0, planes) * rng.choice([-1, 1], planes) * 3 / np.sqrt(hidden)
    return Layer(
        scales.astype(np.float32),
        rng.integers(0, 2, (planes, hidden)).astype(np.bool_),
        clusters,
        rng.normal(size=rows).astype(np.float32) if bias else None,
    )


def random_input(hidden: int, batch: int = 1, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(0, 1.5, (hidden, batch)).astype(np.float32)
