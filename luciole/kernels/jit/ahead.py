"""Folders of machine code that was made ahead, for classes of processors, when luciole was packed
or installed. They are read after the cache, and never written.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from luciole.kernels.jit import trust
from luciole.kernels.jit.cache import SOURCES, cache_version, contents_of

VARIABLE = "LUCIOLE_KERNELS"

PACKED = SOURCES.parents[1] / "luciole_kernels"
"""Where a package of kernels lies, which is installed beside luciole's."""


@dataclass(frozen=True)
class AheadFolder:
    """Files in a folder of this version of luciole and its compiler."""

    folder: Path
    read_file: Callable[[Path], bytes]

    def read(self, name: str) -> bytes:
        """Read a file, empty where there is none or somebody else may have written it."""
        with suppress(OSError):
            return self.read_file(self.folder / name)
        return b""

    def contents(self) -> tuple[int, int]:
        """Count the functions that are there, and their bytes."""
        return contents_of(self.folder)


@functools.cache
def ahead_folders() -> tuple[AheadFolder, ...]:
    """Return the folder that ``LUCIOLE_KERNELS`` names, where nobody else can have written, and the
    one beside the package, which is as safe as the package's programs.
    """
    folders = [AheadFolder(_version(PACKED), Path.read_bytes)]
    named = os.environ.get(VARIABLE)
    if named:
        folder = _version(Path(os.path.abspath(named)))
        try:
            trust.check_folder(folder)
        except FileNotFoundError:
            pass  # it has none of this version: ``luciole cache`` shows that
        except (trust.UntrustedError, OSError) as error:
            text = "luciole: kernels made ahead are not used: %s"
            logging.getLogger("luciole").warning(text, trust.text_of(error))
            return tuple(folders)
        folders.insert(0, AheadFolder(folder, trust.read_file))
    return tuple(folders)


def _version(root: Path) -> Path:
    """Find this version's folder below a root, which is laid out as a cache is."""
    return root / "kernels" / cache_version()
