"""Read JSON that people or other programs wrote."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from luciole.files.places import Path_
from luciole.schema.errors import LucioleError

DEEPEST = 100
"""Lists and objects in each other: whoever looks into them or prints them goes as deep."""


def read_json(path: Path_, refused: type[LucioleError] = LucioleError, what: str = "") -> Any:
    """Read a JSON file; ``what`` it is stands in front of its path in sentences.

    Raises ``refused`` for one that cannot be read or that is no JSON.
    """
    where = f"{what} {path}".lstrip()
    try:
        return named_json(Path(path).read_bytes(), where, refused)
    except OSError as error:
        raise refused(f"{where}: {error.strerror or error}") from None


def named_json(text: str | bytes, where: str, refused: type[LucioleError]) -> object:
    """Read a JSON text that sentences call ``where``. Raises ``refused`` for one that is none."""
    try:
        return parse_json(text)
    except ValueError as error:
        raise refused(f"{where}: not JSON: {error}") from None


def parse_json(text: str | bytes) -> object:
    """Read a JSON text.

    Raises ValueError with a sentence for a text that is none, for one that is nested too deeply,
    and for an integer that is larger than every float.
    """
    too_deep = ValueError(f"lists or objects are nested more than {DEEPEST} deep")
    try:
        content = json.loads(text, parse_int=_integer)
    except RecursionError:
        raise too_deep from None
    level: list[object] = [content]
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


def _parts(content: object) -> list[object]:
    if isinstance(content, dict):
        return list(content.values())
    return content if isinstance(content, list) else []
