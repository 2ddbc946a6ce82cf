"""Numbers, tables, names and comments as C99 text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

import numpy as np

from luciole.ir import Array, TensorType, UnsupportedError
from luciole.kernels.portable.c_text import exact_float

CTYPES: dict[TensorType, str] = {
    TensorType.FLOAT32: "float",
    TensorType.INT8: "int8_t",
    TensorType.UINT8: "uint8_t",
    TensorType.BOOL: "uint8_t",
    TensorType.INT16: "int16_t",
    TensorType.INT32: "int32_t",
    TensorType.INT64: "int64_t",
}
"""C's types of elements; tensors of others have no C form."""

_NUMPY = {
    "float": np.float32,
    "double": np.float64,
    "int8_t": np.int8,
    "uint8_t": np.uint8,
    "int16_t": np.int16,
    "uint16_t": np.uint16,
    "int32_t": np.int32,
    "uint32_t": np.uint32,
    "int64_t": np.int64,
}
_LIMITS = {
    f"{sign}int{bits}_t": (0, 2**bits - 1) if sign else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
}
_WIDTH = 100
_AT_A_TIME = 1 << 16
"""Numbers that are written at a time: each is an object of its own meanwhile."""
_LONGEST = 32
"""Characters of an identifier."""

OF_MODEL = "t_"
"""Beginning of all identifiers that are named after a model: so they are no words of C, of C++, of
a compiler or of a library.
"""


def ctype_of(dtype: TensorType) -> str:
    """Return C's name of an element type. Raises UnsupportedError where there is none."""
    if dtype not in CTYPES:
        raise UnsupportedError(f"tensors of {dtype.name} have no C form", [dtype.name])
    return CTYPES[dtype]


def number(value: int | float, ctype: str) -> str:
    """Write a number exactly. Raises UnsupportedError for what the type does not hold."""
    return _numbers(np.array([value]), ctype)[0]


def table(name: str, ctype: str, array: Array, words: int = 1) -> tuple[str, int]:
    """Write a table of constants, and count its bytes; where registers hold several ``words``,
    they find those of a row at a multiple of their size. Raises UnsupportedError for numbers that
    the type does not hold.
    """
    flat = array.ravel()
    parts = [
        ",".join(_numbers(flat[begin : begin + _AT_A_TIME], ctype))
        for begin in range(0, flat.size, _AT_A_TIME)
    ]
    aligned = f" __attribute__((aligned({4 * words})))" if words > 1 else ""
    begun = f"static const {ctype} {name}[{max(array.size, 1)}]{aligned} = {{"
    lines = _wrapped(parts or ["0"])
    return "\n".join([begun, *lines, "};"]), max(array.size, 1) * item_bytes(ctype)


def item_bytes(ctype: str) -> int:
    """Return the bytes of a number."""
    return np.dtype(_NUMPY[ctype]).itemsize


def _numbers(array: Array, ctype: str) -> list[str]:
    if ctype in ("float", "double"):
        wide = array.astype(_NUMPY[ctype])
        return [_real(x, ctype) for x in wide.tolist()]
    least, most = _LIMITS[ctype]
    if array.size and (int(array.min()) < least or int(array.max()) > most):
        raise UnsupportedError(f"a constant is beyond {ctype}")
    if ctype == "uint32_t":
        return [f"0x{x:08x}u" if x > 9 else f"{x}u" for x in array.tolist()]
    return [_integer(int(x)) for x in array.tolist()]


NOT_FINITE = ("INFINITY", "NAN")
"""Numbers that C has macros for, in ``math.h``."""


def _real(x: float, ctype: str) -> str:
    if not math.isfinite(x):
        return "NAN" if math.isnan(x) else "INFINITY" if x > 0 else "-INFINITY"
    return exact_float(x) if ctype == "float" else x.hex()


def _integer(x: int) -> str:
    if x == -(2**31):
        return "(-2147483647 - 1)"
    return f"INT64_C({x})" if abs(x) >= 2**31 else str(x)


def _wrapped(parts: Sequence[str]) -> Iterator[str]:
    """Put as many numbers into a line as fit; they come in parts, between commas."""
    width = max(max(map(len, part.split(","))) for part in parts) + 2
    each = max(1, (_WIDTH - 4) // width)
    left: list[str] = []
    for part in parts:
        left += part.split(",")
        end = len(left) // each * each
        for begin in range(0, end, each):
            yield _line(left[begin : begin + each], width)
        left = left[end:]
    if left:
        yield _line(left, width)


def _line(texts: Sequence[str], width: int) -> str:
    return "    " + " ".join([f"{text},".rjust(width - 1) for text in texts]).lstrip()


def comment(text: str) -> str:
    """Make text harmless in a comment, whatever a model's names hold: no star, no question mark."""
    return re.sub(r"[^A-Za-z0-9 _.,:;()\[\]<>=+%^\"'/-]", "_", text)


class Names:
    """Identifiers of a program that are named after a model: each is given once."""

    def __init__(self, *taken: str) -> None:
        self._taken = {*taken}

    def of(self, text: str) -> str:
        """Make an identifier from a tensor's name: its last words that fit."""
        plain = re.sub(r"[^a-z0-9]+", "_", text.split(";")[-1].lower()).strip("_")
        if len(plain) > _LONGEST:
            cut = plain[-_LONGEST - 1 :]
            plain = cut.partition("_")[2].lstrip("_0123456789") or cut[1:]
        plain = OF_MODEL + plain.removeprefix(OF_MODEL)
        identifier, number = plain, 2
        while identifier in self._taken:
            identifier, number = f"{plain}_{number}", number + 1
        self._taken.add(identifier)
        return identifier
