"""Classes of processors: machine code that is made for a class serves every machine of it.

Of a processor, kernels and plans depend on what ``processor.decisions`` gives, and LLVM on the
name and features that it is told. A machine is of a class where it has all the features that LLVM
is told of, and the same decisions.
"""

from __future__ import annotations

import functools

from luciole.kernels.jit.choice import parsed, told
from luciole.kernels.jit.processor import decisions, features, name

CLASSES = (
    "x86-64-v4,+avx512vbmi,+avx512vbmi2,+avx512vnni,+avx512bitalg,+avx512vpopcntdq,+gfni",
    "x86-64-v4,+avx512vnni",
    "x86-64-v4",
    "x86-64-v3,+avxvnni",
    "x86-64-v3",
    "armv8-a,+dotprod,+i8mm",
    "armv8-a,+dotprod",
)
"""Values of LUCIOLE_CPU, one for each class: Intel since Ice Lake and Zen 4; Cascade Lake; Skylake
with AVX-512; Alder Lake and later ones without AVX-512; all others with AVX2; Neoverse V1;
Cortex-A55 and A76, Neoverse N1 and others.
"""


@functools.cache
def names() -> tuple[str, ...]:
    """Return the classes that this machine, or what LUCIOLE_CPU makes of it, belongs to."""
    return tuple(text for text in CLASSES if belongs(text, features(), name()))


def fitting() -> list[str]:
    """Return how LLVM is told of the machine's classes, as the names of files need it."""
    return [" ".join(told(*parsed(text))) for text in names()]


def belongs(text: str, features: frozenset[str], processor: str) -> bool:
    """Return whether a processor of LLVM's name and features is of a class."""
    level, asked = parsed(text)
    name, _ = told(level, asked)
    of_class = decisions(frozenset(asked), name)
    return features.issuperset(asked) and decisions(features, processor) == of_class
