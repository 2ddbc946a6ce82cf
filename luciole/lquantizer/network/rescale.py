"""Multiply the channels between two layers so that integers or learned levels serve them better,
minding what cuts them off.

One scale or one set of levels serves a whole tensor, and one scale perhaps all of a layer's
weights: a channel that is much smaller than others gets few of their steps. A channel may be
multiplied where it is made and divided where it is read, through a RELU as it is, and through a
RELU6 as long as it stays below 6.
Channels that reach 6 are left alone, and none is lifted there (Goncharenko et al. 2019, "FAT: Fast
Adjustable Threshold for Uniform Neural Network Quantization", section 3.3, with the limit that a
RELU6 sets; equal peaks on both sides are from Nagel et al. 2019, "Data-Free Quantization Through
Weight Equalization and Bias Correction", section 4.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter.records import Records, check_records
from luciole.ir import Array, Graph, Model, Op, Value
from luciole.ir.equalization import rename
from luciole.ir.ops.activations import FUSED_AS, LIMITS
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.value import Use
from luciole.lquantizer.calibration.rows import Product, positions, weight_rows
from luciole.lquantizer.calibration.saved import Rescaled
from luciole.lquantizer.calibration.watch import watched
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.network.bounds import highest, intervals_of
from luciole.lquantizer.rewrite.integers import set_bias, weight_slot
from luciole.schema.enums import ActivationFunctionType

_MOST = 2.0**12
"""The largest scale, and the smallest is its inverse: a channel may be 0 on all that was seen."""
_WIDEST = 100.0
"""How large the weights of a lifted channel may be, beside those that would take the channel with
the largest gain as far as all channels reach. A channel that hardly ever is above 0 would get
weights one step of which moves the result by 256 steps or more, and runtimes refuse such a file.
"""
_BELOW = 0.98
"""How near to the limit of an activation a channel may be lifted."""
_AS_GOOD = 1.02
"""How many times the least error of a pair on made-up inputs is as good: a rule that evens channels
out then serves the next pair, whose inputs are made up alike in all channels.
"""
_NONE = ActivationFunctionType.NONE

Floats = NDArray[np.float64]


class Pair(NamedTuple):
    """Two layers, the second alone reading the first's result, at most through an activation."""

    front: Product
    back: Product
    activation: Op | None = None
    """One that stands between them."""

    @property
    def between(self) -> Value:
        """The tensor that the second layer reads."""
        return self.front.output if self.activation is None else self.activation.results[0]

    @property
    def names(self) -> tuple[str, str]:
        """The names of both layers' results."""
        return self.front.output.name, self.back.output.name

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of the tensors whose channels are multiplied."""
        return self.front.output.name, self.between.name

    @property
    def channels(self) -> int:
        """The channels between the layers."""
        return len(weight_rows(self.front))

    @property
    def limits(self) -> tuple[float, float]:
        """Where results are cut off on their way."""
        own = LIMITS.get(_activation(self.front), (-np.inf, np.inf))
        if self.activation is None:
            return own
        other = LIMITS[FUSED_AS[type(self.activation)]]
        return max(own[0], other[0]), min(own[1], other[1])

    def apply(self, graph: Graph, scales: Floats) -> None:
        """Multiply the first layer's results by scales [channels], and divide the second's weights
        by them.
        """
        factors, bias = scales.astype(np.float32), self.front.bias
        multiply(graph, self.front, weight_slot(self.front)[0], _along(self.front, factors))
        if bias is not None and bias.data is not None:
            set_bias(graph, self.front, bias.data.reshape(-1) * factors)
        multiply(graph, self.back, weight_slot(self.back)[0], 1 / factors)


class Joint(Protocol):
    """A place in a network where channels can be multiplied and divided again."""

    @property
    def names(self) -> tuple[str, str]:
        """The names of a tensor in front of it and of one behind."""

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of the tensors whose channels are multiplied."""

    @property
    def channels(self) -> int:
        """The number of channels."""

    def apply(self, graph: Graph, scales: Floats) -> None:
        """Multiply the channels by scales [channels] and divide them again."""


