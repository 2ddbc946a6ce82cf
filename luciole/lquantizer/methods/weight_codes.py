"""Weights that keep a layer's OUTPUT close, not its weights: codes and bases fitted in the metric
of the inputs' second moments H = E[(z - E z)(z - E z)^T].

For outputs y = W z, the error of quantized weights Q is E |(Q - W)(z - E z)|^2 = tr (Q - W) H (Q -
W)^T, the means being taken up by the bias. Codes are rounded one input after the other, each
carrying its error on (Frantar et al. 2022, GPTQ), then improved one by one (coordinate descent);
bases have a closed form. Weights are kept input by output here, [n, o].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from luciole.ir import learned_levels
from luciole.ir.blockwise import stored_scales
from luciole.ir.number_format import LearnedLevels
from luciole.lquantizer.calibration.gram import BLOCK, Gram
from luciole.lquantizer.formats.coded import Coded, Matrix, Stepped
from luciole.lquantizer.formats.even_levels import even_basis, even_fit
from luciole.lquantizer.formats.levels import Samples, best_fit

ROUNDS, _PASSES = 5, 3
"""Alternations of codes and bases, and sweeps over the codes in each: more changes nothing."""
_RIDGE = 1e-4


@dataclass(frozen=True)
class _Levels:
    """Levels [o, L] in rising order, the thresholds between them, and each level's code."""

    level: Matrix
    between: Matrix
    order: NDArray[np.intp]

    @classmethod
    def of(cls, coded: Coded) -> _Levels:
        format = LearnedLevels(coded.basis, coded.offset)
        level, order = format.levels
        return cls(level.astype(np.float32), format.thresholds, order)

    def nearest(self, targets: Matrix) -> tuple[Matrix, NDArray[np.intp]]:
        """Find, for one number per output, the nearest level and its code number, both [o]."""
        place = (targets[:, None] > self.between).sum(1)
        outputs = np.arange(len(targets))
        return self.level[outputs, place], self.order[outputs, place]


def fit_codes(
    h: Gram,
    weights: Matrix,
    start: Coded,
    offset: bool,
    rounds: int = ROUNDS,
    even: bool = False,
) -> Coded:
    """Find codes and bases with a small output error for float weights [n, o] and second moments h
    of n inputs.

    The bases begin as those of ``start``; levels that are evenly spaced stay so where that is asked
    for. ``h`` must be positive definite (add to its diagonal what makes it so).
    """
    coded = Coded(start.code.copy(), start.basis, start.offset, weights)
    if even and coded.basis.shape[1] > 1:
        _alternate(h, weights, coded, rounds, lambda: move_steps(h, weights, coded))
    else:
        _alternate(h, weights, coded, rounds, lambda: move_bases(h, weights, coded, offset))
    return coded


def fit_blocks(
    h: Gram, weights: Matrix, scale: NDArray[np.float32], most: int, rounds: int
) -> Stepped:
    """Find integers from -most to most as ``fit_steps`` does, with a scale for each block of an
    output's inputs: they begin as given, [blocks, o].
    """
    block = weights.shape[0] // len(scale)
    coded = Stepped(np.zeros(weights.shape, np.intp), scale, most, weights, block)
    _alternate(h, weights, coded, rounds, lambda: _move_blocks(h, weights, coded))
    return coded


def fit_steps(
    h: Gram, weights: Matrix, scale: NDArray[np.float32], most: int, rounds: int, moves: bool
) -> Stepped:
    """Find integers from -most to most with a small output error for float weights [n, o] and
    second moments h [n, n], positive definite; the scales [o] are where they begin, and move if
    they may. Groups along a first axis are learned at once.
    """
    order = np.argsort(-h.diagonal)
    if order.ndim > 1:  # each group's inputs in an order of its own
        h, weights = h.ordered(order), np.take_along_axis(weights, order[..., None], -2)
    coded = Stepped(np.zeros(weights.shape, np.intp), scale, most, weights)
    move = (lambda: move_scales(h, weights, coded)) if moves else (lambda: None)
    _alternate(h, weights, coded, rounds, move)
    if order.ndim > 1:
        back = np.argsort(order, -1)[..., None]
        coded.code = np.take_along_axis(coded.code, back, -2)
        coded.target = np.take_along_axis(weights, back, -2)
    return coded


