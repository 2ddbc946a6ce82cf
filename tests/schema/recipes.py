"""Recipes as text, as flatc's own test data has them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from luciole.schema.textproto import Message
from tests.support import data_path


def plain(message: Message) -> dict[str, list[Any]]:
    """Values by field, in the order of the text."""
    found: dict[str, list[Any]] = {}
    for entry in message:
        value = plain(entry.value) if isinstance(entry.value, Message) else entry.value
        found.setdefault(entry.name, []).append(value)
    return found


def recipes(folder: str) -> list[Path]:
    return list(_listed(folder))


@cache
def _listed(folder: str) -> tuple[Path, ...]:
    return tuple(sorted(data_path(f"recipes/{folder}").glob("*/test.recipe")))
