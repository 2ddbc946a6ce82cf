"""Import the files of kernels, which register themselves, when an operator first needs them."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path

from luciole.ir import Op

OPERATORS = "luciole.ir.ops"
_KERNELS = Path(__file__).parents[1]
_FAMILIES = "luciole.kernels.integers"


def load_kernels_of(cls: type[Op]) -> None:
    """Import the files of kernels, in whatever folder, whose names begin with that of an operator's
    file, so that they register themselves, and those of ``integers``, which are for families; an
    operator from elsewhere registers its own.
    """
    package, _, file = cls.__module__.rpartition(".")
    if package == OPERATORS:
        _load_named(file)


@cache
def _load_named(file: str) -> None:
    for module in _modules():
        folder, _, name = module.rpartition(".")
        if f"{name}_".startswith(f"{file}_") or folder == _FAMILIES:
            importlib.import_module(module)


@cache
def load_kernels() -> None:
    """Import every file of kernels once."""
    for module in _modules():
        importlib.import_module(module)


@cache
def _modules() -> list[str]:
    """List this room's modules by where their files lie, without importing any."""
    files = sorted(_KERNELS.rglob("*.py"))
    names = (file.relative_to(_KERNELS).with_suffix("").parts for file in files)
    return [".".join(("luciole.kernels", *parts)) for parts in names if parts[-1] != "__init__"]
