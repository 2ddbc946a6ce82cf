"""C functions of plain numbers, printed for the element types that a program has: of pairs, of
single numbers, casts, and what becomes one number along an axis.

What a function does with numbers is an expression of C; the loop around it is the same for all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from luciole.ir import TensorType, UnsupportedError, Value
from luciole.ir.value import element_count
from luciole.kernels.portable.c_text import exact_float
from luciole.kernels.portable.calls import CCall, Field
from luciole.kernels.portable.moves import TYPES, spread_both

PAIRS = {
    "less": "{x} < {y}",
    "less_equal": "{x} <= {y}",
    "greater": "{x} > {y}",
    "greater_equal": "{x} >= {y}",
    "equal": "{x} == {y}",
    "not_equal": "{x} != {y}",
    "and": "{x} && {y}",
    "or": "{x} || {y}",
    "larger": "{x} > {y} ? {x} : {y}",
    "smaller": "{x} < {y} ? {x} : {y}",
    "plus": "({type})(({wide}){x} + ({wide}){y})",
    "minus": "({type})(({wide}){x} - ({wide}){y})",
    "times": "({type})(({wide}){x} * ({wide}){y})",
    "squared_difference": "({type})((({wide}){x} - ({wide}){y}) * (({wide}){x} - ({wide}){y}))",
}
"""Functions of two numbers x and y; integers wrap in the unsigned type ``wide``."""

TESTS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "and", "or")
"""Functions whose result is a truth."""

SINGLES = {
    "sign": "{x} > 0 ? ({type})1 : {x} < 0 ? ({type})-1 : {x} == 0 ? ({type})0 : {x}",  # NaN stays
    "negative": "({type})(({wide})0 - ({wide}){x})",
    "size": "{x} < 0 ? ({type})(({wide})0 - ({wide}){x}) : {x}",
    "square": "({type})(({wide}){x} * ({wide}){x})",
    "floor": "luc_whole({x})",
    "ceil": "-luc_whole(-{x})",
}
"""Functions of one number."""

FOLDS = {
    "sum": ("0", "({type})(({wide}){y} + ({wide}){x})"),
    "product": ("1", "({type})(({wide}){y} * ({wide}){x})"),
    "largest": ("{lowest}", "{x} > {y} ? {x} : {y}"),
    "smallest": ("{highest}", "{x} < {y} ? {x} : {y}"),
    "any": ("0", "{y} || {x}"),
    "all": ("1", "{y} && {x}"),
}
"""What many numbers become: a start, and what the next x makes of y."""

_C = {TensorType.FLOAT32: "float", TensorType.BOOL: "uint8_t"}
_NAMES = {TensorType.FLOAT32: "float"}


def suffix(dtype: TensorType) -> str:
    """Name a type in functions. Raises UnsupportedError for one that programs do not hold."""
    if dtype not in TYPES:
        raise UnsupportedError(f"{dtype.name} has no C form")
    return _NAMES.get(dtype, dtype.name.lower())


def ctype(name: str) -> str:
    """Return C's type of a name that functions end with."""
    dtype = TensorType[{"float": "FLOAT32"}.get(name, name.upper())]
    return _C.get(dtype, f"{name}_t")


def pair_calls(function: str, x: Value, y: Value, z: Value) -> list[CCall]:
    """Apply a function of ``PAIRS`` to tensors that are repeated to one shape."""
    operands, before = spread_both(x, y, z)
    fields: dict[str, Field] = {"count": element_count(z.dims)}
    name = f"luc_{function}_{suffix(x.dtype)}"
    return [*before, CCall(name, fields, operands, (z,), layout="luc_each")]


def single_call(function: str, x: Value, y: Value) -> CCall:
    """Apply a function of ``SINGLES``."""
    fields: dict[str, Field] = {"count": element_count(y.dims)}
    return CCall(f"luc_{function}_{suffix(x.dtype)}", fields, (x,), (y,), layout="luc_each")


def cast_call(x: Value, y: Value) -> CCall:
    """Convert numbers: floats toward zero and saturated, integers wrap."""
    fields: dict[str, Field] = {"count": element_count(y.dims)}
    name = f"luc_{suffix(y.dtype)}_from_{suffix(x.dtype)}"
    return CCall(name, fields, (x,), (y,), layout="luc_each")


def lines(x: Value, along: Sequence[int]) -> dict[str, Field]:
    """Write the extents before, of and behind axes that stand next to each other."""
    first, last = along[0], along[-1] + 1
    parts = (x.dims[:first], x.dims[first:last], x.dims[last:])
    outer, count, inner = (element_count(part) for part in parts)
    return {"outer": outer, "count": count, "inner": inner}


def text_of(name: str) -> str | None:
    """Print the C function of a name; None where it is none of these."""
    for pattern, write in _WRITERS:
        if match := re.fullmatch(pattern, name):
            return write(name, *match.groups())
    return None


def _expression(text: str, kind: str, **names: str) -> str:
    wide = "float" if kind == "float" else {"int64_t": "uint64_t"}.get(kind, "uint32_t")
    plain = text.replace("({wide})", "") if kind == "float" else text
    return plain.format(type=kind, wide=wide, **names)


