"""The processor that kernels are compiled for, where LUCIOLE_CPU chooses less than there is.

numba has a variable for a processor's name and one for its features; the name alone leaves the
machine's features. One variable sets both here, before anything is compiled.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, MutableMapping, Sequence

import llvmlite.binding as llvm

from luciole.ir import LucioleError
from luciole.kernels.jit.arm import dot_products, is_arm

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


ARM_LEVELS = {"armv8-a": "fp-armv8 neon"}
"""The level that every 64-bit Arm has."""

_NAMES = {"armv8-a": "generic"}
"""LLVM's names of levels that it calls otherwise."""


def choose(environment: MutableMapping[str, str] = os.environ) -> None:
    """Set numba's two variables to the chosen level and the features named behind it, as in
    ``x86-64-v4,+avx512vnni``. Raises LucioleError as ``chosen`` does.
    """
    text = environment.get(VARIABLE)
    if text:
        name, features = chosen(text, _host())
        environment["NUMBA_CPU_NAME"], environment["NUMBA_CPU_FEATURES"] = name, features


def _host() -> dict[str, bool]:
    """Return which features the machine has, those that LLVM does not name on Arm among them."""
    features = llvm.get_host_cpu_features()
    if not is_arm():
        return dict(features)
    triple, name = llvm.get_process_triple(), llvm.get_host_cpu_name()
    return features | dict.fromkeys(dot_products(triple, name, features.flatten()), True)


def chosen(
    text: str, host: Mapping[str, bool], machine: str = platform.machine()
) -> tuple[str, str]:
    """Return numba's name and features of a choice. Raises LucioleError for what is no level, for
    features that the machine does not have, and for levels of other machines.
    """
    level, features = parsed(text)
    kind, names = _KINDS[level in ARM_LEVELS]
    if machine.lower() not in names:
        raise LucioleError(f"{VARIABLE} is {text!r}: this machine is {machine}, no {kind}")
    missing = [feature for feature in features if not host.get(feature)]
    if missing:
        lacks = f"this machine has no {', '.join(missing)}"
        raise LucioleError(f"{VARIABLE} is {text!r}: {lacks}")
    return told(level, features)


_KINDS = {False: ("x86-64", ("x86_64", "amd64")), True: ("64-bit Arm", ("aarch64", "arm64"))}
"""Machines that levels are of, and how systems call them."""


def parsed(text: str) -> tuple[str, list[str]]:
    """Return a choice's level and all its features. Raises LucioleError for what is no level."""
    levels = LEVELS | ARM_LEVELS
    level, *others = (word.strip() for word in text.split(","))
    if level not in levels or not all(word.startswith("+") for word in others):
        possible = f"{', '.join(levels)} are possible, with features behind them"
        raise LucioleError(f"{VARIABLE} is {text!r}: {possible} (x86-64-v4,+avx512vnni)")
    return level, [*levels[level].split(), *(word[1:] for word in others)]


def told(level: str, features: Sequence[str]) -> tuple[str, str]:
    """Return the name and the features of a choice as numba and LLVM are told them."""
    return _NAMES.get(level, level), ",".join(f"+{feature}" for feature in features)
