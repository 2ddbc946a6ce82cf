"""The processor that kernels are compiled for, where LUCIOLE_CPU chooses less than there is.

numba has a variable for a processor's name and one for its features; the name alone leaves the
machine's features. One variable sets both here, before anything is compiled.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, MutableMapping

import llvmlite.binding as llvm

from luciole.ir import LucioleError

VARIABLE = "LUCIOLE_CPU"

_V2 = "cx16 sahf popcnt sse3 ssse3 sse4.1 sse4.2"
_V3 = f"{_V2} avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
LEVELS = {
    "x86-64": "",
    "x86-64-v2": _V2,
    "x86-64-v3": _V3,
    "x86-64-v4": f"{_V3} avx512f avx512bw avx512cd avx512dq avx512vl",
}
"""Levels of x86-64 (System V ABI, AMD64 supplement, section 3.1.1), and their features beyond
SSE2.
"""


def choose(environment: MutableMapping[str, str] = os.environ) -> None:
    """Set numba's two variables to the chosen level and the features named behind it, as in
    ``x86-64-v4,+avx512vnni``. Raises LucioleError as ``chosen`` does.
    """
    text = environment.get(VARIABLE)
    if text:
        name, features = chosen(text, llvm.get_host_cpu_features())
        environment["NUMBA_CPU_NAME"], environment["NUMBA_CPU_FEATURES"] = name, features


def chosen(
    text: str, host: Mapping[str, bool], machine: str = platform.machine()
) -> tuple[str, str]:
    """Return numba's name and features of a choice. Raises LucioleError for what is no level, for
    features that the machine does not have, and for other machines than x86-64.
    """
    name, *others = (word.strip() for word in text.split(","))
    if name not in LEVELS or not all(word.startswith("+") for word in others):
        possible = f"{', '.join(LEVELS)} are possible, with features behind them"
        raise LucioleError(f"{VARIABLE} is {text!r}: {possible} (x86-64-v4,+avx512vnni)")
    if machine.lower() not in ("x86_64", "amd64"):
        raise LucioleError(f"{VARIABLE} is {text!r}: this machine is {machine}, no x86-64")
    features = [*LEVELS[name].split(), *(word[1:] for word in others)]
    missing = [feature for feature in features if not host.get(feature)]
    if missing:
        lacks = f"this machine has no {', '.join(missing)}"
        raise LucioleError(f"{VARIABLE} is {text!r}: {lacks}")
    return name, ",".join(f"+{feature}" for feature in features)
