"""Write files of a folder, all of them or none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from luciole.files.drafts import ENDING
from luciole.files.writing import refused

Fill = Callable[[str, bytes | str], None]
"""Writes a file of so a name and so a content."""


@contextmanager
def filling(folder: Path) -> Iterator[Fill]:
    """Return a function that writes files of a folder, which are there at the end, unless something
    was raised.

    What is gathered until then lies in the folder, too; what a killed writer has left is removed.
    Raises LucioleError for a file that cannot be written.
    """
    draft, names = folder / f".filling{ENDING}", []

    def fill(name: str, content: bytes | str) -> None:
        with refused(folder / name):
            (draft / name).write_bytes(content.encode() if isinstance(content, str) else content)
        names.append(name)

    with refused(folder):
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
    try:
        yield fill
        for name in names:
            with refused(folder / name):
                os.replace(draft / name, folder / name)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