def fit_scales(
    h: Gram, weights: Matrix, start: Coded, scale: Matrix, rounds: int
) -> tuple[Coded, Matrix]:
    """Find codes of given levels, those of ``start``, and for each output the scale [o] that they
    are multiplied by, with a small output error; the scales begin as given.
    """
    levels = LearnedLevels(start.basis, start.offset)
    coded = Coded(start.code.copy(), start.basis, start.offset, weights)
    scales = [scale]

    def multiply(by: Matrix) -> None:
        scales[0] = by
        coded.basis, coded.offset = start.basis * by[:, None], start.offset * by

    def move() -> None:
        values = np.asarray(levels.decode(coded.code.T).T, np.float32)
        multiply(_scales(h, weights, values, scales[0]))

    multiply(scale)
    _alternate(h, weights, coded, rounds, move)
    return coded, scales[0]


def _alternate(
    h: Gram, weights: Matrix, coded: Coded | Stepped, rounds: int, move: Callable[[], None]
) -> None:
    """Improve codes, and bases or scales in between; inputs of groups are in order."""
    sequence = np.argsort(-h.diagonal) if weights.ndim == 2 else np.arange(weights.shape[-2])
    coded.code = rounded(h, weights, coded, sequence)
    for left in reversed(range(rounds)):
        for _ in range(_PASSES):
            if not descend(h, weights, coded, sequence):
                break
        if left:
            move()


def plain_codes(
    weights: Matrix,
    bits: int,
    offset: bool,
    importance: NDArray[np.floating] | None = None,
    seed: int = 0,
    even: bool = False,
) -> Coded:
    """Find codes and bases with a small error of the weights themselves, each input [n] as
    important as said; evenly spaced levels where these are asked for.
    """
    counts = None if importance is None else np.asarray(importance, np.float64)
    samples = Samples.of(weights.T, counts)
    if even:
        fit = even_fit(samples, bits, offset)
    else:
        fit = best_fit(samples, bits, offset, restarts=1, seed=seed)
    code = LearnedLevels(fit.basis, fit.offset).encode(weights.T).T.copy()
    return Coded(code, fit.basis, fit.offset, weights)


def _blocks(sequence: NDArray[np.intp]) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Cut a sequence into blocks, each with all that comes later."""
    for begin in range(0, len(sequence), BLOCK):
        yield sequence[begin : begin + BLOCK], sequence[begin + BLOCK :]


_Nearest = Callable[[Matrix, int], tuple[Matrix, NDArray[np.intp]]]
"""Finds, for a number of each output and one of the inputs, the nearest value and its code."""


def _nearest(coded: Coded | Stepped) -> _Nearest:
    """Choose a search for the nearest codes of numbers."""
    if isinstance(coded, Stepped):
        return coded.nearest
    levels = _Levels.of(coded)
    return lambda targets, _: levels.nearest(targets)


def rounded(
    h: Gram, weights: Matrix, coded: Coded | Stepped, sequence: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Round weights [n, o] to code numbers [n, o] of the levels of ``coded``, input by input in the
    order of ``sequence`` [n], each error spread over the inputs still to come.
    """
    nearest = _nearest(coded)
    elimination = h.ordered(sequence).elimination(weights[..., sequence, :])
    codes = np.empty(weights.shape, np.intp)
    for place, row in enumerate(sequence):
        value, codes[..., row, :] = nearest(elimination.target(place), int(row))
        elimination.fix(place, value)
    return codes