def _each(name: str, head: str, result: str, expression: str) -> str:
    to = result.partition("*")[2]
    return (
        f"static void {name}(const struct luc_each *op, {head}, {result})\n{{\n"
        f"    for (uint32_t k = 0; k < op->count; k++) {{ {to}[k] = {expression}; }}\n}}"
    )


def _pair(name: str, function: str, type_: str) -> str:
    kind = ctype(type_)
    to = "uint8_t" if function in TESTS else kind
    expression = _expression(PAIRS[function], kind, x="x[k]", y="y[k]")
    return _each(name, f"const {kind} *x, const {kind} *y", f"{to} *z", expression)


def _single(name: str, function: str, type_: str) -> str:
    kind = ctype(type_)
    return _each(
        name, f"const {kind} *x", f"{kind} *y", _expression(SINGLES[function], kind, x="x[k]")
    )


def _cast(name: str, to: str, source: str) -> str:
    kind, from_ = ctype(to), ctype(source)
    expression = f"({kind})x[k]"
    if to == "bool":
        expression = "x[k] != 0"
    elif source == "float" and to != "float":
        lowest, highest = _limits(to)
        limits = np.iinfo(to)
        under, over = exact_float(float(limits.min)), exact_float(float(limits.max) + 1)
        within = f"x[k] < {under} ? {lowest} : ({kind})x[k]"
        expression = f"!(x[k] < {over}) ? {highest} : {within}"
    return _each(name, f"const {from_} *x", f"{kind} *y", expression)


def _limits(type_: str) -> tuple[str, str]:
    """Write the least and the largest number of a type."""
    if type_ == "float":
        return "luc_of_bits(0xff800000u)", "luc_of_bits(0x7f800000u)"
    if type_ in ("bool", "uint8"):
        return "0", "1" if type_ == "bool" else "255"
    limit = type_.upper()
    return f"{limit}_MIN", f"{limit}_MAX"


def _fold(name: str, function: str, type_: str) -> str:
    kind, (lowest, highest) = ctype(type_), _limits(type_)
    start, step = FOLDS[function]
    begun = start.format(lowest=lowest, highest=highest)
    joined = _expression(step, kind, x="x[k * op->inner + j]", y="found")
    return (
        f"static void {name}(const struct luc_lines *op, const {kind} *x, {kind} *y)\n{{\n"
        "    for (uint32_t i = 0; i < op->outer; i++, x += op->count * op->inner) {\n"
        "        for (uint32_t j = 0; j < op->inner; j++) {\n"
        f"            {kind} found = {begun};\n"
        f"            for (uint32_t k = 0; k < op->count; k++) {{ found = {joined}; }}\n"
        "            *y++ = found;\n        }\n    }\n}"
    )


def _place(name: str, sign: str, type_: str, to: str) -> str:
    kind, compared = ctype(type_), {"largest": ">", "smallest": "<"}[sign]
    extreme = _limits(type_)[0 if sign == "largest" else 1]
    start = extreme if type_ == "float" else "x[j]"
    return (
        f"static void {name}(const struct luc_lines *op, const {kind} *x, {ctype(to)} *y)\n{{\n"
        "    for (uint32_t i = 0; i < op->outer; i++, x += op->count * op->inner) {\n"
        "        for (uint32_t j = 0; j < op->inner; j++) {\n"
        f"            {kind} found = {start};\n            uint32_t place = 0;\n"
        "            for (uint32_t k = 0; k < op->count; k++) {\n"
        f"                if (x[k * op->inner + j] {compared} found) {{\n"
        "                    found = x[k * op->inner + j];\n                    place = k;\n"
        "                }\n            }\n"
        f"            *y++ = ({ctype(to)})place;\n        }}\n    }}\n}}"
    )


def _running(name: str, type_: str) -> str:
    kind = ctype(type_)
    joined = _expression(FOLDS["sum"][1], kind, x="x[at]", y="sum")
    return (
        f"static void {name}(const struct luc_running *op, const {kind} *x, {kind} *y)\n{{\n"
        "    for (uint32_t i = 0; i < op->outer; i++, x += op->count * op->inner, "
        "y += op->count * op->inner) {\n"
        "        for (uint32_t j = 0; j < op->inner; j++) {\n"
        f"            {kind} sum = 0;\n"
        "            for (uint32_t k = 0; k < op->count; k++) {\n"
        "                uint32_t at = (op->backwards ? op->count - 1 - k : k) * op->inner + j;\n"
        "                if (op->without != 0) { y[at] = sum; }\n"
        f"                sum = {joined};\n"
        "                if (op->without == 0) { y[at] = sum; }\n            }\n        }\n    }\n}"
    )


_TYPE = "(" + "|".join(map(suffix, TYPES)) + ")"
_WRITERS = (
    (f"luc_({'|'.join(PAIRS)})_{_TYPE}", _pair),
    (f"luc_({'|'.join(SINGLES)})_{_TYPE}", _single),
    (f"luc_{_TYPE}_from_{_TYPE}", _cast),
    (f"luc_({'|'.join(FOLDS)})_of_{_TYPE}", _fold),
    (f"luc_place_of_(largest|smallest)_{_TYPE}_{_TYPE}", _place),
    (f"luc_running_sum_{_TYPE}", _running),
)
