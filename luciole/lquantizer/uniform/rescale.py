"""Divide the channels between two layers so that integers serve them better, minding what cuts them
off.

One scale serves a whole tensor, and with one for a layer's weights them, too: a channel that is
much smaller than others gets few of their steps. A channel may be multiplied where it is made and
divided where it is read, through a RELU as it is, and through a RELU6 as long as it stays below 6.
Channels that reach 6 are left alone, and none is lifted there (Goncharenko et al. 2019, "FAT: Fast
Adjustable Threshold for Uniform Neural Network Quantization", section 3.3, with the limit that a
RELU6 sets; equal peaks on both sides are from Nagel et al. 2019, "Data-Free Quantization Through
Weight Equalization and Bias Correction", section 4.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter.records import Records
from luciole.ir import Array, Graph, Model, Op
from luciole.ir.ops.activations import LIMITS
from luciole.ir.passes.remove_dead import remove_dead
from luciole.ir.passes.split_activation import split_activation
from luciole.lquantizer.calibration.products import Product, weight_rows
from luciole.lquantizer.calibration.watch import watched
from luciole.lquantizer.rewrite.integers import set_bias, weight_slot
from luciole.schema.enums import ActivationFunctionType

_MOST = 2.0**12
"""The largest scale, and the smallest is its inverse: a channel may be 0 on all that was seen."""
_BELOW = 0.98
"""How near to the limit of an activation a channel may be lifted."""

Floats = NDArray[np.float64]
Error = Callable[[Model, str, Array], float]
"""How far the quantized output of a model of two layers is from the float one, for an input."""


class Pair(NamedTuple):
    """Two layers, the second alone reading the first's result."""

    front: Product
    back: Product


class Peaks(NamedTuple):
    """The largest weight of each output in front, of each input behind, and the largest number in
    between: [channels] each.
    """

    front: Floats
    back: Floats
    between: Floats


def _by_weights(peaks: Peaks) -> Floats:
    return np.asarray(_mean(peaks.front) / peaks.front)


def _by_peaks(peaks: Peaks) -> Floats:
    return np.asarray(_mean(peaks.between) / peaks.between)


def _equal(peaks: Peaks) -> Floats:
    wanted = np.sqrt(peaks.back / peaks.front)
    return np.asarray(wanted / _mean(wanted))


def _mean(sizes: Floats) -> float:
    return float(np.exp(np.log(sizes).mean()))


RULES: dict[str, Callable[[Peaks], Floats]] = {
    "weights": _by_weights,
    "peaks": _by_peaks,
    "equal": _equal,
}
"""What channels are multiplied by, by the name of the rule: the same peak for the weights of every
output in front, the same peak in between, or the same peaks on both sides."""


def rescale(
    model: Model, records: Records, batch: int, names: tuple[str, ...], error: Error | None
) -> None:
    """Rescale between every two layers of a float network: by the rule that is named, or where an
    ``error`` judges, by the best of them, if it is better than none.
    """
    for pair in list(_pairs(model.graph)):
        reached = _reached(model, pair, records, batch)
        scales = [_scales(pair, reached, RULES[name]) for name in names]
        if error is not None:
            scales = [_best(model, pair, scales, records, batch, error)]
        apply(model.graph, pair, scales[0])


def _pairs(graph: Graph) -> Iterator[Pair]:
    """Find two layers with nothing between them but an activation that keeps proportions."""
    for op in graph.ops:
        result = op.output if isinstance(op, Product) else None
        if result is None or result.is_output or len(result.users) != 1:
            continue
        back, slot = result.users[0]
        if isinstance(back, Product) and slot == 0 and _keeps(op) and _reads_channels(back, op):
            assert isinstance(op, Product), "it was looked at"
            yield Pair(op, back)


def _keeps(op: Op) -> bool:
    """Tell whether a layer is constant, and its activation proportional below some limit."""
    low, _ = LIMITS.get(_activation(op), (-np.inf, np.inf))
    constants = [v for v in op.operands[1:] if v is not None]
    return low in (0.0, -np.inf) and all(v.data is not None for v in constants)


def _activation(op: Op) -> ActivationFunctionType:
    found = op.attributes().get("activation", ActivationFunctionType.NONE)
    assert isinstance(found, ActivationFunctionType), "layers have one"
    return found


def _reads_channels(back: Product, front: Op) -> bool:
    """Tell whether a layer's weights have an input for each channel in front of it."""
    _, weights, _ = weight_slot(back)
    channels = len(weight_rows(front))
    return weights.data is not None and weights.dims[-1] == channels and _depth(back) == channels


