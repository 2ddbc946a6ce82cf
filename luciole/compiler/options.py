"""What people choose of a program in C, and the machines that it is for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from luciole.ir import Array, LucioleError

Transform = Callable[[Array], Array]
"""Preprocessing: float32 arrays to float32 arrays of the same shape."""


class OptionError(LucioleError):
    """What was chosen is no choice, or does not suit the model."""


MODEL, BYTES, FLOAT, QUANTIZED, FIXED, CLASS = (
    *("model", "bytes", "float", "quantized", "fixed", "class"),
)
INPUTS, OUTPUTS = (BYTES, FLOAT, QUANTIZED), (FLOAT, QUANTIZED, FIXED, CLASS)
STATIC, CALLER = "static", "caller"
ARENAS = (STATIC, CALLER)


@dataclass(frozen=True)
class Target:
    """A kind of machine: whether it computes with floats itself, and flags that suit it."""

    has_floats: bool
    flags: str
    compiler: str = "cc"


TARGETS = {
    "portable": Target(True, "-O2"),
    "cortex-m0plus": Target(False, "-Os -mcpu=cortex-m0plus -mthumb", "arm-none-eabi-gcc"),
    "cortex-m3": Target(False, "-O2 -mcpu=cortex-m3 -mthumb", "arm-none-eabi-gcc"),
    "cortex-m4": Target(
        True, "-O2 -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16", "arm-none-eabi-gcc"
    ),
    "cortex-m7": Target(
        True, "-O2 -mcpu=cortex-m7 -mthumb -mfloat-abi=hard -mfpu=fpv5-d16", "arm-none-eabi-gcc"
    ),
    "cortex-m55": Target(
        True, "-O2 -mcpu=cortex-m55 -mthumb -mfloat-abi=hard", "arm-none-eabi-gcc"
    ),
    "rv32imc": Target(False, "-Os -march=rv32imc -mabi=ilp32", "riscv64-unknown-elf-gcc"),
    "aarch64": Target(True, "-O3", "aarch64-linux-gnu-gcc"),
    "x86-64-v3": Target(True, "-O3 -march=x86-64-v3"),
    "x86-64-v4": Target(True, "-O3 -march=x86-64-v4"),
}
"""Machines by name. The text that is written is the same C for all; they say what a network without
floats pays for, and how sizes are measured.
"""


@dataclass(frozen=True)
class CompileOptions:
    """``name``: what functions begin with. ``input``: bytes (before ``preprocess``), the model's
    own float or quantized type. ``output``: the model's own type, fixed point, or the class.
    ``preprocess``: for each input what turns bytes into real numbers, None for nothing. ``arena``:
    static, or given by the caller.
    """

    name: str
    input: str = MODEL
    output: str = MODEL
    preprocess: Sequence[Transform | None] = ()
    preprocess_text: str = ""
    target: str = "portable"
    arena: str = STATIC

    def __post_init__(self) -> None:
        """Refuse what is no choice. Raises OptionError."""
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,39}", self.name):
            raise OptionError(f"name {self.name!r}: letters, digits and _ (up to 40) make a name")
        _choose("target", self.target, tuple(TARGETS))
        _choose("arena", self.arena, ARENAS)
        _choose("input", self.input, (MODEL, *INPUTS))
        _choose("output", self.output, (MODEL, *OUTPUTS))

    @property
    def machine(self) -> Target:
        """What the program is for."""
        return TARGETS[self.target]


def _choose(what: str, given: str, choices: Sequence[str]) -> None:
    if given not in choices:
        raise OptionError(f"{what} is {given!r}: it is one of {', '.join(choices)}")
