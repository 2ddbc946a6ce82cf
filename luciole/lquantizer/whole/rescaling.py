"""Rescale channels in front of uniform quantization: judged with records, by weights alone without
any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from luciole.interpreter.records import Records
from luciole.ir import Array, Model, Op, TensorType
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.quantization import Affine
from luciole.lquantizer.assignment.schemes import Scheme, UniformOptions
from luciole.lquantizer.calibration.saved import Rescaled
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.formats.affine import of_range, of_ranges
from luciole.lquantizer.methods.integers import LearnedIntegers
from luciole.lquantizer.network.problem import LayerProblem
from luciole.lquantizer.network.rescale import (
    RULES,
    WITHOUT_RECORDS,
    Done,
    Floats,
    Joint,
    Pair,
    factors_of,
    judging_records,
    pairs_of,
    rescale,
    rescale_again,
)
from luciole.lquantizer.network.smoothing import norms_of, smooth
from luciole.lquantizer.network.two_layers import Rounding
from luciole.lquantizer.whole.integer_layers import Known

_BYTE = 8
"""Bits of a weight from which its scale reaches the largest one."""


def rescale_channels(
    work: Model,
    records: Records | None,
    options: UniformOptions,
    known: Known,
    schemes: Mapping[Op, Scheme],
) -> None:
    """Rescale channels between the layers that get ``schemes``, and note it in ``known``: as the
    given ranges were found, or else as the options choose.

    Raises QuantizeError for a rule that needs records where there are none, and for ranges of a
    network that was rescaled elsewhere.
    """
    limits = known.limits
    if limits.given is not None:
        joints: list[Joint] = [*pairs_of(work.graph), *norms_of(work.graph)]
        done = rescale_again(work.graph, joints, limits.rescaled)
    else:
        done = _rescale(work, records, options, known, schemes)
        limits.rescaled = tuple(Rescaled(*pair.names, tuple(s.tolist())) for pair, s in done)
    limits.factors = factors_of(done)


def _rescale(
    work: Model,
    records: Records | None,
    options: UniformOptions,
    known: Known,
    schemes: Mapping[Op, Scheme],
) -> list[Done]:
    """Rescale channels as the options choose, judged by a few of the records, or without any by
    made-up inputs.
    """
    rounded = {op: types for op, types in schemes.items() if types.rounds_to_integers}
    names = _rules(options, has_records=records is not None) if rounded else []
    pairs = [pair for pair in pairs_of(work.graph) if {pair.front, pair.back} & rounded.keys()]
    norms = [norm for norm in norms_of(work.graph) if rounded.keys() & set(norm.readers)]
    norms = [] if records is None else norms
    if not names or not (pairs or norms):
        return []
    judges, batch = None, 1
    if records is not None:
        judges = judging_records(records)
        batch = min(known.batch_of(work, records), len(next(iter(judges.values()))))
    judge = _Judge.of(options, rounded)
    errors = judge.errors if options.rescale == "auto" else None
    rules = [RULES[name] for name in names]
    done = rescale(work, pairs, judges, batch, rules, errors, options.seed) if pairs else []
    if judges is not None:
        done += smooth(work, norms, judges, batch, options.rescale, judge.products)
    return done


def _rules(options: UniformOptions, *, has_records: bool) -> list[str]:
    """Name the rules that are tried. Raises QuantizeError for one that needs records where there
    are none.
    """
    if options.rescale == "none":
        return []
    possible = list(RULES) if has_records else list(WITHOUT_RECORDS)
    if options.rescale == "auto":
        return possible
    if options.rescale not in possible:
        why = f"rescale {options.rescale} learns from data"
        raise QuantizeError(f"{why}: give some, or take one of {' and '.join(possible)}")
    return [options.rescale]


@dataclass(frozen=True)
class _Judge:
    """A way of rounding a network's layers, whose effect on two of them is measured."""

    options: UniformOptions
    schemes: Mapping[Op, Scheme]

    @classmethod
    def of(cls, options: UniformOptions, schemes: Mapping[Op, Scheme]) -> _Judge:
        """Round quickly: weights to the nearest, tensors from extreme to extreme."""
        quick = replace(options, rounding="nearest", rescale="none")
        return cls(replace(quick, per_operator=None, config=None), schemes)

    def errors(self, pair: Pair, tried: list[Floats], inputs: Array) -> list[float]:
        """Compute the mean squared error that rounding makes of the second layer's results, for
        each of several scales of the channels in between.
        """
        front, back = self.schemes.get(pair.front), self.schemes.get(pair.back)
        made = _tensors(front)
        rounding = Rounding(
            inputs=lambda x: self._read(x, front, made),
            front=lambda weights, bias: self._weights(weights, bias, front),
            between=lambda x: self._read(x, back, _tensors(back) or made),
            back=lambda weights, bias: self._weights(weights, bias, back),
        )
        return rounding.errors(pair, tried, inputs)

    def products(self, op: FullyConnected, rows: Array, weights: Array) -> Array:
        """Compute a layer's products of rows [r, n] with weights [o, n], both rounded: [r, o]."""
        types, none = self.schemes.get(op), np.zeros(len(weights), np.float32)
        read = self._read(rows, types, _tensors(types))
        return np.asarray(read @ self._weights(weights, none, types).T)

    def _read(self, x: Array, reader: Scheme | None, dtype: TensorType | None) -> Array:
        """Round a tensor of a type as a layer reads it: where it stays float, records one by one
        if the layer computes with integers.
        """
        if dtype is not None:
            low, high = float(x.min()), float(x.max())
            if self.options.symmetric and low < 0 < high:
                low, high = min(low, -high), max(high, -low)
            return _nearest(x, of_range((low, high), dtype))
        if reader is None or reader.explicit:
            return x
        rows = x.reshape(len(x), -1)
        ends = np.stack([rows.min(1), rows.max(1)], 1).astype(np.float64)
        return _nearest(rows, of_ranges(ends, TensorType.INT8)).reshape(x.shape)

    def _weights(self, weights: Array, bias: Array, types: Scheme | None) -> Array:
        """Round weights [o, n] to the integers of a scheme."""
        if types is None:
            return weights
        searched = types.activations is None and types.weight_bits < _BYTE
        ranges = self.options.ranges if searched else "min_max"
        method = LearnedIntegers(replace(self.options, ranges=ranges))
        return method.learn(LayerProblem.without_rows(weights, bias), types).values()


def _tensors(types: Scheme | None) -> TensorType | None:
    return None if types is None else types.activations


def _nearest(x: Array, affine: Affine) -> Array:
    """Round numbers to the nearest of a grid, or of one for each record."""
    return affine.decode(affine.encode(x)).astype(np.float32)
