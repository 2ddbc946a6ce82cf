"""Features of the processor that kernels are compiled for."""

from __future__ import annotations

import functools
import os

import llvmlite.binding as llvm

from luciole.kernels.jit.arm import dot_products, is_arm
from luciole.kernels.jit.choice import choose

choose()

DECISIVE = frozenset(
    {
        *("avx2", "avx512f", "avx512bw", "avx512vbmi", "avx512vbmi2", "avx512vnni"),
        *("avx512vpopcntdq", "avxvnni", "gfni", "dotprod", "i8mm", "znver5"),
    }
)
"""What kernels and their plans depend on, beside what LLVM itself makes of a processor: extensions,
and one processor, which counts bits twice as fast as others.
"""


@functools.cache
def features() -> frozenset[str]:
    """Return the names of the machine's instruction set extensions, as LLVM spells them;
    LUCIOLE_CPU, or NUMBA_CPU_NAME and NUMBA_CPU_FEATURES, override them.
    """
    generic = os.environ.get("NUMBA_CPU_NAME") == "generic"
    chosen = os.environ.get("NUMBA_CPU_FEATURES", "" if generic else None)
    listed = llvm.get_host_cpu_features().flatten() if chosen is None else chosen
    named = frozenset(word[1:] for word in listed.split(",") if word.startswith("+"))
    if not is_arm():
        return named
    return named | dot_products(llvm.get_process_triple(), name(), listed)


def decisions(features: frozenset[str], processor: str) -> frozenset[str]:
    """Return which of ``DECISIVE`` hold for a processor of LLVM's name and features. GFNI is used
    on 512 bits alone, AVX-VNNI where there is no VNNI on 512 bits.
    """
    used = {"gfni": "avx512f" in features, "avxvnni": "avx512vnni" not in features}
    return frozenset(f for f in DECISIVE & (features | {processor}) if used.get(f, True))


@functools.cache
def _own_decisions() -> frozenset[str]:
    return decisions(features(), name())


def has(*names: str) -> bool:
    """Return whether all of the names, some of ``DECISIVE``, hold for the machine: kernels and
    plans ask for nothing else of a processor, so that machines with the same answers can share
    machine code. Raises KeyError for others.
    """
    if not DECISIVE.issuperset(names):
        raise KeyError(*names)
    return _own_decisions().issuperset(names)


def adds_four_products() -> bool:
    """Return whether an x86-64 machine has ``vpdpbusd``, on 512 bits or on 256."""
    return has("avx512vnni") or has("avxvnni")


def vector_registers() -> int:
    """Return how many vectors of 16 floats the machine keeps in registers: 32 with AVX-512, else 8
    (16 registers of 8 floats, or 32 of 4).
    """
    return 32 if has("avx512f") else 8


def name() -> str:
    """Return LLVM's name of the processor, as "znver5"."""
    return os.environ.get("NUMBA_CPU_NAME") or str(llvm.get_host_cpu_name())
