"""Compile and call kernels, and the instructions that they are made of; only here is numba
imported.

Every kernel is a function of one argument, a record of numbers (addresses, sizes, parameters), see
``record``. It is compiled when its address is first asked for and kept on disk; nothing is
compiled by importing.
"""

from luciole.kernels.jit.cache import kernel_cache
from luciole.kernels.jit.calls import caller
from luciole.kernels.jit.compiling import Kernel, inlined, kernel, run_timed, separate
from luciole.kernels.jit.emits import Single
from luciole.kernels.jit.objects import of_single
from luciole.kernels.jit.scalars import Pointer, call, doubles, floats, longs, popcount, words
from luciole.kernels.jit.together import with_compiled
from luciole.kernels.jit.vector.bit_lookups import ones, write_word
from luciole.kernels.jit.vector.bits import (
    begin_chains,
    counters,
    fill,
    float_tile,
    joined,
    prefetch_words,
    scale_accumulate,
    small_added,
    small_counters,
    xor_popcount,
)
from luciole.kernels.jit.vector.products import add_products
from luciole.kernels.jit.vector.quantizing import (
    encode_word,
    first_floats,
    float_splats,
    is_empty,
    looked_up,
    lowest_levels,
    plane,
    raise_levels,
    word_floats,
    word_splats,
)
from luciole.kernels.jit.vector.results import tanh, write
from luciole.kernels.jit.vector.sorting import fill_up, sort_word
from luciole.kernels.jit.vector.vectors import LANES

__all__ = [
    "LANES",
    "Kernel",
    "Pointer",
    "Single",
    "add_products",
    "begin_chains",
    "call",
    "caller",
    "counters",
    "doubles",
    "encode_word",
    "fill",
    "fill_up",
    "first_floats",
    "float_splats",
    "float_tile",
    "floats",
    "inlined",
    "is_empty",
    "joined",
    "kernel",
    "kernel_cache",
    "longs",
    "looked_up",
    "lowest_levels",
    "of_single",
    "ones",
    "plane",
    "popcount",
    "prefetch_words",
    "raise_levels",
    "run_timed",
    "scale_accumulate",
    "separate",
    "small_added",
    "small_counters",
    "sort_word",
    "tanh",
    "with_compiled",
    "word_floats",
    "word_splats",
    "words",
    "write",
    "write_word",
    "xor_popcount",
]
