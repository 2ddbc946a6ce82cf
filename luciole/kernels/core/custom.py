"""CUSTOM operators that a user computes with functions of his own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from luciole.ir import CUSTOM_OPS, Array, LucioleError, UnknownOp
from luciole.ir.errors import expect
from luciole.ir.text.flexbuffer import read_map
from luciole.ir.text.options import custom_bytes

HINT = "luciole.custom_operator lets a function compute it"

F = TypeVar("F", bound=Callable[..., Any])

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""By code, the functions that users have given for CUSTOM operators."""


def custom_operator(code: str) -> Callable[[F], F]:
    """Register a function that computes the CUSTOM operators with the given code, in all
    interpreters made from then on.

    The function, of Python or compiled by numba, is given the operands as arrays (None for absent
    ones) in the file's order, read-only, and the operator's options by name where they are a
    FlexBuffer map; other bytes as ``options``. It returns an array, or a tuple of them for several
    results, of the element types that the file says; extents that the file leaves open may be
    any::

        @luciole.custom_operator("Swish")
        def swish(x, beta=1.0):
            return x / (1 + np.exp(-beta * x))

    A second function for a code takes the place of the first. Raises LucioleError for a code that
    has a class, and for what is no code or no function.
    """
    import luciole.ir.ops  # registers every operator class  # noqa: F401

    expect(code, str, 'custom_operator: the code as a text, @custom_operator("Swish"),')
    if not code:
        raise LucioleError("custom_operator: the code is an empty text")
    if code in CUSTOM_OPS:
        raise LucioleError(f"{code} needs no function: {CUSTOM_OPS[code].__name__} computes it")

    def register(function: F) -> F:
        expect(function, cast(type, Callable), f"custom_operator({code!r}): a function")
        FUNCTIONS[code] = function
        return function

    return register


def kernel(op: UnknownOp) -> Callable[..., Any] | None:
    """Return the kernel of a CUSTOM operator that a function is registered for, else None."""
    function = FUNCTIONS.get(op.custom or "")
    return None if function is None else partial(_compute, function)


def _compute(
    function: Callable[..., Any], op: UnknownOp, inputs: tuple[Array | None, ...]
) -> tuple[Array, ...]:
    options = _options(op)
    try:
        results = function(*map(_read_only, inputs), **options)
    except Exception as error:  # whatever a user's function raises; its own trace is the cause
        raise LucioleError(f"the function for it raised {type(error).__name__}: {error}") from error
    return tuple(np.asarray(a) for a in (results if isinstance(results, tuple) else (results,)))


def _read_only(array: Array | None) -> Array | None:
    if array is None:
        return None
    view = array.view()
    view.flags.writeable = False
    return view


def _options(op: UnknownOp) -> dict[str, Any]:
    raw = custom_bytes(op)
    if not raw:
        return {}
    entries = read_map(raw)
    return {"options": raw} if entries is None else dict(entries)
