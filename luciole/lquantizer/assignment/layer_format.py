"""One word for the format that a layer gets: ``str`` writes it and ``parse`` reads it.

The word begins with the kind of numbers, and then says the bits of weights (w) and of the inputs
(a) that layers multiply them with:

    levels:w2a4     learned levels; levels:w2 leaves inputs float
    even:w4a4       evenly spaced levels, likewise
    int:w4a8        integers between operators; uint:w8a8 without signs. Weights of 1 to 3 bits, as
                    in int:w2a8, are codes of learned levels that are integers themselves
    dynamic:int8    integer weights; each run rounds the inputs to 8 bits, all else is float
    weights:int4    integer weights, decoded before floats compute; weights:int4/32 has a scale for
                    each block of 32
    minifloat:4,4   floats of 4 bits of exponent and 4 of mantissa
    float16         weights in half precision under floats
    float           the layer as it was

Shorter words that people know (``SHORT``, pairs such as w2a4) are read where they mean one thing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np

from luciole.ir.errors import expect
from luciole.ir.minifloat import Minifloat as Numbers
from luciole.ir.ops.lq_fully_connected import MAX_INPUT_BITS, MAX_WEIGHT_BITS
from luciole.lquantizer.errors import OptionsError, QuantizeError

_LEAST, _MOST = 2, 16
"""Bits of integers in equal steps."""
MOST_LEARNED = 3
"""Bits of weights between integers up to which their levels are learned."""


def _check_width(bits: int) -> None:
    if not _LEAST <= bits <= _MOST:
        raise OptionsError(f"integers have {bits} bits: {_LEAST} to {_MOST} are possible")


@dataclass(frozen=True)
class Levels:
    """Learned levels of weights and inputs, ``even`` ones in equal steps; inputs stay float where
    they are None. Two levels have one step: those of 1 bit are not ``even`` besides.
    """

    weights: int
    inputs: int | None
    even: bool = False

    def __post_init__(self) -> None:
        """Refuse bits that there are not."""
        limits = (("input", self.inputs, MAX_INPUT_BITS), ("weight", self.weights, MAX_WEIGHT_BITS))
        for name, bits, most in limits:
            if bits is not None and not 1 <= bits <= most:
                raise OptionsError(f"{name} bits are {bits}: 1 to {most} are possible")
        if max(self.weights, self.inputs or 0) == 1:
            object.__setattr__(self, "even", False)

    def __str__(self) -> str:
        return f"{'even' if self.even else 'levels'}:{_pair(self.weights, self.inputs)}"


@dataclass(frozen=True)
class Integers:
    """Integers of weights and of tensors between operators. Where ``inputs`` are None these tensors
    are float, and each run rounds a layer's input to 8 bits.
    """

    weights: int
    inputs: int | None
    unsigned: bool = False

    def __post_init__(self) -> None:
        """Refuse bits that there are not."""
        if not self.has_levels:
            _check_width(self.weights)
        _check_width(8 if self.inputs is None else self.inputs)

    @property
    def has_levels(self) -> bool:
        """Whether weights are codes of levels that are learned for each output."""
        between = self.inputs is not None and not self.unsigned
        return between and 1 <= self.weights <= MOST_LEARNED

    def __str__(self) -> str:
        sign = "uint" if self.unsigned else "int"
        if self.inputs is None:
            return f"dynamic:{sign}{self.weights}"
        return f"{sign}:{_pair(self.weights, self.inputs)}"


@dataclass(frozen=True)
class StoredLevels:
    """Weights stored as integers, with a scale for each output or each ``block`` of its weights,
    and decoded before the operator computes with floats.
    """

    weights: int
    block: int | None = None
    unsigned: bool = False

    def __post_init__(self) -> None:
        """Refuse bits that there are not, and blocks of nothing."""
        _check_width(self.weights)
        if self.block is not None and self.block < 1:
            raise OptionsError(f"a block has {self.block} weights: at least 1 is needed")

    def __str__(self) -> str:
        block = "" if self.block is None else f"/{self.block}"
        return f"weights:{'uint' if self.unsigned else 'int'}{self.weights}{block}"


@dataclass(frozen=True)
class Minifloat:
    """Floats with ``exponent`` and ``mantissa`` bits."""

    exponent: int
    mantissa: int

    def __post_init__(self) -> None:
        """Refuse bits that there are not."""
        for fault in Numbers(self.exponent, self.mantissa).faults():
            raise OptionsError(fault)

    @property
    def weights(self) -> int:
        """Bits of a weight."""
        return Numbers(self.exponent, self.mantissa).bits

    def __str__(self) -> str:
        return f"minifloat:{self.exponent},{self.mantissa}"


@dataclass(frozen=True)
class Float:
    """Floats, of 32 bits or with weights of 16."""

    weights: int = 32

    def __post_init__(self) -> None:
        """Refuse bits that there are not."""
        if self.weights not in (16, 32):
            raise OptionsError(f"floats have {self.weights} bits: 16 and 32 are possible")

    def __str__(self) -> str:
        return "float" if self.weights == 32 else f"float{self.weights}"


LayerFormat = Levels | Integers | StoredLevels | Minifloat | Float

SHORT: dict[str, LayerFormat] = {
    "int8": Integers(8, 8),
    "uint8": Integers(8, 8, unsigned=True),
    "w4a8": Integers(4, 8),
    "int16x8": Integers(8, 16),
    "w4a16": Integers(4, 16),
    "dynamic": Integers(8, None),
    "dynamic4": Integers(4, None),
    "weights": StoredLevels(8),
    "weights4": StoredLevels(4),
    "float16": Float(16),
    "float": Float(),
}
"""Names of schemes, and the formats that they stand for."""

_OLD_OPTIONS: dict[str, LayerFormat] = {"int8x4": Integers(4, 8), "int16x4": Integers(4, 16)}
"""Names that schemes had in a search alone."""

_N = r"(?:0|[1-9]\d?)"
"""A number as ``str`` writes it."""
_WORD = re.compile(
    rf"(?P<levels>levels|even):(?P<fine>w{_N}(a{_N})?)"
    rf"|(?P<sign>u?int):(?P<wide>w{_N}a{_N})"
    rf"|(?P<stored>dynamic|weights):(?P<kind>u?int)(?P<bits>{_N})(/(?P<block>[1-9]\d{{0,5}}))?"
    rf"|minifloat:(?P<exponent>{_N}),(?P<mantissa>{_N})"
    r"|float(?P<half>16)?"
)
_PAIR = re.compile(rf"w({_N})(?:a({_N}))?")
_EXAMPLES = "levels:w2a4, even:w4a4, int:w8a8, dynamic:int8, weights:int4, minifloat:4,4, float"


@cache
def parse(word: str) -> LayerFormat:
    """Read the word of a format, as ``str`` writes it. Raises QuantizeError for another text, and
    for bits that there are not.
    """
    match = _WORD.fullmatch(word)
    if match is None:
        raise OptionsError(f"{word!r} is no format of a layer; such are {_EXAMPLES}")
    part = match.groupdict()
    if part["levels"]:
        return Levels(*_widths(part["fine"]), even=part["levels"] == "even")
    if part["sign"]:
        return Integers(*_widths(part["wide"]), unsigned=part["sign"] == "uint")
    if part["stored"]:
        return _stored(word, part)
    if part["exponent"]:
        return Minifloat(int(part["exponent"]), int(part["mantissa"]))
    return Float(16 if part["half"] else 32)


def _stored(word: str, part: dict[str, str]) -> LayerFormat:
    bits, unsigned = int(part["bits"]), part["kind"] == "uint"
    if part["stored"] == "weights":
        return StoredLevels(bits, int(part["block"]) if part["block"] else None, unsigned)
    if part["block"]:
        raise OptionsError(f"{word!r}: weights of blocks are decoded, as in weights:int4/32")
    return Integers(bits, None, unsigned)


def scheme_format(name: str) -> LayerFormat:
    """Read the format that a scheme names: a word, a short name, or a pair such as w4a4 that no
    integers have, which stands for evenly spaced levels. Raises QuantizeError for another name.
    """
    if name in SHORT:
        return SHORT[name]
    return Levels(*_widths(name), even=True) if _is_pair(name) else parse(name)


def levels_format(bits: int | str) -> Levels:
    """Read the widths of learned levels: one number for weights and inputs, a pair such as w2a4, or
    a word such as even:w4a4. Raises QuantizeError for others.
    """
    expect(bits, (int, np.integer, str), "encode_bits: a whole number or a pair such as w2a4")
    if not isinstance(bits, str):
        return Levels(int(bits), int(bits))
    if _is_pair(bits):
        return Levels(*_widths(bits))
    format = parse(bits) if ":" in bits else None
    if not isinstance(format, Levels):
        raise OptionsError(f"encode_bits is {bits!r}: a number or a pair such as w2a4 is needed")
    return format


def option_format(option: str) -> LayerFormat:
    """Read an option of a search, where pairs are learned levels and names are schemes. Raises
    QuantizeError for what is neither, and for what is both.
    """
    if option in _OLD_OPTIONS:
        return _OLD_OPTIONS[option]
    levels = Levels(*_widths(option)) if _is_pair(option) and not _is_wide(option) else None
    if levels is not None and option in SHORT:
        raise OptionsError(f"option {option!r} has two readings: say {levels} or {SHORT[option]}")
    if levels is not None or option in SHORT:
        return levels or SHORT[option]
    try:
        return parse(option)
    except QuantizeError as error:
        raise OptionsError(f"option {option!r}: {error}") from None


def _is_pair(text: str) -> bool:
    return _PAIR.fullmatch(text) is not None and "a" in text


def _is_wide(pair: str) -> bool:
    """Check whether a pair has more bits than learned levels have."""
    weights, inputs = _widths(pair)
    return weights > MAX_WEIGHT_BITS or (inputs or 0) > MAX_INPUT_BITS


def _widths(pair: str) -> tuple[int, int | None]:
    match = _PAIR.fullmatch(pair)
    assert match is not None, "it was matched before"
    return int(match[1]), None if match[2] is None else int(match[2])


def _pair(weights: int, inputs: int | None) -> str:
    return f"w{weights}" + ("" if inputs is None else f"a{inputs}")
