"""The machines that programs in C are for."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache

from luciole.ir import LucioleError
from luciole.kernels.portable.calls import SCALAR, Vectors

COMPILERS = ("cc", "gcc", "clang")
FASTEST = "-O3 -march=native"


@dataclass(frozen=True)
class Target:
    """A kind of machine: whether it computes with floats itself, flags that suit it, what its
    vectors hold, and flags of libraries for it that this machine runs.
    """

    has_floats: bool
    flags: str
    compiler: str = "cc"
    vectors: Vectors = SCALAR
    library: str = FASTEST


PORTABLE, NATIVE = "portable", "native"
"""Any machine, word by word; the one that this runs on, as its C compiler sees it."""

_M = "-mthumb -mfloat-abi=hard"
_X86 = "-O3 -march=x86-64-"

TARGETS = {
    PORTABLE: Target(True, "-O2"),
    "cortex-m0plus": Target(False, "-Os -mcpu=cortex-m0plus -mthumb", "arm-none-eabi-gcc"),
    "cortex-m3": Target(False, "-O2 -mcpu=cortex-m3 -mthumb", "arm-none-eabi-gcc"),
    "cortex-m4": Target(True, f"-O2 -mcpu=cortex-m4 {_M} -mfpu=fpv4-sp-d16", "arm-none-eabi-gcc"),
    "cortex-m7": Target(True, f"-O2 -mcpu=cortex-m7 {_M} -mfpu=fpv5-d16", "arm-none-eabi-gcc"),
    "cortex-m55": Target(True, f"-O2 -mcpu=cortex-m55 {_M}", "arm-none-eabi-gcc"),
    "rv32imc": Target(False, "-Os -march=rv32imc -mabi=ilp32", "riscv64-unknown-elf-gcc"),
    "aarch64": Target(True, "-O3", "aarch64-linux-gnu-gcc", Vectors(4)),
    "x86-64-v2": Target(True, f"{_X86}v2", "cc", Vectors(4), f"{_X86}v2"),
    "x86-64-v3": Target(True, f"{_X86}v3", "cc", Vectors(8), f"{_X86}v3"),
    "x86-64-v4": Target(True, f"{_X86}v4", "cc", Vectors(16), f"{_X86}v4"),
}
"""Machines by name, besides ``NATIVE``. They say how weights lie, what a network without floats
pays for, and how sizes are measured; what is computed is the same on all.
"""

_MACROS = (
    ("__AVX512VPOPCNTDQ__", Vectors(16, counts_bits=True)),
    ("__AVX512BW__", Vectors(16)),
    ("__AVX2__", Vectors(8)),
    ("__SSE2__", Vectors(4)),
    ("__aarch64__", Vectors(4)),
)
"""Macros that compilers define for vectors, the widest first."""


def find_compiler() -> str:
    """Find a C compiler. Raises LucioleError where there is none."""
    compiler = next((path for name in COMPILERS if (path := shutil.which(name))), None)
    if compiler is None:
        raise LucioleError("no C compiler (cc, gcc or clang) is on the PATH")
    return compiler


@cache
def native() -> Target:
    """Describe this machine. Raises LucioleError where there is no C compiler."""
    words = [find_compiler(), *FASTEST.split(), "-dM", "-E", "-x", "c", "/dev/null"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    defined = set(re.findall(r"^#define (\w+)", done.stdout, re.M))
    widest = next((vectors for macro, vectors in _MACROS if macro in defined), SCALAR)
    return Target(True, FASTEST, vectors=widest)
