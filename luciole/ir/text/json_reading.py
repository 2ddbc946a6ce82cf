"""Read JSON that people or other programs wrote."""

from __future__ import annotations

import json
import sys
from typing import Any

DEEPEST = 100
"""Lists and objects in each other: whoever looks into them or prints them goes as deep."""


def parse_json(text: str | bytes) -> Any:
    """Read a JSON text.

    Raises ValueError with a sentence for a text that is none, for one that is nested too deeply,
    and for an integer that is larger than every float.
    """
    too_deep = ValueError(f"lists or objects are nested more than {DEEPEST} deep")
    try:
        content = json.loads(text, parse_int=_integer)
    except RecursionError:
        raise too_deep from None
    level = [content]
    for _ in range(DEEPEST + 1):
        level = [part for outer in level for part in _parts(outer)]
    if level:
        raise too_deep
    return content


def _integer(digits: str) -> int:
    number = int(digits)
    if abs(number) > sys.float_info.max:
        raise ValueError(f"a number has {len(digits)} digits")
    return number


def _parts(content: Any) -> list[Any]:
    if isinstance(content, dict):
        return list(content.values())
    return content if isinstance(content, list) else []
