"""Check arguments of calls by the types that their parameters name."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

from luciole.ir.errors import expect

P = ParamSpec("P")
R = TypeVar("R")

_PLAIN: dict[str, tuple[str, tuple[type, ...]]] = {
    "bool": ("True or False", (bool, np.bool_)),
    "int": ("a whole number", (int, np.integer)),
    "float": ("a number", (float, int, np.floating, np.integer)),
    "str": ("a text", (str,)),
    "None": ("None", (type(None),)),
}
"""Words for the types that can be told from a value alone, and the classes of their values."""


def checked(call: Callable[P, R]) -> Callable[P, R]:
    """Make a call that refuses keywords whose values are not of their parameter's type, where this
    is a plain one: a number, a text, True or False. Raises LucioleError that names the keyword.
    """
    needs = {name: _needed(str(words)) for name, words in call.__annotations__.items()}

    @wraps(call)
    def run(*arguments: P.args, **keywords: P.kwargs) -> R:
        for name, value in keywords.items():
            words, kinds = needs.get(name) or ("", (object,))
            expect(value, kinds, f"{name}: {words}")
        return call(*arguments, **keywords)

    return run


def _needed(annotation: str) -> tuple[str, tuple[type, ...]] | None:
    """Read an annotation such as ``int | str | None``; None for one with other types."""
    names = annotation.split(" | ")
    if not all(name in _PLAIN for name in names):
        return None
    words = [_PLAIN[name][0] for name in names if name != "None"]
    return " or ".join(words), tuple(kind for name in names for kind in _PLAIN[name][1])
