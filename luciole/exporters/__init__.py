"""Write models to files. These names are imported when one is first used: help texts ask the
writers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from luciole.exporters.files import check_target, inexact, refused, save, to_bytes

__all__ = ["check_target", "inexact", "refused", "save", "to_bytes"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module("luciole.exporters.files"), name)
    globals()[name] = value
    return value
