"""Read settings that people, or other tools, wrote as JSON: what is wrong is said in one line that
begins with ``where`` it stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Any

from luciole.lquantizer.errors import QuantizeError


def text_in(where: str, entry: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """Read a text of an object. Raises QuantizeError for anything else."""
    text = entry.get(key, default)
    if not isinstance(text, str):
        raise QuantizeError(f"{where}: {key} is {text!r}, text is needed")
    return text


def refuse_others(
    where: str, entry: Mapping[Any, Any], known: Set[str], has: str = "there is"
) -> None:
    """Raise QuantizeError for keys of an object that are not known, with those that are."""
    other = ", ".join(sorted(str(key) for key in entry.keys() - known))
    if other:
        listed = ", ".join(sorted(known))
        raise QuantizeError(f"{where}: {other} is not understood, {has} {listed}")


def compiled(where: str, text: str, expression: str) -> re.Pattern[str]:
    """Compile the regular ``expression`` that a text stands for. Raises QuantizeError for a text
    that is none.
    """
    try:
        return re.compile(expression)
    except (re.error, OverflowError, RecursionError) as error:
        raise QuantizeError(f"{where} {text!r}: {error}") from None