Done = tuple[Joint, Floats]
"""Where channels were rescaled, and the factors."""
Judge = Callable[[Pair, list[Floats], Array], list[float]]
"""Measures the error of quantizing a pair, for each of several scales, on inputs [records, ...] of
the first layer."""


class Peaks(NamedTuple):
    """The largest weight of each output in front, of each input behind, and the largest number in
    between: [channels] each.
    """

    front: Floats
    back: Floats
    between: Floats


Rule = Callable[[Peaks], Floats]
"""Chooses the factors of channels, given their peaks."""


def _by_weights(peaks: Peaks) -> Floats:
    return np.asarray(_mean(peaks.front) / peaks.front)


def _by_peaks(peaks: Peaks) -> Floats:
    return np.asarray(_mean(peaks.between) / peaks.between)


def _equal(peaks: Peaks) -> Floats:
    ratios = np.sqrt(peaks.back / peaks.front)
    return np.asarray(ratios / _mean(ratios))


def _mean(sizes: Floats) -> float:
    return float(np.exp(np.log(sizes).mean()))


RULES: dict[str, Rule] = {
    "weights": _by_weights,
    "peaks": _by_peaks,
    "equal": _equal,
}
"""Rules for the factors of channels, by name: the same peak for the weights of every output in
front, the same peak in between, or the same peaks on both sides."""

WITHOUT_RECORDS = ("weights", "equal")
"""Rules that ask for weights alone."""
_JUDGES = 48
"""Records that judge rescalings, at the most."""
_EXTENT, _NUMBERS, _MADE_UP = 16, 250_000, 512
"""Of the inputs that judge: the largest extents of images, which are cut out of the middle, the
numbers in between that they make in all, roughly, and positions where they are made up."""


def rescale(
    model: Model,
    pairs: Sequence[Pair],
    records: Records | None,
    batch: int,
    rules: Sequence[Rule],
    judge: Judge | None,
    seed: int = 0,
) -> list[Done]:
    """Rescale between layers of a float network: by the first rule, or where there is a ``judge``
    by whatever moves them least, scales of 1 among that. Without records, which some rules ask for,
    channels that may be cut off are left alone, and inputs are made up. Returns what was done.
    """
    done: list[Done] = []
    if records is None:
        met = _made_up(model.graph, pairs, seed)
    else:
        met = _met(model, pairs, records, batch)
    scaled: dict[Value, Array] = {}
    for pair, (reached, inputs) in zip(pairs, met, strict=True):
        scales = [_scales(pair, reached, rule) for rule in rules]
        as_good = _AS_GOOD if records is None else 1.0
        if judge is None:
            chosen = scales[0]
        else:
            inputs = inputs * scaled.get(pair.front.input, np.float32(1))
            chosen = _best(pair, scales, judge, inputs, as_good)
        if records is not None:
            scaled[pair.between] = chosen.astype(np.float32)
        if (chosen != 1).any():
            pair.apply(model.graph, chosen)
            done.append((pair, chosen))
    return done


