"""C functions that are printed from formulas: those that texts share, and a loop over elements for
each formula of an operator.

No library is behind them. ``x y + z`` is rounded once or twice, as the compiler chooses: so results
differ from those of compiled kernels in the last bits (TANH is within 6 units of the last place, in
place of 4.5), unless it has an instruction for it and uses it there and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from luciole.kernels.formulas.algebra import SHARED
from luciole.kernels.formulas.elementwise import BINARY, NAMES, UNARY, Binary, Unary
from luciole.kernels.portable.c_text import LONGEST, Body, CText, body_of, name_of, parameter

WITH_LIMITS = (Binary.ADD, Binary.SUB, Binary.MUL, Binary.DIV)
"""Functions that cut results off where an activation follows."""

BY_HAND = (Unary.CLAMP,)
"""Functions whose C form has flags for limits: most numbers have one at most."""

_LIMITS = """    uint8_t has_least;
    uint8_t has_most;
    float least;
    float most;
"""
_CUT_OFF = """        if (op->has_least && found < op->least) { found = op->least; }
        if (op->has_most && found > op->most) { found = op->most; }
"""


def loop_name(function: int) -> str:
    """Name the C function that applies a formula to all elements."""
    return f"luc_{NAMES[function]}"


def parameters_of(function: int) -> list[str]:
    """Name the fields that a unary formula needs, of a and b."""
    return [name for name in ("a", "b") if name in _body(function).parameters]


def text_of(name: str) -> str | None:
    """Print the C function of a name, or a struct where it begins with ``struct``; None where it is
    none of these.
    """
    shared = {name_of(function): function for function in SHARED}
    if name in shared:
        return _shared(shared[name])
    loops = {loop_name(function): function for function in NAMES if function not in BY_HAND}
    for loop, function in loops.items():
        if name == f"struct {loop}":
            return _struct(function)
        if name == loop:
            return _loop(function)
        if name == f"{loop}_one":
            return _function(name, _names(function), _body(function))
    return None


def _shared(function: str) -> str:
    named = SHARED[function]
    said = re.split(r"[;.](?:\s|$)", " ".join((named.__doc__ or function).split()))[0]
    return f"/* {said}. */\n" + _function(name_of(function), ["x"], body_of(named(parameter("x"))))


def _names(function: int) -> list[str]:
    """Name the operands and parameters of a formula."""
    return ["x", "y"] if function in BINARY else ["x", *parameters_of(function)]


def _body(function: int, names: Mapping[str, str] | None = None) -> Body:
    """Write a formula, of these numbers in place of x, y, a and b."""

    def operand(name: str) -> CText:
        return parameter((names or {}).get(name, name))

    if function in BINARY:
        return body_of(BINARY[function](operand("x"), operand("y")))
    return body_of(UNARY[function](operand("x"), operand("a"), operand("b")))


def _function(name: str, parameters: list[str], body: Body) -> str:
    taken = ", ".join(f"float {parameter}" for parameter in parameters)
    lines = "".join(f"    {line}\n" for line in body.lines)
    return f"static inline float {name}({taken})\n{{\n{lines}    return {body.result};\n}}"


def _struct(function: int) -> str:
    parameters = [] if function in BINARY else parameters_of(function)
    fields = "".join(f"    float {name};\n" for name in parameters)
    limits = _LIMITS if function in WITH_LIMITS else ""
    return f"struct {loop_name(function)} {{\n    uint32_t count;\n{limits}{fields}}};"


def _loop(function: int) -> str:
    """Print the loop of a formula, which stands in it where it is short."""
    name = loop_name(function)
    read, result = ("xy", "z") if function in BINARY else ("x", "y")
    taken = ", ".join([*(f"const float *{x}" for x in read), f"float *{result}"])
    head = f"static void {name}(const struct {name} *op, {taken})\n{{\n"
    head += "    for (uint32_t k = 0; k < op->count; k++)"
    computed = _in_loop(function)
    if function in WITH_LIMITS:
        cut = f"        float found = {computed};\n{_CUT_OFF}        {result}[k] = found;\n"
        return f"{head} {{\n{cut}    }}\n}}"
    return f"{head} {{ {result}[k] = {computed}; }}\n}}"


def _in_loop(function: int) -> str:
    """Write a formula for element k: its expression, or a call."""
    names = {"x": "x[k]", "y": "y[k]", "a": "op->a", "b": "op->b"}
    body = _body(function, names)
    if not body.lines and len(body.result) <= LONGEST:
        return body.result
    return f"{loop_name(function)}_one({', '.join(names[n] for n in _names(function))})"
