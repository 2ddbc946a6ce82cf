"""Learn one layer's weights as codes of a few bits that stand for learned integers: offset + sum of
+-a_i, all within a byte, times the output's scale.

Levels are learned as real numbers first (``methods.output_aware``). The largest is 127 steps then,
the others are rounded to whole steps; codes are learned again for what they have become, and scales
follow in closed form.
"""

from __future__ import annotations

import numpy as np

from luciole.ir import Array
from luciole.lquantizer.calibration.moments import Part
from luciole.lquantizer.formats.coded import Coded
from luciole.lquantizer.formats.integers import Integers, Scales, idle_scale
from luciole.lquantizer.formats.stored_levels import FEW, StoredLevels, fit_stored
from luciole.lquantizer.methods.coding import DAMPING, Coder
from luciole.lquantizer.methods.output_aware import codings_of, errors_of, parted
from luciole.lquantizer.methods.weight_codes import ROUNDS, fit_scales, plain_codes
from luciole.lquantizer.network.problem import LayerProblem

MOST = 125
"""The largest level of an output in steps, before up to four parts of it are rounded."""
_TURNS = 3
"""Turns of codes and scales for whole levels."""


def learn_levels(problem: LayerProblem, bits: int, *, aware: bool) -> Integers:
    """Learn codes of some bits for a layer's weights, and the integers that they stand for: of each
    output its own, of outputs with few weights the same with a scale for each. Outputs stay close
    where codes are ``aware`` of them and rows are known, else the weights do.
    """
    weights, part = problem.weights, problem.part() if aware else None
    if weights.shape[1] <= FEW:
        levels, scales = _shared(problem, part, bits)
    elif part is not None:
        levels, scales = _output_aware(problem, part, bits)
    else:
        plain = plain_codes(np.ascontiguousarray(weights.T), bits, False, seed=problem.seed)
        levels, scales = _whole(plain, weights)
    codes = levels.values().astype(np.int8)
    bias = _bias(problem, part, codes * scales[:, None])
    return Integers(codes, scales, bias, levels)


def _output_aware(problem: LayerProblem, whole: Part, bits: int) -> tuple[StoredLevels, Scales]:
    """Learn levels by the coding that keeps the layer's output closest on rows held back."""
    part, judge, _ = parted(problem, whole)
    coder = Coder(problem, bits, whole)
    errors = errors_of(coder, codings_of(problem, bits, offsets=True), part, judge)
    coded = coder.coded(min(errors, key=errors.__getitem__), whole, ROUNDS)
    levels, scales = _whole(coded, problem.weights)
    h = whole.moments.damped(DAMPING)
    offsets = np.zeros(len(scales)) if levels.offsets is None else levels.offsets
    start = Coded(coded.code, levels.basis, offsets, coded.target)
    again, scales = fit_scales(h, coded.target, start, scales, _TURNS)
    return StoredLevels(again.code.T, levels.basis, offsets=levels.offsets), scales


def _whole(coded: Coded, weights: Array) -> tuple[StoredLevels, Scales]:
    """Round levels to whole steps, of which the largest of each output has nearly 127."""
    peaks = np.abs(coded.basis).sum(1) + np.abs(coded.offset)
    scales = np.where(peaks > 0, peaks / MOST, idle_scale(weights)).astype(np.float32)
    basis = np.rint(coded.basis / scales[:, None]).astype(np.int8)
    offsets = np.rint(coded.offset / scales).astype(np.int8)
    own = offsets if offsets.any() else None
    return StoredLevels(coded.code.T, basis, offsets=own), scales


def _shared(problem: LayerProblem, part: Part | None, bits: int) -> tuple[StoredLevels, Scales]:
    """Learn one basis for all outputs, and a scale for each."""
    moments = None if part is None else problem.rows.moments(len(problem.weights))
    stored = fit_stored(problem.weights, moments, bits, problem.seed)
    assert stored.scales is not None, "outputs of few weights share a basis"
    step = max(float(np.abs(stored.basis).sum()) / MOST, float(np.finfo(np.float32).tiny))
    basis = np.rint(stored.basis / step).astype(np.int8)
    return StoredLevels(stored.codes, basis), (stored.scales * step).astype(np.float32)


def _bias(problem: LayerProblem, part: Part | None, values: Array) -> Array:
    """Choose the bias [o] that gives outputs the mean of their targets, that of the layer where
    these are not known.
    """
    if part is None:
        return problem.bias
    own = problem.by_group(np.asarray(values, np.float32))
    return problem.steady_bias(part, np.ascontiguousarray(own))
