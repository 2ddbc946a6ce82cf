"""Rescale channels in front of uniform quantization: judged with records, by weights alone without
any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from luciole.interpreter import Interpreter
from luciole.interpreter.records import Records, outputs_of
from luciole.ir import Array, Model, Op
from luciole.ir.analysis.weights import has_weights
from luciole.lquantizer.assignment.schemes import Scheme, UniformOptions
from luciole.lquantizer.calibration.saved import Rescaled
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.network.places import integers_of
from luciole.lquantizer.network.rescale import (
    RULES,
    WITHOUT_RECORDS,
    Done,
    Pair,
    factors_of,
    judge_alone,
    judge_made_up,
    pairs_of,
    rescale,
    rescale_again,
)
from luciole.lquantizer.rewrite.rounded import Rounded
from luciole.lquantizer.whole.integer_layers import Known, round_plainly
from luciole.lquantizer.whole.weights import store_weights

_JUDGES = 48
"""Records that judge rescalings, at the most."""
_BATCH = 16
"""Made-up inputs that run at once."""


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
        done = rescale_again(work.graph, limits.rescaled)
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
    if not names or not pairs:
        return []
    judges, batch, judge = None, _BATCH, None
    if records is not None:
        judges = {name: array[:: -(-len(array) // _JUDGES)] for name, array in records.items()}
        batch = min(known.batch_of(work, records), len(next(iter(judges.values()))))
    if options.rescale == "auto":
        error = _Rounding.of(options, rounded, batch).error
        if judges is None:
            judge = judge_made_up(work, error, options.seed)
        else:
            judge = judge_alone(work, pairs, judges, batch, error)
    return rescale(work, pairs, judges, batch, [RULES[name] for name in names], judge)


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
class _Rounding:
    """A way of rounding a network's layers, whose effect on two of them is measured."""

    options: UniformOptions
    schemes: Mapping[Op, Scheme]
    batch: int

    @classmethod
    def of(cls, options: UniformOptions, schemes: Mapping[Op, Scheme], batch: int) -> _Rounding:
        """Round quickly: to the nearest."""
        quick = replace(options, rounding="nearest", rescale="none")
        quick = replace(quick, per_operator=None, config=None)
        return cls(replace(quick, input_type="float32", output_type="float32"), schemes, batch)

    def error(self, pair: Pair, model: Model, name: str, inputs: Array) -> float:
        """Compute the mean squared error that rounding makes of the output of a model of two
        layers.
        """
        rounded, records = model.clone(), {name: inputs}
        schemes = self._schemes(pair, rounded)
        integers = integers_of(schemes)
        quick = replace(self.options, ranges="min_max")
        done = round_plainly(rounded, records, integers, quick, self.batch) if integers else set()
        Rounded(rounded, frozenset(done)).finish()
        alone = {op: types for op, types in schemes.items() if types.activations is None}
        store_weights(rounded.graph, alone, self.options)
        models = (rounded, model)
        rounded_outputs, float_outputs = (
            outputs_of(Interpreter(m), records, batch=self.batch) for m in models
        )
        ends = zip(rounded_outputs.values(), float_outputs.values(), strict=True)
        return float(np.mean([np.square(a - b, dtype=np.float64).mean() for a, b in ends]))

    def _schemes(self, pair: Pair, model: Model) -> dict[Op, Scheme]:
        """Give copies of a pair's layers their schemes, and operators between them that of the
        second.
        """
        layers = [op for op in model.graph.ops if has_weights(op)]
        originals = dict(zip(layers, (pair.front, pair.back), strict=True))
        named = {op: self.schemes.get(originals.get(op, pair.back)) for op in model.graph.ops}
        return {op: types for op, types in named.items() if types is not None}
