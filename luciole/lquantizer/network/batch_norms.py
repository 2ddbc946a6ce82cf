"""Find batch normalizations that a network still has, and measure what they normalize."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from luciole.interpreter import Interpreter
from luciole.interpreter.records import Records, batch_size, run_records
from luciole.ir import Array, Graph, Model, Op
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.rewriting.scaling import layer_and_factor, per_channel
from luciole.lquantizer.calibration.rows import bias_of, weight_rows
from luciole.lquantizer.rewrite.batch_norm import EPSILON, BatchNorm, Normalized
from luciole.schema.enums import ActivationFunctionType


@dataclass(frozen=True)
class _Place:
    """A layer, and the scale and shift [o] of the MUL and the ADD behind it."""

    layer: Op
    scale: Array
    shift: Array

    def measured(self, mean: Array, variance: Array) -> Normalized:
        """Rebuild the batch norm from the mean and variance [o] of the layer's outputs, which have
        its bias in them.
        """
        bias = bias_of(self.layer)
        gamma = self.scale * np.sqrt(variance + EPSILON)
        beta = self.shift + self.scale * mean
        parts = (gamma, beta, mean - bias, variance)
        one, two, three, four = (np.asarray(part, np.float32) for part in parts)
        return Normalized(weight_rows(self.layer), BatchNorm(one, two, three, four))


def batch_norms(model: Model, records: Records) -> dict[Op, Normalized]:
    """Find layers whose result is multiplied and shifted channel by channel, as converters leave
    batch normalizations that they do not fold; means and variances are those of some records.
    """
    places = list(_places(model.graph))
    moments = _moments(model, [place.layer for place in places], records) if places else []
    return {p.layer: p.measured(*both) for p, both in zip(places, moments, strict=True)}


def _places(graph: Graph) -> Iterator[_Place]:
    for op in graph.ops:
        pair = layer_and_factor(op) if isinstance(op, Mul) else None
        if pair is None or not isinstance(op, Mul):
            continue
        layer, scale = pair
        shift = _shift(op, layer)
        if shift is not None:
            yield _Place(layer, scale, shift)


def _shift(scaled: Mul, layer: Op) -> Array | None:
    """Read the constant [o] that the only user of a product adds to it."""
    users = list(scaled.output.users)
    plain = scaled.activation == ActivationFunctionType.NONE and not scaled.output.is_output
    if len(users) != 1 or not plain or not isinstance(users[0].op, Add):
        return None
    others = [v for v in users[0].op.operands if v is not scaled.output]
    return per_channel(others[0], layer) if len(others) == 1 else None


def _moments(model: Model, layers: list[Op], records: Records) -> list[tuple[Array, Array]]:
    """Measure mean and variance of layers' results by channel."""
    twin = model.clone()
    pairs: Mapping[Op, Op] = dict(zip(model.graph.ops, twin.graph.ops, strict=True))
    twin.graph.outputs = [pairs[layer].results[0] for layer in layers]
    interpreter = Interpreter(twin)
    sums = [[0.0, 0.0, 0.0] for _ in layers]
    batch = batch_size(interpreter, records)
    for part in run_records(interpreter, records, batch=batch):
        for total, value in zip(sums, twin.graph.outputs, strict=True):
            rows = part[value.name].reshape(-1, part[value.name].shape[-1]).astype(np.float64)
            total[0] += len(rows)
            total[1] = total[1] + rows.sum(0)
            total[2] = total[2] + np.square(rows).sum(0)
    return [_moment(*map(np.asarray, total)) for total in sums]


def _moment(count: Array, total: Array, squares: Array) -> tuple[Array, Array]:
    mean = total / count
    return mean, np.maximum(squares / count - np.square(mean), 0.0)
