"""What recipes fill constants with: ``explicit``, ``constant`` and ``gaussian``.

ONE seeds its random numbers from the clock; here the same seed gives the same numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luciole.ir.dtypes import NUMPY, PACKED, Array, pack
from luciole.ir.errors import FormatError
from luciole.ir.value import element_count
from luciole.schema.enums import TensorType

Bytes = NDArray[np.uint8]
Arguments = Sequence[str]

_TRUE = ("1", "T", "TRUE", "True", "true")
_FALSE = ("0", "F", "FALSE", "False", "false")
_MOST_BYTES = 2**29
"""A few words of a recipe must not take all memory."""


def fill(
    tag: str, arguments: Arguments, dtype: TensorType, shape: Sequence[int], seed: Sequence[int]
) -> Bytes:
    """The buffer of a constant.

    ``seed`` are the numbers that a random filler starts from. Raises FormatError for a filler or
    element type that there is none of, and for arguments that do not fit.
    """
    count = element_count(tuple(shape))
    if dtype == TensorType.STRING:
        return _texts(tag, arguments, count)
    wide = _wide(dtype)
    if count * wide.itemsize > _MOST_BYTES:
        raise FormatError(f"{count} elements of {dtype.name} are more than {_MOST_BYTES} bytes")
    if tag not in _FILLERS:
        raise FormatError(f"filler {tag!r} is none of {', '.join(_FILLERS)}")
    try:
        return pack(_FILLERS[tag](arguments, dtype, count, seed), dtype)
    except ValueError as error:  # PACKED types refuse what their few bits do not hold
        raise FormatError(str(error)) from None


def _wide(dtype: TensorType) -> np.dtype[Any]:
    """The type in which values are made."""
    if dtype in PACKED:
        return PACKED[dtype][1]
    if dtype not in NUMPY:
        raise FormatError(f"there are no fillers for {dtype.name}")
    return NUMPY[dtype]


def _explicit(arguments: Arguments, dtype: TensorType, count: int, seed: Sequence[int]) -> Array:
    """The given values, zeros after them."""
    if len(arguments) > count:
        raise FormatError(f"{len(arguments)} values for {count} elements")
    values = np.zeros(count, _wide(dtype))
    values[: len(arguments)] = [_parsed(text, dtype) for text in arguments]
    return values


def _constant(arguments: Arguments, dtype: TensorType, count: int, seed: Sequence[int]) -> Array:
    """The first value everywhere, as ONE does it."""
    if not arguments:
        raise FormatError("filler 'constant' takes an argument, found none")
    return np.full(count, _parsed(arguments[0], dtype), _wide(dtype))


def _gaussian(arguments: Arguments, dtype: TensorType, count: int, seed: Sequence[int]) -> Array:
    """Normal numbers; integers are the nearest that the type holds."""
    if len(arguments) != 2:
        raise FormatError(
            f"filler 'gaussian' takes mean and standard deviation, found {len(arguments)} arguments"
        )
    mean, deviation = (_real(text) for text in arguments)
    if not (np.isfinite(mean) and 0 <= deviation < np.inf):
        raise FormatError(f"filler 'gaussian' cannot draw from mean {mean}, deviation {deviation}")
    drawn = np.random.default_rng(list(seed)).normal(mean, deviation, count)
    wide = _wide(dtype)
    if wide.kind not in "iu":
        return drawn.astype(wide)
    low, high = limits(dtype)
    return np.clip(np.rint(drawn), low, high).astype(wide)


_FILLERS: dict[str, Callable[[Arguments, TensorType, int, Sequence[int]], Array]] = {
    "explicit": _explicit,
    "constant": _constant,
    "gaussian": _gaussian,
}


def limits(dtype: TensorType) -> tuple[int, int]:
    """The least and the largest number of an integer type that float64 can go to."""
    if dtype in PACKED:
        bits, wide = PACKED[dtype]
        low = 0 if wide.kind == "u" else -(2 ** (bits - 1))
        return low, low + 2**bits - 1
    info = np.iinfo(NUMPY[dtype])
    return int(info.min), int(min(info.max, 2**63 - 1024))


def _parsed(text: str, dtype: TensorType) -> Any:
    """One argument as a value of the type."""
    kind = _wide(dtype).kind
    if kind == "b":
        return _bool(text)
    if kind == "c":
        return _complex(text)
    return _integer(text, dtype) if kind in "iu" else _real(text)


def _integer(text: str, dtype: TensorType) -> int:
    try:
        number = int(text, 0)
    except ValueError:
        number = _truncated(text)
    info = np.iinfo(_wide(dtype))
    if not info.min <= number <= info.max:
        raise FormatError(f"{text} is not in the range of {dtype.name}")
    return number


def _truncated(text: str) -> int:
    real = _real(text)
    if not np.isfinite(real):
        raise FormatError(f"{text!r} is no integer")
    return int(real)


def _bool(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise FormatError(f"{text!r} is neither true nor false")


def _complex(text: str) -> complex:
    try:
        return complex(text)
    except ValueError:
        raise FormatError(f"{text!r} is no number") from None


def _real(text: str) -> float:
    try:
        return float(text[:-1] if text[-1:] in ("f", "F") and text[-3:].lower() != "inf" else text)
    except ValueError:
        raise FormatError(f"{text!r} is no number") from None


def _texts(tag: str, arguments: Arguments, count: int) -> Bytes:
    """A buffer of strings: their number, where each begins and the last ends, and the bytes."""
    if tag != "explicit" or len(arguments) > count:
        raise FormatError(f"{count} texts take filler 'explicit' with at most {count} arguments")
    texts = [text.encode("utf-8", "surrogateescape") for text in arguments]
    texts += [b""] * (count - len(texts))
    first = 4 * (count + 2)
    ends = np.cumsum([first, *map(len, texts)])
    head = struct.pack(f"<{count + 2}i", count, *ends)
    return np.frombuffer(head + b"".join(texts), np.uint8)
