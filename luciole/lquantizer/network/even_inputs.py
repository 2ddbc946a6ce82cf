"""Rescale channels in front of layers whose inputs get learned levels.

One set of levels serves a whole tensor, so channels that stay small get few of them. It took a
third to nine tenths off the error of inputs with 3 bits in an autoencoder of dense layers. Whether
channels are rescaled is decided for each layer by how far quantizing its input moves its output:
lifting always costs an even network up to two points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from luciole.interpreter.records import Records, check_records
from luciole.ir import Array, Model, Op
from luciole.ir.number_format import LearnedLevels
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer.assignment.config import Choice
from luciole.lquantizer.calibration.rows import (
    Dense,
    Rows,
    Sampling,
    input_rows,
    positions,
    weight_rows,
)
from luciole.lquantizer.calibration.watch import watched
from luciole.lquantizer.formats.coded import Matrix
from luciole.lquantizer.formats.even_levels import even_fit
from luciole.lquantizer.formats.levels import Fit, Samples, best_fit
from luciole.lquantizer.network.layers import Group
from luciole.lquantizer.network.rescale import (
    RULES,
    Floats,
    Pair,
    Peaks,
    factors_of,
    pairs_of,
    rescale,
)

_ROWS = 4096
"""Rows that tell scales apart."""
_SAMPLED = 1_000_000
"""Input elements that are enough to fit a basis of at most 8 numbers."""


Disturbances = dict[tuple[str, int, bool, bytes], float]
"""Errors of a layer's outputs by its name, the bits of inputs, whether they are spaced evenly, and
scales, for the same float network, records and seed."""


def even_inputs(
    model: Model,
    groups: Sequence[Group],
    records: Records,
    batch: int,
    seed: int,
    known: Disturbances | None = None,
) -> dict[str, Array]:
    """Rescale the channels of a float network's layers that get learned inputs, where that makes
    the error of their levels smaller. Errors that are ``known`` are not computed again; new ones
    are added.

    Returns the divisors of tensors' channels by name: [channels] each.
    """
    known = {} if known is None else known
    choices: dict[Op, Choice]
    choices = {g.ops[0]: g.choice for g in groups if len(g.ops) == 1 and not g.choice.weights_only}
    pairs = [pair for pair in pairs_of(model.graph) if pair.back in choices]
    if not pairs:
        return {}
    rows = _rows(model, pairs, records, batch, seed)

    def judge(pair: Pair, tried: list[Floats], _: Array) -> list[float]:
        choice, disturbances = choices[pair.back], []
        for scales in tried:
            key = (pair.back.output.name, choice.input_bits, choice.uniform, scales.tobytes())
            if key not in known:
                known[key] = _disturbance(rows[pair.back], pair, scales, choice, seed)
            disturbances.append(known[key])
        return disturbances

    rules = (*RULES.values(), _by_roots, _lifted)
    return factors_of(rescale(model, pairs, records, batch, rules, judge))


def _by_roots(peaks: Peaks) -> Floats:
    """Halve the distance between peaks, on a logarithmic scale."""
    return np.asarray(np.sqrt(peaks.between.max() / peaks.between))


def _lifted(peaks: Peaks) -> Floats:
    """Lift every peak to the largest one, where channels that are cut off have theirs."""
    return np.asarray(peaks.between.max() / peaks.between)


def _rows(
    model: Model, pairs: Sequence[Pair], records: Records, batch: int, seed: int
) -> Mapping[Op, Rows]:
    """Take rows that the second layers meet in the float network, from one run of it."""
    sampling = Sampling(max(1, _ROWS // check_records(model.graph, records)), seed)
    kept: list[list[Rows]] = [[] for _ in pairs]
    for part, arrays in watched(model, [pair.between for pair in pairs], records, batch):
        for pair, x, rows in zip(pairs, arrays, kept, strict=True):
            op = _back(pair)
            rows.append(input_rows(op, x, sampling.picks(positions(op, x), part)))
    return {pair.back: Rows.joined(rows) for pair, rows in zip(pairs, kept, strict=True)}


def _back(pair: Pair) -> Dense:
    """Return the second layer, which is learned."""
    assert isinstance(pair.back, FullyConnected | Conv2D), "only these are learned"
    return pair.back


def _disturbance(rows: Rows, pair: Pair, scales: Floats, choice: Choice, seed: int) -> float:
    """Compute the variance that quantizing inputs, multiplied by scales, adds to the outputs."""
    weights = weight_rows(_back(pair))
    along = np.tile(scales.astype(np.float32), weights.shape[1] // len(scales))
    scaled = Rows(rows.values * along, rows.inside)
    samples, bits = input_samples(scaled, seed), choice.input_bits
    even = choice.uniform
    inputs = even_fit(samples, bits, True) if even else best_fit(samples, bits, True, 0, seed)
    error = quantized_rows(scaled, inputs) - scaled.values
    if scaled.inside is not None:
        error = np.where(scaled.inside, error, 0)
    moved = (error - error.mean(0)) @ (weights / along).T
    return float(np.mean(np.square(moved, dtype=np.float64)))


def input_samples(rows: Rows, seed: int) -> Samples:
    """Draw the numbers that an input's levels are fitted to, from inside of the image."""
    values = rows.values if rows.inside is None else rows.values[rows.inside]
    flat = values.reshape(-1)
    if flat.size > _SAMPLED:
        flat = flat[np.random.default_rng(seed).integers(0, flat.size, _SAMPLED)]
    return Samples.compressed(flat)


def quantized_rows(rows: Rows, inputs: Fit | None) -> Matrix:
    """Return rows as the quantized layer sees them: nearest levels (as they are where inputs stay
    float), exact zeros outside the image.
    """
    if inputs is None:
        return np.asarray(rows.values, np.float32)
    return _to_levels(rows, inputs.basis[0], float(inputs.offset[0]))


def _to_levels(rows: Rows, basis: NDArray[np.float64], offset: float) -> Matrix:
    levels = LearnedLevels(basis.astype(np.float32), np.array(np.float32(offset)))
    z = levels.decode(levels.encode(rows.values)).astype(np.float32)
    if rows.inside is not None:
        z[~rows.inside] = 0
    return z
