"""Formulas of element-wise operators and of what kernels apply element by element.

They are numbered, so that a kernel's factory can hold one in a closure: those that several
operators share here, those of one operator in its kernel file.
"""

from __future__ import annotations

import re
import zlib
from enum import IntEnum
from typing import NamedTuple

from luciole.kernels.formulas import elementary
from luciole.kernels.formulas.algebra import BinaryFormula, Formula, ParametricFormula


class Unary(IntEnum):
    """Functions of one number x and two parameters a and b."""

    ABS = 0
    NEG = 1
    SQUARE = 2
    SQRT = 3
    RSQRT = 4
    EXP = 5
    LOG = 6
    TANH = 7
    LOGISTIC = 8
    ELU = 9
    GELU = 10
    GELU_BY_TANH = 11
    HARD_SWISH = 12
    CLAMP = 13
    SCALE = 14
    SCALED_EXP = 15
    LESS_BOTH = 16


class Binary(IntEnum):
    """Functions of two numbers."""

    ADD = 100
    SUB = 101
    MUL = 102
    DIV = 103
    MAXIMUM = 104
    MINIMUM = 105
    PRELU = 106


UNARY: dict[int, ParametricFormula] = {
    Unary.ABS: lambda x, a, b: abs(x),
    Unary.NEG: lambda x, a, b: -x,
    Unary.SQUARE: lambda x, a, b: x * x,
    Unary.SQRT: lambda x, a, b: x.sqrt(),
    Unary.RSQRT: lambda x, a, b: x.number(1.0) / x.sqrt(),
    Unary.EXP: lambda x, a, b: elementary.exp(x),
    Unary.LOG: lambda x, a, b: elementary.log(x),
    Unary.TANH: lambda x, a, b: elementary.tanh(x),
    Unary.LOGISTIC: lambda x, a, b: elementary.logistic(x),
    Unary.ELU: lambda x, a, b: elementary.elu(x),
    Unary.GELU: lambda x, a, b: elementary.gelu(x),
    Unary.GELU_BY_TANH: lambda x, a, b: elementary.gelu_by_tanh(x),
    Unary.HARD_SWISH: lambda x, a, b: elementary.hard_swish(x),
    Unary.CLAMP: lambda x, a, b: x.at_least(a).at_most(b),
    Unary.SCALE: lambda x, a, b: x * a,
    Unary.SCALED_EXP: lambda x, a, b: elementary.exp_below((x - a) * b),
    Unary.LESS_BOTH: lambda x, a, b: (x - a) - b,
}
"""Formulas of one number by their numbers."""

BINARY: dict[int, BinaryFormula] = {
    Binary.ADD: lambda x, y: x + y,
    Binary.SUB: lambda x, y: x - y,
    Binary.MUL: lambda x, y: x * y,
    Binary.DIV: lambda x, y: x / y,
    Binary.MAXIMUM: lambda x, y: x.where(x.compared(">", y), y),
    Binary.MINIMUM: lambda x, y: x.where(x.compared("<", y), y),
    Binary.PRELU: lambda x, y: x.where(x.compared(">=", 0.0), x * y),
}
"""Formulas of two numbers by theirs."""

NAMES: dict[int, str] = {
    **{function: function.name.lower() for function in Unary},
    **{function: f"{function.name.lower()}_float" for function in Binary},
}
"""What formulas are called in texts, by their numbers: words of lower case. Those of operators end
with ``formula``, so that a user's names meet none of ours.
"""


class Applied(NamedTuple):
    """A unary formula, by its number, and its parameters."""

    function: int
    a: float = 0
    b: float = 0


def define_unary(name: str, formula: Formula) -> int:
    """Number a function of one number that has no parameters, see ``_number``."""
    return define_parametric(name, lambda x, a, b: formula(x))


def define_parametric(name: str, formula: ParametricFormula) -> int:
    """Number a function of one number and two parameters, see ``_number``."""
    number = _number(name)
    UNARY[number] = formula
    return number


def define_binary(name: str, formula: BinaryFormula) -> int:
    """Number a function of two numbers, see ``_number``."""
    number = _number(name)
    BINARY[number] = formula
    return number


def _number(name: str) -> int:
    """Return a number above those of ``Unary`` and ``Binary`` that a name has in every process, for
    machine code is kept under it. Raises TypeError for a name that has a function.
    """
    number = 0x100 + zlib.crc32(name.encode())
    if number in NAMES:
        raise TypeError(f"{name} names two functions")
    words = f"{_words(name)}_formula"
    NAMES[number] = f"{words}_{number:x}" if words in NAMES.values() else words
    return number


def _words(name: str) -> str:
    """Write a name in CamelCase as words of lower case: ``leaky_relu`` of ``LeakyRelu``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", name).strip("_").lower()
