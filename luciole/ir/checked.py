"""Check arguments of calls by the types that their parameters name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar, cast, runtime_checkable

import numpy as np

from luciole.ir.errors import expect
from luciole.ir.graph import Graph, Model

P = ParamSpec("P")
R = TypeVar("R")

_WHOLE = (int, np.integer)
_FUNCTION = cast(type, Callable)  # which isinstance takes


@runtime_checkable
class _Path(Protocol):
    """A path that is no text."""

    def __fspath__(self) -> str:
        """Return the text."""


class _Kind(NamedTuple):
    """Words for a type, the classes of its values, and for a list those of its elements."""

    words: str
    kinds: tuple[type, ...]
    elements: tuple[type, ...] = ()


_TEXT = _Kind("a text", (str,))
_NAMES = _Kind("a name or a list of names", (Iterable,), (str,))
_PLAIN: dict[str, _Kind] = {
    "bool": _Kind("True or False", (bool, np.bool_)),
    "int": _Kind("a whole number", _WHOLE),
    "float": _Kind("a number", (float, *_WHOLE, np.floating)),
    "str": _TEXT,
    **dict.fromkeys(("Literal", "Granularity", "MethodName", "Rescale", "Rounding"), _TEXT),
    "Graph": _Kind("a Graph of the model", (Graph,)),
    "None": _Kind("", (type(None),)),
    "Path_": _Kind("a path", (str, _Path)),
    "Track": _Kind("a function track(what, total)", (_FUNCTION,)),
    "Transform": _Kind("a function of an array (lambda x: x / 16)", (_FUNCTION,)),
    "Callable[[str], None]": _Kind("a function of a line", (_FUNCTION,)),
    "Mapping": _Kind("a dictionary by name", (Mapping,)),
    "Iterable[str]": _NAMES,
    "Sequence[str]": _NAMES,
    "Iterable[int]": _Kind("a list of whole numbers", (Iterable,), _WHOLE),
}
"""Types that can be told from a value alone."""
_MODEL = _Kind("a Model to save (of a result: result.model)", (Model,))
"""A model alone, and no path of one."""


def checked(call: Callable[P, R]) -> Callable[P, R]:
    """Make a call that refuses arguments whose values are not of their parameter's type, where this
    is a plain one: a number, a text, True or False, a path, names. One name will do for several.
    Raises LucioleError that names the parameter.
    """
    parameters = signature(call).parameters
    needs = {name: _needed(str(one.annotation)) for name, one in parameters.items()}
    order = list(needs)

    @wraps(call)
    def run(*arguments: P.args, **keywords: P.kwargs) -> R:
        places = [_taken(n, value, needs[n]) for n, value in zip(order, arguments, strict=False)]
        named = {n: _taken(n, value, needs.get(n)) for n, value in keywords.items()}
        return cast(Callable[..., R], call)(*places, *arguments[len(places) :], **named)

    return run


def _taken(name: str, value: Any, kind: _Kind | None) -> Any:
    """Check an argument, and return names and numbers as a list."""
    if kind is None:
        return value
    expect(value, kind.kinds, f"{name}: {kind.words}")
    if value is None or not kind.elements:
        return value
    items = [value] if isinstance(value, str) else list(value)
    for item in items:
        expect(item, kind.elements, f"{name}: {kind.words}")
    return items


def _needed(annotation: str) -> _Kind | None:
    """Read an annotation such as ``int | str | None``; None for one with other types."""
    if annotation == "Model":
        return _MODEL
    names = re.split(r" \| (?![^\[]*\])", annotation)  # not within brackets
    known = [_PLAIN.get(name) or _PLAIN.get(name.partition("[")[0]) for name in names]
    kinds = [kind for kind in known if kind is not None]
    if len(kinds) < len(names):
        return None
    if any(kind is _NAMES for kind in kinds):
        kinds = [kind for kind in kinds if kind is not _TEXT]
    words = " or ".join(dict.fromkeys(kind.words for kind in kinds if kind.words))
    elements = tuple(one for kind in kinds for one in kind.elements)
    return _Kind(words, tuple(one for kind in kinds for one in kind.kinds), elements)
