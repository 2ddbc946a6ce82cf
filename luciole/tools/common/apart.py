"""Keep what a program writes apart from what it reads."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from luciole.tools.common.command import UsageError

EACH = "each:"
"""What begins the name of several files, one for each input or result."""


class Output(str):
    """The value of an argument that names a file to write: the ``type`` of its declaration."""

    __slots__ = ()

    def __new__(cls, path: str) -> Self:
        """Take a path. Raises ArgumentTypeError for none."""
        if not path:
            raise argparse.ArgumentTypeError("the path of a file is needed, found ''")
        return super().__new__(cls, path)


def check_apart(arguments: argparse.Namespace, where: str = "") -> None:
    """Refuse to write two results to one file, and to write over a file that another argument names
    as something to read. Raises UsageError, which begins with ``where``.
    """
    words = list(_words(arguments))
    seen = {p for word in words if not isinstance(word, Output) for p in files_named(word)}
    for path in (word for word in words if isinstance(word, Output)):
        for place in files_named(path):
            if place in seen and (not place.exists() or place.is_file()):
                fault = f"{where}{path} is named twice"
                raise UsageError(f"{fault}: give each file that is written a place")
        seen.update(files_named(path))


def _words(arguments: argparse.Namespace) -> Iterator[str]:
    """List the texts among the values of arguments, of options that take several one by one."""
    for value in vars(arguments).values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str):
                yield one


def files_named(word: str) -> set[Path]:
    """List the files that a word may name: also in front of ``:ARRAY``, behind ``RUNTIME:``, and
    the first one of ``each:PREFIX``.
    """
    if word.startswith(EACH):
        names = {f"{word.removeprefix(EACH)}0"}
    else:
        names = {word, word.rpartition(":")[0], word.partition(":")[2]}
    return {Path(os.path.realpath(name)) for name in names if name and "\0" not in name}
