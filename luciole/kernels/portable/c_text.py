"""Formulas on one float: C99's reader of them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from struct import Struct

import numpy as np

from luciole.kernels.formulas.algebra import NamedFunction, Number

LONGEST = 50
"""Characters of an expression that is written inside of another one, not in a line of its own."""

_SINGLE = Struct("f")


def exact_float(x: float) -> str:
    """Write a finite float32 exactly: in short where that is the same number."""
    short = f"{x:.7g}"
    if _rounded(short) == x:
        return f"{short}f" if "." in short or "e" in short else f"{short}.0f"
    digits, _, power = x.hex().partition("p")
    return f"{digits.rstrip('0').removesuffix('.')}p{power}f"


def _rounded(text: str) -> float:
    """Read a float32; infinity for what is beyond the largest: NumPy takes twice the time."""
    try:
        (number,) = _SINGLE.unpack(_SINGLE.pack(float(text)))
    except OverflowError:
        return math.inf
    return float(number)


@dataclass(frozen=True, eq=False)
class CText(Number):
    """A number of a C function that is being written: ``{0}``, ``{1}``, ... in its text stand for
    operands. Truth values are C's.
    """

    text: str
    operands: tuple[CText, ...] = ()
    is_call: bool = False
    ctype: str = "float"

    def number(self, number: float) -> CText:
        """Write a constant; one that is not finite by its bits: C has no literal for it."""
        single = np.float32(number)
        if not np.isfinite(single):
            return CText(f"luc_of_bits(0x{single.view(np.uint32):08x}u)", is_call=True)
        return CText(exact_float(float(single)))

    def _operand(self, other: CText | float) -> CText:
        return other if isinstance(other, CText) else self.number(other)

    def _with(self, text: str, *others: CText | float) -> CText:
        is_call = re.match(r"\w+\(", text) is not None
        return CText(text, (self, *map(self._operand, others)), is_call)

    def __add__(self, other: CText | float) -> CText:
        return self._with("{0} + {1}", other)

    def __sub__(self, other: CText | float) -> CText:
        return self._with("{0} - {1}", other)

    def __mul__(self, other: CText | float) -> CText:
        return self._with("{0} * {1}", other)

    def __truediv__(self, other: CText | float) -> CText:
        return self._with("{0} / {1}", other)

    def __neg__(self) -> CText:
        return self._with("-{0}")

    def __abs__(self) -> CText:
        return self._with("luc_magnitude({0})")

    def sqrt(self) -> CText:
        """Call the square root that needs no library."""
        return self._with("luc_root({0})")

    def times_plus(self, factor: CText | float, summand: CText | float) -> CText:
        """Call the product and sum that rounds once or twice, as the compiler chooses."""
        return self._with("luc_times_plus({0}, {1}, {2})", factor, summand)

    def compared(self, sign: str, other: CText | float) -> CText:
        """Compare; numbers that differ are below or above each other, so that NaN does not."""
        text = "{0} < {1} || {0} > {1}" if sign == "!=" else f"{{0}} {sign} {{1}}"
        return replace(self._with(text, other), ctype="int")

    def where(self, mask: CText, other: CText | float) -> CText:
        """Choose by ``?``."""
        return self._with("{1} ? {0} : {2}", mask, other)

    def times_power(self, shifted: CText) -> CText:
        """Call the product with two powers of two."""
        return self._with("luc_times_power({0}, {1})", shifted)

    def power(self) -> CText:
        """Call the function that clears all bits but the exponent's."""
        return self._with("luc_power_in({0})")

    def apart(self, root: float) -> tuple[CText, CText]:
        """Call a function for each part."""
        names = "luc_mantissa", "luc_exponent"
        mantissa, exponent = (self._with(f"{name}({{0}}, {{1}})", root) for name in names)
        return mantissa, exponent

    def where_normal(
        self, formula: Callable[[CText], CText], general: Callable[[CText], CText]
    ) -> CText:
        """Compute the formula that holds for all numbers."""
        return general(self)

    def called(self, function: NamedFunction) -> CText:
        """Call the function, which is written once."""
        return self._with(f"{name_of(function.__name__)}({{0}})")


def name_of(function: str) -> str:
    """Name the C function of one that texts share."""
    return f"luc_{function}_of"


@dataclass(frozen=True)
class Body:
    """What a C function does: declarations, the expression behind them, and the names of those of
    its parameters that it needs.
    """

    lines: tuple[str, ...]
    result: str
    parameters: tuple[str, ...]


def parameter(name: str) -> CText:
    """Return a parameter of a function."""
    return CText(name, ctype=_PARAMETER)


def body_of(result: CText) -> Body:
    """Write the lines that compute a number: terms that are used more than once, or are long, in
    lines of their own.
    """
    writing = _Writing()
    writing.number_of(result)
    return writing.body()


_PARAMETER = "const float"


class _Writing:
    """Numbers in the order in which they are computed, each behind its operands; what is alike is
    computed once.
    """

    def __init__(self) -> None:
        self._numbers: list[tuple[CText, tuple[int, ...]]] = []
        self._places: dict[tuple[str, tuple[int, ...]], int] = {}
        self._visited: dict[int, int] = {}

    def number_of(self, number: CText) -> int:
        """Return the place of a number, which is put behind its operands."""
        if id(number) not in self._visited:
            operands = tuple(map(self.number_of, number.operands))
            key = number.text, operands
            if key not in self._places:
                self._places[key] = len(self._numbers)
                self._numbers.append((number, operands))
            self._visited[id(number)] = self._places[key]
        return self._visited[id(number)]

    def body(self) -> Body:
        """Write the last number."""
        uses = Counter(place for _, operands in self._numbers for place in operands)
        lines: list[str] = []
        texts: list[str] = []
        for place, (number, operands) in enumerate(self._numbers):
            each = [texts[k] if number.is_call else _in_brackets(texts[k]) for k in operands]
            text = number.text.format(*each)
            if operands and (uses[place] > 1 or (uses[place] and len(text) > LONGEST)):
                name = f"t{len(lines)}"
                lines.append(f"{number.ctype} {name} = {text};")
                text = name
            texts.append(text)
        named = tuple(n.text for n, _ in self._numbers if n.ctype == _PARAMETER)
        return Body(tuple(lines), texts[-1], named)


def _in_brackets(text: str) -> str:
    """Put brackets around what is no name, number or call."""
    is_alone = re.fullmatch(r"[\w.]+([ep][+-]\d+f|\[k\]|->\w)?|\w+\([^()]*\)", text)
    return text if is_alone else f"({text})"
