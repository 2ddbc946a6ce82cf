"""How kernels are compiled and called, and what they are made of; only here is numba imported.

Every kernel is a function of one argument, a pointer to a record of int64 numbers (addresses,
sizes, parameters). It is compiled when its address is first asked for and kept on disk; nothing is
compiled by importing.
"""

from luciole.kernels.jit.bits import (
    count,
    counters,
    fill,
    plane,
    search,
    toggled,
    weigh,
    word_codes,
    word_floats,
)
from luciole.kernels.jit.compiling import (
    Kernel,
    cache_folder,
    driver,
    inline,
    kernel,
    merged,
    run_timed,
)
from luciole.kernels.jit.products import add_products, store_between
from luciole.kernels.jit.scalars import Pointer, Record, floats, longs, popcount, words
from luciole.kernels.jit.vectors import LANES

__all__ = [
    "LANES",
    "Kernel",
    "Pointer",
    "Record",
    "add_products",
    "cache_folder",
    "count",
    "counters",
    "driver",
    "fill",
    "floats",
    "inline",
    "kernel",
    "longs",
    "merged",
    "plane",
    "popcount",
    "run_timed",
    "search",
    "store_between",
    "toggled",
    "weigh",
    "word_codes",
    "word_floats",
    "words",
]