def judging_records(records: Records) -> dict[str, Array]:
    """Take the few of the records that judge rescalings."""
    return {name: array[:: -(-len(array) // _JUDGES)] for name, array in records.items()}


def rescale_again(
    graph: Graph, joints: Iterable[Joint], rescaled: Sequence[Rescaled]
) -> list[Done]:
    """Rescale a float network as it was done before. Raises QuantizeError where it has no such
    layers.
    """
    done, known = [], {joint.names: joint for joint in joints}
    for one in rescaled:
        joint = known.get((one.front, one.back))
        if joint is None or joint.channels != len(one.scales):
            raise QuantizeError(
                f"ranges were found between layers {one.front!r} and {one.back!r} rescaled in "
                f"{len(one.scales)} channels: the network has no such layers"
            )
        done.append((joint, np.array(one.scales)))
        joint.apply(graph, done[-1][1])
    return done


def factors_of(done: Sequence[Done]) -> dict[str, Array]:
    """Return the divisors of tensors' channels by name: [channels] each."""
    factors: dict[str, Array] = {}
    for joint, scales in done:
        factors |= dict.fromkeys(joint.tensors, (1 / scales).astype(np.float32))
    return factors


def note_factors(graph: Graph, factors: Mapping[str, Array]) -> None:
    """Give tensors whose channels were divided another name, and note that in their model."""
    count = Counter(value.name for value in graph.values)
    for value in [v for v in graph.values if v.name in factors and count[v.name] == 1]:
        rename(value, factors[value.name])


def _best(pair: Pair, scales: list[Floats], judge: Judge, inputs: Array, as_good: float) -> Floats:
    """Choose the first scales whose error is as good as the least; scales of 1 stand before the
    rules' unless several errors are as good.
    """
    ones = np.ones_like(scales[0])
    tried = [ones, *scales] if as_good == 1 else [*scales, ones]
    errors = judge(pair, tried, inputs)
    least = min(errors)
    return next((one for one, e in zip(tried, errors, strict=True) if e <= as_good * least), ones)


def pairs_of(graph: Graph) -> Iterator[Pair]:
    """Find two layers with nothing between them but an activation that keeps proportions."""
    for op in graph.ops:
        pair = _pair(op) if isinstance(op, Product) else None
        if pair is not None and _keeps(pair) and _reads_channels(pair):
            yield pair


def _pair(front: Product) -> Pair | None:
    """Find the layer that alone reads a layer's result."""
    reader, activation = _only_reader(front.output), None
    if reader is not None and type(reader.op) in FUSED_AS:
        activation = reader.op
        reader = _only_reader(activation.results[0])
    if reader is None or reader.slot != 0 or not isinstance(reader.op, Product):
        return None
    return Pair(front, reader.op, activation)


def _only_reader(value: Value) -> Use | None:
    return value.users[0] if len(value.users) == 1 and not value.is_output else None


def _keeps(pair: Pair) -> bool:
    """Check whether all scaled operands are constant and of no other layer, and the activations
    proportional below some limit.
    """
    activations = [_activation(pair.front)]
    activations += [FUSED_AS[type(pair.activation)]] if pair.activation is not None else []
    lows = [LIMITS[a][0] if a in LIMITS else None for a in activations if a != _NONE]
    scaled = [*pair.front.operands[1:], weight_slot(pair.back)[1]]
    alone = all(v is None or (v.data is not None and len(v.users) == 1) for v in scaled)
    return alone and all(low == 0 for low in lows)


def _activation(op: Op) -> ActivationFunctionType:
    activation = op.attributes().get("activation", _NONE)
    assert isinstance(activation, ActivationFunctionType), "layers have one"
    return activation


def _reads_channels(pair: Pair) -> bool:
    """Check whether a layer's weights have an input for each channel in front of it."""
    _, weights, _ = weight_slot(pair.back)
    channels, shape = len(weight_rows(pair.front)), pair.between.shape
    return weights.dims[-1] == channels and bool(shape) and shape[-1] == channels


def _scales(pair: Pair, reached: Floats, rule: Rule) -> Floats:
    """Choose the factors of the channels between two layers, given the largest number of each: 1
    where a channel is cut off.
    """
    peaks = Peaks(_row_peaks(pair.front), _input_peaks(pair.back), floored(reached))
    scales = np.clip(rule(peaks), 1 / _MOST, _MOST)
    most = _WIDEST * (peaks.between * scales).max() / (peaks.between / peaks.front).max()
    scales = np.asarray(np.minimum(scales, most / peaks.front))
    _, high = pair.limits
    if not np.isfinite(high):
        return scales
    lifted = np.minimum(scales, np.maximum(_BELOW * high / peaks.between, 1 / _MOST))
    return np.asarray(np.where(reached >= high, 1.0, lifted))


def _met(
    model: Model, pairs: Sequence[Pair], records: Records, batch: int
) -> Iterator[tuple[Floats, Array]]:
    """Find the largest number of each channel between two layers, and parts of the first one's
    inputs, in one run of the network.
    """
    count = check_records(model.graph, records)
    peaks: list[list[Array]] = [[] for _ in pairs]
    inputs: list[list[Array]] = [[] for _ in pairs]
    values = [pair.between for pair in pairs] + [pair.front.input for pair in pairs]
    for part, arrays in watched(model, values, records, batch):
        for y, kept in zip(arrays, peaks, strict=False):
            kept.append(
                np.maximum(y.max(tuple(range(y.ndim - 1))), -y.min(tuple(range(y.ndim - 1))))
            )
        for pair, x, cuts in zip(pairs, arrays[len(pairs) :], inputs, strict=True):
            cut = _cut(pair.front, x)
            numbers = count * positions(pair.front, cut) * len(weight_rows(pair.front))
            apart = max(1, numbers // _NUMBERS)
            cuts.append(cut[-part.start % apart :: apart].copy())
    for kept, cuts in zip(peaks, inputs, strict=True):
        yield np.asarray(np.max(kept, 0), np.float64), np.concatenate(cuts)


def _cut(op: Product, x: Array) -> Array:
    """Cut the middle out of images."""
    if isinstance(op, FullyConnected):
        return x
    top, left = ((extent - _EXTENT) // 2 for extent in x.shape[-3:-1])
    rows, columns = (slice(max(begin, 0), max(begin, 0) + _EXTENT) for begin in (top, left))
    return x[..., rows, columns, :]


def _made_up(graph: Graph, pairs: Sequence[Pair], seed: int) -> Iterator[tuple[Floats, Array]]:
    """Bound the largest number of each channel between two layers that is cut off above, 1 where
    nothing is, and make inputs up: none below 0, as behind a RELU.
    """
    intervals = intervals_of(graph)
    for pair in pairs:
        highs, (_, limit) = highest(pair.front, intervals), pair.limits
        reached = np.clip(highs, 0, limit) if np.isfinite(limit) else np.ones_like(highs)
        *extents, channels = pair.front.required(0).shape[1:]
        known = [min(n or _EXTENT, _EXTENT) for n in extents]
        if isinstance(pair.front, FullyConnected):
            known = [n or _EXTENT for n in extents]
        count = max(8, _MADE_UP // max(1, int(np.prod(known))))
        shape = (count, *known, channels or _EXTENT)
        made_up = np.random.default_rng(seed).standard_normal(shape, np.float32)
        yield reached, np.abs(made_up)


def _row_peaks(op: Product) -> Floats:
    return floored(np.abs(weight_rows(op)).max(1))


def _input_peaks(op: Product) -> Floats:
    """Find the largest weight that each channel of a layer's input meets."""
    _, weights, _ = weight_slot(op)
    return floored(np.abs(weights.contents).reshape(-1, weights.dims[-1]).max(0))


def floored(sizes: Array) -> Floats:
    """Raise peaks that are next to nothing, which would decide otherwise."""
    wide = sizes.astype(np.float64)
    least = max(float(wide.max()) / _MOST, float(np.finfo(np.float32).tiny))
    floored: Floats = np.maximum(wide, least)
    return floored


def _along(op: Product, factors: Array) -> Array:
    """Shape a factor for each output so that it stretches over the layer's weights."""
    _, weights, axis = weight_slot(op)
    axes = [1] * len(weights.dims)
    axes[axis] = len(factors)
    return factors.reshape(axes)


def multiply(graph: Graph, op: Op, slot: int, factors: Array) -> None:
    """Multiply a constant where an operator reads it, and nobody else."""
    constant = op.required(slot)
    scaled = (constant.contents * factors).astype(np.float32)
    op.set_operand(slot, graph.add_constant(graph.unique_name(constant.name), scaled))
