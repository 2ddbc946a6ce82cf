"""Choose how a program in C is to be."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from luciole.compiler.targets import NATIVE, PORTABLE, TARGETS, Target, native
from luciole.ir import Array, LucioleError

Transform = Callable[[Array], Array]
"""Preprocessing: float32 arrays to float32 arrays of the same shape."""


class OptionError(LucioleError):
    """An option has a value that is no choice, or does not suit the model."""


MODEL, BYTES, FLOAT, QUANTIZED, FIXED, CLASS = (
    *("model", "bytes", "float", "quantized", "fixed", "class"),
)
INPUTS, OUTPUTS = (BYTES, FLOAT, QUANTIZED), (FLOAT, QUANTIZED, FIXED, CLASS)
STATIC, CALLER = "static", "caller"
ARENAS = (STATIC, CALLER)
C_HEADERS = ("math", "stddef", "stdint", "string")
"""C headers that programs include: a header of theirs with the same name would stand before it."""


@dataclass(frozen=True)
class CompileOptions:
    """``name``: what functions begin with. ``input``: bytes (before ``preprocess``), the model's
    own float or quantized type. ``output``: the model's own type, fixed point, or the class.
    ``preprocess``: for each input what turns bytes into real numbers, None for nothing. ``arena``:
    static, or given by the caller. ``unpack``: weights of few levels lie in flash as bytes.
    """

    name: str
    input: str = MODEL
    output: str = MODEL
    preprocess: Sequence[Transform | None] = ()
    preprocess_text: str = ""
    target: str = PORTABLE
    arena: str = STATIC
    unpack: bool = False

    def __post_init__(self) -> None:
        """Refuse values that are no choice. Raises OptionError."""
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,39}", self.name):
            raise OptionError(f"name {self.name!r}: letters, digits and _ (up to 40) make a name")
        if self.name in C_HEADERS:
            raise OptionError(f"name {self.name!r}: C has a header of that name")
        _choose("target", self.target, (*TARGETS, NATIVE))
        _choose("arena", self.arena, ARENAS)
        _choose("input", self.input, (MODEL, *INPUTS))
        _choose("output", self.output, (MODEL, *OUTPUTS))

    @property
    def machine(self) -> Target:
        """Return the target of the program. Raises LucioleError where it is this machine, without
        a C compiler.
        """
        return native() if self.target == NATIVE else TARGETS[self.target]


def _choose(what: str, choice: str, choices: Sequence[str]) -> None:
    if choice not in choices:
        raise OptionError(f"{what} is {choice!r}: it is one of {', '.join(choices)}")
