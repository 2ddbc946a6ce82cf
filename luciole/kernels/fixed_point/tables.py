"""Functions of quantized numbers as tables, made as TFLite makes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from luciole.ir import Array, Value
from luciole.ir.quantization import per_tensor, rounded
from luciole.kernels import jit

Function = Callable[[Array], Array]
"""From numbers side by side, float32 or float64, to as many of their type. Every step is rounded as
TFLite's is: ties between two integers hang on the last bit.
"""

STEPS = 512
"""Pieces of a table for 16 bits; between its entries lie 128 integers each."""


def in_c(name: str) -> Function:
    """Return a function of the C library in single precision, such as ``expf``: the very one that
    TFLite calls. NumPy's may differ in the last bit.
    """
    return lambda x: np.fromiter(map(jit.of_single(name), x.tolist()), np.float32, len(x))


def looked_up(function: Function, x: Array, input: Value, result: Value) -> Array:
    """Apply a function to stored integers: by a table of all 8 bits, or a finer one of 16 bits.

    Raises LucioleError where a scale is missing.
    """
    grid, result_grid = per_tensor(input, "the input"), per_tensor(result, "the result")
    table = _table(function, grid, result_grid, x.dtype)
    if x.dtype == np.int16:
        return interpolated(table, x)
    return np.asarray(table[x.astype(np.int64) - np.iinfo(x.dtype).min])


@lru_cache(64)
def _table(
    function: Function,
    grid: tuple[np.float32, int],
    result: tuple[np.float32, int],
    dtype: np.dtype[Any],
) -> Array:
    """Make the table of a function once: the C library is called number by number."""
    if dtype == np.int16:
        return pieces(function, grid, result)
    (scale, zero_point), (to, to_zero) = grid, result
    limits = np.iinfo(dtype)
    every = np.arange(limits.min, limits.max + 1)
    with np.errstate(all="ignore"):
        results = function(scale * (every - zero_point).astype(np.float32))
        steps = rounded(results * (np.float32(1) / to)) + np.float32(to_zero)
        cut = np.clip(np.where(np.isnan(steps), -np.inf, steps), limits.min, limits.max)
    return cut.astype(dtype)


def pieces(
    function: Function, grid: tuple[np.floating, int], result: tuple[np.floating, int]
) -> Array:
    """Make the table of a function of 16 bits, int16 [513]: samples, nudged so that lines between
    them are as far off in the middle as at the ends. TFLite's LUTPopulateInt16, in the type of the
    scales.
    """
    (scale, zero_point), (to, to_zero) = grid, result
    kind = scale.dtype.type
    low, high = kind(-(2**15)), kind(2**15 - 1)
    first, last = (scale * kind(n - zero_point) for n in (-(2**15), 2**15 - 1))
    step = (last - first) / kind(STEPS)
    span = to * kind(2**15 - 1 - to_zero) - to * kind(-(2**15) - to_zero)
    inverse = kind(2**16) / span
    at = first + np.arange(STEPS + 1).astype(scale.dtype) * step
    with np.errstate(all="ignore"):
        samples = function(at) * inverse
        here, after = rounded(samples[:-1]), samples[1:]
        middle = rounded(function(at[:-1] + step / kind(2)) * inverse)
        drawn = rounded((after + here) / kind(2))
        bias = rounded((drawn - middle) / kind(2))
        end = rounded(function(np.array([last])) * inverse)
        return np.asarray(np.clip(np.append(here - bias, end), low, high), np.int16)


def interpolated(table: Array, x: Array) -> Array:
    """Interpolate a table for integers of 16 bits: TFLite's LUTLookup."""
    at, offset = (x.astype(np.int64) >> 7) + STEPS // 2, x.astype(np.int64) & 127
    base = table[at].astype(np.int64)
    slope = (table[at + 1].astype(np.int64) - base).astype(np.int16).astype(np.int64)
    return np.asarray(base + ((slope * offset + 64) >> 7)).astype(np.int16)