def descend(h: Gram, weights: Matrix, coded: Coded | Stepped, sequence: NDArray[np.intp]) -> bool:
    """Give each weight in turn its best code, the others held; returns whether any changed."""
    nearest = _nearest(coded)
    values = coded.values()
    slope = h.slope(values - weights)
    changed = False
    for block, later in _blocks(sequence):
        inner, local = h.block(block), slope.at(block)
        moves = np.zeros_like(local)
        for i, row in enumerate(block):
            best = values[..., row, :] - local[..., i, :] / inner[..., i, i, None]
            value, code = nearest(best, int(row))
            move = moves[..., i, :] = value - values[..., row, :]
            if move.any():
                local += inner[..., i, None] * move[..., None, :]
                values[..., row, :], coded.code[..., row, :] = value, code
        if moves.any():
            changed = True
            if len(later):
                slope.move(block, moves, later)
    return changed


def move_bases(h: Gram, weights: Matrix, coded: Coded, offset: bool) -> None:
    """Solve for the best bases and offsets for the present codes: (B^T H B) a = B^T H w."""
    bits = coded.basis.shape[1]
    signs = learned_levels.sign_codes(bits)[coded.code].astype(np.float32)
    columns = [signs[..., k] for k in range(bits)] + [np.ones_like(weights)] * offset
    present = np.concatenate([coded.basis, coded.offset[:, None]], 1)[:, : len(columns)]
    weighted = h.times(weights)
    products = [h.times(column) for column in columns]
    left = np.stack([np.stack([(a * b).sum(0) for b in products], -1) for a in columns], -2)
    right = np.stack([(a * weighted).sum(0) for a in columns], -1).astype(np.float64)
    ridge = _RIDGE * np.trace(left, axis1=1, axis2=2) / len(columns) + np.finfo(np.float32).tiny
    left = left.astype(np.float64) + ridge[:, None, None] * np.eye(len(columns))
    solved = np.linalg.solve(left, (right + ridge[:, None] * present)[..., None])[..., 0]
    coded.basis = solved[:, :bits]
    if offset:
        coded.offset = solved[:, bits]


def move_steps(h: Gram, weights: Matrix, coded: Coded) -> None:
    """Solve for the best step of each output's even levels around 0 for the present codes."""
    bits = coded.basis.shape[1]
    codes = coded.code - np.float32((2**bits - 1) / 2)
    coded.basis = even_basis(_scales(h, weights, codes, coded.basis[:, 0] * 2), bits)


def move_scales(h: Gram, weights: Matrix, coded: Stepped) -> None:
    """Solve for the best scale of each output for the present codes."""
    scales = _scales(h, weights, coded.code.astype(np.float32), coded.scale)
    coded.scale = scales.astype(np.float32)


def _move_blocks(h: Gram, weights: Matrix, coded: Stepped) -> None:
    """Solve for the best scale of each block in turn, the others held, for the present codes."""
    values, inputs = coded.values(), np.arange(len(weights))
    slope, scales = h.slope(values - weights), coded.scale.copy()
    for number, block in enumerate(np.split(inputs, len(scales))):
        codes = coded.code[block].astype(np.float32)
        below = (codes * (h.block(block) @ codes)).sum(0)
        above = below * scales[number] - (codes * slope.at(block)).sum(0)
        solved = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
        solved = stored_scales(np.where(solved > 0, solved, scales[number]))
        slope.move(block, codes * (solved - scales[number]), inputs[block[-1] + 1 :])
        scales[number] = solved
    coded.scale = scales


def _scales(h: Gram, weights: Matrix, codes: Matrix, present: NDArray[np.floating]) -> Matrix:
    """Compute s = q^T H w / q^T H q for codes [n, o], as at present where that is not
    above 0: [o].
    """
    weighted = h.times(codes)
    above, below = (weighted * weights).sum(-2), (weighted * codes).sum(-2)
    solved = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return np.asarray(np.where(solved > 0, solved, present))
