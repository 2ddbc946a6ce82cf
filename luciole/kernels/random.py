"""Draw random numbers: with the same seeds those that TFLite draws."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, UnsupportedError
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.fill import not_negative
from luciole.ir.ops.random import (
    Multinomial,
    RandomNumbers,
    RandomStandardNormal,
    RandomUniform,
    check_classes,
)
from luciole.ir.rules import integers
from luciole.kernels.arrays.philox import BLOCK, Philox, doubles, singles
from luciole.kernels.core.limits import affordable, room
from luciole.kernels.core.registry import stateful
from luciole.kernels.core.state import State

LEAST = np.float32(1e-7)
"""Number whose logarithm is taken instead of that of smaller numbers."""

SKIPPED = 512
"""Blocks for each class drawn that the next run of MULTINOMIAL begins behind, as TensorFlow's."""

TOGETHER = 1 << 16
"""Classes or samples of the rows that are searched at once: their arrays stay in the cache."""


@stateful(RandomUniform)
def random_uniform(op: RandomUniform, state: State, shape: Array) -> Array:
    """Draw one number from each word."""
    return _numbers(op, state, shape, is_normal=False)


@stateful(RandomStandardNormal)
def random_standard_normal(op: RandomStandardNormal, state: State, shape: Array) -> Array:
    """Draw two numbers from two words: the method of Box and Muller, 1958."""
    return _numbers(op, state, shape, is_normal=True)


def _numbers(op: RandomNumbers, state: State, shape: Array, is_normal: bool) -> Array:
    extents = affordable(op, not_negative(integers(shape, "shape"), "shape"))
    count = int(np.prod(extents, dtype=np.int64))
    room(16 * 8 * count, "what numbers are made of")
    words = singles(_generator(op, state).draw(-(-count // BLOCK)))
    numbers = _normal(words) if is_normal else words
    return numbers.reshape(-1)[:count].reshape(extents)


def _generator(op: RandomNumbers | Multinomial, state: State) -> Philox:
    """Return the operator's own generator, made when it runs first. TFLite reads 32 bits of a
    seed.
    """
    if op not in state.generators:
        of_file = np.array([op.seed, op.seed2], np.int64).astype(np.int32).tolist()
        seeds = of_file if any(of_file) else [secrets.randbits(64), secrets.randbits(64)]
        state.generators[op] = Philox(*seeds)
    return state.generators[op]


def _normal(words: NDArray[np.float32]) -> NDArray[np.float32]:
    """Take pairs of numbers as length and angle of a vector."""
    length = np.sqrt(np.float32(-2) * np.log(np.maximum(words[:, ::2], LEAST)))
    angle = (2 * np.pi * words[:, 1::2].astype(np.float64)).astype(np.float32)
    pairs = np.stack([np.sin(angle) * length, np.cos(angle) * length], axis=-1)
    return np.asarray(pairs, np.float32)


@stateful(Multinomial)
def multinomial(op: Multinomial, state: State, logits: Array, num_samples: Array) -> Array:
    """Find the places where the summed probabilities first exceed a random number."""
    if logits.dtype != np.float32:
        raise UnsupportedError(f"logits are {logits.dtype}, float32 is needed")
    check_classes(logits.shape[1])
    (count,) = not_negative(integers(num_samples, "num_samples", 1), "num_samples")
    batch, _ = affordable(op, (len(logits), count))
    room(16 * 8 * batch * count, "what numbers are made of")
    generator = _generator(op, state)
    blocks = -(-batch * count // 2)
    words = generator.draw(blocks).reshape(-1, 2)[: batch * count]
    generator.skip(batch * -(-count // 4) * 4 * SKIPPED - blocks)
    numbers = doubles(words[:, 0], words[:, 1]).reshape(batch, count)
    drawn = np.empty((batch, count), NUMPY[op.output.dtype])
    rows = max(1, TOGETHER // max(logits.shape[1], count))
    for first in range(0, batch, rows):
        block = slice(first, first + rows)
        drawn[block] = _drawn(logits[block], numbers[block])
    return drawn


def _drawn(logits: Array, numbers: NDArray[np.float64]) -> NDArray[np.intp]:
    """Draw from all rows by one search: complex numbers are in the order of their rows first."""
    finite = np.isfinite(logits)
    most = np.max(logits, axis=1, keepdims=True, where=finite, initial=np.finfo(np.float32).min)
    shares = np.where(finite, np.exp(logits.astype(np.float64) - most.astype(np.float64)), 0)
    sums = np.cumsum(shares, axis=1)
    sought = _of_rows(numbers * sums[:, -1:])
    places = np.searchsorted(_of_rows(sums).reshape(-1), sought, side="right")
    return np.asarray(places - np.arange(len(logits))[:, None] * logits.shape[1])


def _of_rows(numbers: NDArray[np.float64]) -> NDArray[np.inexact[Any]]:
    """Put numbers [rows, n] behind the places of their rows where there are several."""
    if len(numbers) == 1:
        return numbers
    result = np.empty(numbers.shape, np.complex128)
    result.real, result.imag = np.arange(len(numbers))[:, None], numbers
    return result
