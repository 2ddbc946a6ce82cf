"""Fill constants as recipes say: ``explicit``, ``constant`` and ``gaussian``.

ONE seeds its random numbers from the clock; here the same seed gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from luciole.ir import strings
from luciole.ir.dtypes import NUMPY, PACKED, Array, pack
from luciole.ir.errors import FormatError
from luciole.ir.value import MOST_AXES, element_count
from luciole.schema.enums import TensorType
from luciole.schema.printable import quoted, shorten

Bytes = NDArray[np.uint8]
Arguments = Sequence[str]

_TRUE = ("1", "T", "t", "TRUE", "True", "true")
_FALSE = ("0", "F", "f", "FALSE", "False", "false")
CONSTANTS_LIMIT = 2**29
"""Bytes: a few words of a recipe must not take all memory."""
_LARGEST_BUFFER = 2**31 - 1
_BLOCK = 2**20
"""Elements that are made at once: what making them takes does not grow with a constant."""


def fill(
    tag: str,
    arguments: Arguments,
    dtype: TensorType,
    shape: Sequence[int],
    seed: Sequence[int],
    limit: int = CONSTANTS_LIMIT,
) -> Bytes:
    """Fill the buffer of a constant.

    ``seed`` are the numbers that a random filler starts from. Raises FormatError for a filler or
    element type that there is none of, for arguments that do not fit, and for more bytes than
    ``limit``.
    """
    if len(shape) > MOST_AXES:
        raise FormatError(f"{len(shape)} axes, at most {MOST_AXES} are possible")
    if any(extent < 0 for extent in shape):
        raise FormatError(f"shape {list(shape)} has a negative extent")
    count = element_count(tuple(shape))
    if dtype == TensorType.STRING:
        return _texts(tag, arguments, count, limit)
    check_size(f"{count} elements of {dtype.name}", _size(dtype, count), limit)
    if tag not in _FILLERS:
        raise FormatError(f"filler {quoted(tag)} is none of {', '.join(_FILLERS)}")
    whole = np.empty(_size(dtype, count), np.uint8)
    with np.errstate(over="ignore"):  # a number that is too large for the type is infinite
        filler = _FILLERS[tag](arguments, dtype, count, np.random.default_rng(list(seed)))
        for start in range(0, count, _BLOCK):
            part = _packed(filler(start, min(start + _BLOCK, count)), dtype)
            first = _size(dtype, start)
            whole[first : first + len(part)] = part
    return whole


def _packed(values: Array, dtype: TensorType) -> Bytes:
    try:
        return pack(values, dtype)
    except ValueError as error:  # PACKED types refuse what their few bits do not hold
        raise FormatError(str(error)) from None


def check_size(what: str, size: int, limit: int) -> None:
    """Raise FormatError where something would take more bytes than constants may."""
    most = min(limit, _LARGEST_BUFFER)
    if size > most:
        raise FormatError(
            f"{what} take {size} bytes, a recipe's constants may take {most} more "
            f"(luciole chef --constants-limit)"
        )


def _size(dtype: TensorType, count: int) -> int:
    """Count the bytes of ``count`` elements in a buffer."""
    if dtype in PACKED:
        return -(-count * PACKED[dtype][0] // 8)
    return count * _wide(dtype).itemsize


def _wide(dtype: TensorType) -> np.dtype[Any]:
    """Find the type in which values are made."""
    if dtype in PACKED:
        return PACKED[dtype][1]
    if dtype not in NUMPY:
        raise FormatError(f"there are no fillers for {dtype.name}")
    return NUMPY[dtype]


Filler = Callable[[int, int], Array]
"""Makes the elements from one to before another; called for all of them in order."""


def _explicit(
    arguments: Arguments, dtype: TensorType, count: int, rng: np.random.Generator
) -> Filler:
    """Take the given values, zeros after them."""
    if len(arguments) > count:
        raise FormatError(f"{len(arguments)} values for {count} elements")

    def make(start: int, end: int) -> Array:
        values = np.zeros(end - start, _wide(dtype))
        texts = arguments[start:end]
        values[: len(texts)] = [_parsed(text, dtype) for text in texts]
        return values

    return make


def _constant(
    arguments: Arguments, dtype: TensorType, count: int, rng: np.random.Generator
) -> Filler:
    """Repeat the first value everywhere, as ONE does it."""
    if not arguments:
        raise FormatError("filler 'constant' takes an argument, found none")
    value = _parsed(arguments[0], dtype)
    return lambda start, end: np.full(end - start, value, _wide(dtype))


def _gaussian(
    arguments: Arguments, dtype: TensorType, count: int, rng: np.random.Generator
) -> Filler:
    """Draw normal numbers; integers are the nearest that the type holds."""
    if len(arguments) != 2:
        raise FormatError(
            f"filler 'gaussian' takes mean and standard deviation, found {len(arguments)} arguments"
        )
    mean, deviation = (_real(text) for text in arguments)
    if not (np.isfinite(mean) and 0 <= deviation < np.inf):
        raise FormatError(f"filler 'gaussian' cannot draw from mean {mean}, deviation {deviation}")
    wide = _wide(dtype)

    def make(start: int, end: int) -> Array:
        drawn = rng.normal(mean, abs(deviation), end - start)  # -0.0 is refused
        if wide.kind not in "iu":
            return drawn.astype(wide)
        return np.clip(np.rint(drawn), *limits(dtype)).astype(wide)

    return make


_FILLERS: dict[str, Callable[[Arguments, TensorType, int, np.random.Generator], Filler]] = {
    "explicit": _explicit,
    "constant": _constant,
    "gaussian": _gaussian,
}


def limits(dtype: TensorType) -> tuple[int, int]:
    """Return the least and the largest number of an integer type that float64 can go to."""
    if dtype in PACKED:
        bits, wide = PACKED[dtype]
        low = 0 if wide.kind == "u" else -(2 ** (bits - 1))
        return low, low + 2**bits - 1
    info = np.iinfo(NUMPY[dtype])
    return int(info.min), int(min(info.max, 2**63 - 1024))


def _parsed(text: str, dtype: TensorType) -> Any:
    """Read one argument as a value of the type."""
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
        raise FormatError(f"{shorten(text)} is not in the range of {dtype.name}")
    return number


def _truncated(text: str) -> int:
    real = _real(text)
    if not np.isfinite(real):
        raise FormatError(f"{quoted(text)} is no integer")
    return int(real)


def _bool(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise FormatError(f"{quoted(text)} is neither true nor false")


def _complex(text: str) -> complex:
    try:
        return complex(text)
    except ValueError:
        raise FormatError(f"{quoted(text)} is no number") from None


def _real(text: str) -> float:
    try:
        return float(text[:-1] if text[-1:] in ("f", "F") and text[-3:].lower() != "inf" else text)
    except ValueError:
        raise FormatError(f"{quoted(text)} is no number") from None


def _texts(tag: str, arguments: Arguments, count: int, limit: int) -> Bytes:
    """Encode a buffer of the given strings, and of empty ones behind them."""
    if tag != "explicit" or len(arguments) > count:
        raise FormatError(f"{count} texts take filler 'explicit' with at most {count} arguments")
    texts = [text.encode("utf-8", "surrogateescape") for text in arguments]
    missing = count - len(texts)
    check_size(f"{count} texts", strings.encoded_bytes(texts) + 4 * missing, limit)
    return strings.encode([*texts, *[b""] * missing])
