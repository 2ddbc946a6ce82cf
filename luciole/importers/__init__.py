"""Read files of many frameworks as models. ``load`` looks at what a file is, not at what it is
called.

These names are imported when one is first used: help texts ask the readers what they read.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luciole.importers.circle.model import from_bytes, import_model
    from luciole.importers.files import as_model, load, load_with_findings

__all__ = ["as_model", "from_bytes", "import_model", "load", "load_with_findings"]

_HOME = {
    "as_model": "luciole.importers.files",
    "from_bytes": "luciole.importers.circle.model",
    "import_model": "luciole.importers.circle.model",
    "load": "luciole.importers.files",
    "load_with_findings": "luciole.importers.files",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value
