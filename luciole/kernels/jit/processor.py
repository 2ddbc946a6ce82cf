"""Features of the processor that kernels are compiled for."""

from __future__ import annotations

import functools
import os

import llvmlite.binding as llvm

from luciole.kernels.jit.choice import choose

choose()

_DOT = """
define i32 @{extend}(<16 x i8> %x, <16 x i8> %y) {{
  %a = {extend} <16 x i8> %x to <16 x i32>
  %b = sext <16 x i8> %y to <16 x i32>
  %products = mul <16 x i32> %a, %b
  %sum = call i32 @llvm.vector.reduce.add.v16i32(<16 x i32> %products)
  ret i32 %sum
}}
declare i32 @llvm.vector.reduce.add.v16i32(<16 x i32>)
"""
"""A sum of products of bytes, in words of LLVM's."""

_DOTS = {"dotprod": ("sext", "\tsdot\t"), "i8mm": ("zext", "\tusdot\t")}
"""Extensions of Arm's, how their dot products see the first bytes, and their instructions."""


@functools.cache
def features() -> frozenset[str]:
    """Return the names of the machine's instruction set extensions, as LLVM spells them;
    LUCIOLE_CPU, or NUMBA_CPU_NAME and NUMBA_CPU_FEATURES, override them.
    """
    generic = os.environ.get("NUMBA_CPU_NAME") == "generic"
    chosen = os.environ.get("NUMBA_CPU_FEATURES", "" if generic else None)
    listed = llvm.get_host_cpu_features().flatten() if chosen is None else chosen
    named = frozenset(word[1:] for word in listed.split(",") if word.startswith("+"))
    triple = llvm.get_process_triple()
    is_arm = triple.startswith(("aarch64", "arm64"))
    return named | dot_products(triple, name(), listed) if is_arm else named


def dot_products(triple: str, processor: str, listed: str) -> frozenset[str]:
    """Return which of ``dotprod`` and ``i8mm`` LLVM has instructions of when it compiles for a
    64-bit Arm processor with the features ``listed``.

    LLVM does not name them among the features of a machine with Linux, but takes them from the
    processor's name. Code for one without them cannot be made, so LLVM itself is asked: by a sum
    that it writes in any case.
    """
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=processor, features=listed)
    written = {
        feature: machine.emit_assembly(llvm.parse_assembly(_DOT.format(extend=extend)))
        for feature, (extend, _) in _DOTS.items()
    }
    return frozenset(f for f, (_, instruction) in _DOTS.items() if instruction in written[f])


def vector_registers() -> int:
    """Return how many vectors of 16 floats the machine keeps in registers: 32 with AVX-512, else 8
    (16 registers of 8 floats, or 32 of 4).
    """
    return 32 if "avx512f" in features() else 8


def name() -> str:
    """Return LLVM's name of the processor, as "znver5"."""
    return os.environ.get("NUMBA_CPU_NAME") or str(llvm.get_host_cpu_name())
