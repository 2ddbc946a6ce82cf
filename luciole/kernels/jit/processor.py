"""Features of the processor that kernels are compiled for."""

from __future__ import annotations

import functools
import os

import llvmlite.binding as llvm


@functools.cache
def features() -> frozenset[str]:
    """Return the names of the machine's instruction set extensions, as LLVM spells them;
    NUMBA_CPU_NAME and NUMBA_CPU_FEATURES override them.
    """
    generic = os.environ.get("NUMBA_CPU_NAME") == "generic"
    given = os.environ.get("NUMBA_CPU_FEATURES", "" if generic else None)
    found = llvm.get_host_cpu_features().flatten() if given is None else given
    return frozenset(name[1:] for name in found.split(",") if name.startswith("+"))


def vector_registers() -> int:
    """Return how many vectors of 16 floats the machine keeps in registers: 32 with AVX-512, else 8
    (16 registers of 8 floats, or 32 of 4).
    """
    return 32 if "avx512f" in features() else 8


def name() -> str:
    """Return LLVM's name of the processor, as "znver5"."""
    return os.environ.get("NUMBA_CPU_NAME") or str(llvm.get_host_cpu_name())