def _depth(op: Product) -> int | None:
    x = op.operands[0]
    return None if x is None or not x.shape else x.shape[-1]


def _scales(pair: Pair, reached: Floats, rule: Callable[[Peaks], Floats]) -> Floats:
    """Choose what to multiply the channels between two layers by, given the largest number of each:
    1 where a channel is cut off.
    """
    peaks = Peaks(_row_peaks(pair.front), _input_peaks(pair.back), _floored(reached))
    wanted = np.clip(rule(peaks), 1 / _MOST, _MOST)
    _, high = LIMITS.get(_activation(pair.front), (-np.inf, np.inf))
    if not np.isfinite(high):
        return wanted
    lifted = np.minimum(wanted, np.maximum(_BELOW * high / peaks.between, 1 / _MOST))
    return np.where(reached >= high, 1.0, lifted)


def _reached(model: Model, pair: Pair, records: Records, batch: int) -> Floats:
    """Find the largest number of each channel between two layers."""
    found: list[Array] = []
    for _, (y,) in watched(model, [pair.front.output], records, batch):
        found.append(np.abs(y).reshape(-1, y.shape[-1]).max(0))
    largest: Floats = np.max(found, 0).astype(np.float64)
    return largest


def _row_peaks(op: Product) -> Floats:
    return _floored(np.abs(weight_rows(op)).max(1))


def _input_peaks(op: Product) -> Floats:
    """Find the largest weight that each channel of a layer's input meets."""
    _, weights, _ = weight_slot(op)
    data = weights.data
    assert data is not None, "layers of a pair have constant weights"
    return _floored(np.abs(data).reshape(-1, data.shape[-1]).max(0))


def _floored(sizes: Array) -> Floats:
    """Keep what is next to nothing from deciding."""
    wide = sizes.astype(np.float64)
    least = max(float(wide.max()) / _MOST, float(np.finfo(np.float32).tiny))
    floored: Floats = np.maximum(wide, least)
    return floored


def apply(graph: Graph, pair: Pair, scales: Floats) -> None:
    """Multiply what the first layer gives by scales [channels], and divide it in the second."""
    factors = scales.astype(np.float32)
    front, back = pair
    _set_weights(graph, front, _along(front, factors))
    bias = front.bias
    if bias is not None and bias.data is not None:
        set_bias(graph, front, bias.data.reshape(-1) * factors)
    _set_weights(graph, back, 1 / factors)


def _along(op: Product, factors: Array) -> Array:
    """Shape a factor for each output so that it stretches over the layer's weights."""
    _, weights, axis = weight_slot(op)
    axes = [1] * len(weights.dims)
    axes[axis] = len(factors)
    return factors.reshape(axes)


def _set_weights(graph: Graph, op: Product, factors: Array) -> None:
    slot, weights, _ = weight_slot(op)
    assert weights.data is not None, "layers of a pair have constant weights"
    scaled = (weights.data * factors).astype(np.float32)
    op.set_operand(slot, graph.add_constant(graph.unique_name(weights.name), scaled))


def _best(
    model: Model,
    pair: Pair,
    scales: list[Floats],
    records: Records,
    batch: int,
    error: Error,
) -> Floats:
    """Choose the scales whose quantized pair is closest to the float one, ones among them."""
    (x,) = pair.front.operands[:1]
    assert x is not None, "a layer has an input"
    inputs = np.concatenate([a for _, (a,) in watched(model, [x], records, batch)])
    tried = [np.ones_like(scales[0]), *scales]
    errors = [error(*_alone(model.graph, pair, one), inputs) for one in tried]
    return tried[int(np.argmin(errors))]


def _alone(graph: Graph, pair: Pair, scales: Floats) -> tuple[Model, str]:
    """Copy a pair into a model of its own, rescaled; what follows the second layer is left out.
    Returns it with the name of its input.
    """
    copy, _ = graph.clone()
    twins = dict(zip(graph.ops, copy.ops, strict=True))
    front, back = twins[pair.front], twins[pair.back]
    assert isinstance(front, Product), "a copy is of the same kind"
    assert isinstance(back, Product), "a copy is of the same kind"
    apply(copy, Pair(front, back), scales)
    x = front.operands[0]
    assert x is not None, "a layer has an input"
    given = copy.add_input(copy.unique_name("given"), (1, *x.shape[1:]))
    front.set_operand(0, given)
    split_activation(copy, back)
    copy.inputs, copy.outputs = [given], [back.output]
    model = Model()
    model.add_graph(copy)
    remove_dead(copy)
    return model, given.name
