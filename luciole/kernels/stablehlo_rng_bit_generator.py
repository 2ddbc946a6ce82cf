"""STABLEHLO_RNG_BIT_GENERATOR kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, UnsupportedError
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.stablehlo_rng_bit_generator import StablehloRngBitGenerator, check_state
from luciole.ir.rules import settled
from luciole.kernels.arrays import philox, threefry
from luciole.kernels.core.limits import afford, room
from luciole.kernels.core.registry import reference
from luciole.schema.enums import RngAlgorithm

DRAWN = ("i4", "i8", "u4", "u8")
"""NumPy's names of the types that numbers may be drawn as."""


@reference(StablehloRngBitGenerator, ())
def rng_bit_generator(op: StablehloRngBitGenerator, state: Array) -> tuple[Array, Array]:
    """Draw blocks of words for counters that follow each other."""
    check_state(op.algorithm, state.shape)
    drawn = op.results[1]
    dtype = NUMPY.get(drawn.dtype)
    if dtype is None or dtype.str[1:] not in DRAWN:
        raise UnsupportedError(f"no random {drawn.dtype.name}, there are {', '.join(DRAWN)}")
    shape = settled(drawn.shape)
    afford(drawn.dtype, shape)
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize // 4
    room(16 * 8 * count, "what numbers are made of")
    generator = threefry if op.algorithm == RngAlgorithm.THREEFRY else philox
    blocks = -(-count // generator.BLOCK)
    words = _words(op.algorithm, state, blocks).astype(np.uint32).reshape(-1)[:count]
    following = state.copy()
    following[1] += np.uint64(blocks)
    return following, words.view(dtype).reshape(shape)


def _words(algorithm: RngAlgorithm, state: Array, blocks: int) -> Array:
    """Compute the blocks of a state, a row each."""
    key, begin = int(state[0]), state[1]
    counters = np.arange(blocks, dtype=np.uint64) + begin
    low, high = counters & philox.MASK, counters >> philox.WORD
    if algorithm == RngAlgorithm.THREEFRY:
        return threefry.mixed([low, high], philox.halves(key))
    upper = philox.halves(int(state[2] if state.size > 2 else state[0]))
    beside = [np.full(blocks, n, np.uint64) for n in upper]
    return philox.mixed([low, high, *beside], philox.halves(key))
