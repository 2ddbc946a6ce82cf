"""The operators. Importing this package imports every module in it, so that ``OPS`` is complete;
every class is found here by its name, too: ``from luciole.ir.ops import Mul, Relu``.
"""

from __future__ import annotations

import importlib
import pkgutil

from luciole.ir.op import CUSTOM_OPS, OPS, Op

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")


def __getattr__(name: str) -> type[Op]:
    """Find an operator class by its name. Raises AttributeError where there is none."""
    for classes in (OPS, CUSTOM_OPS):
        for operator in classes.values():
            if operator.__name__ == name and operator.__module__.startswith(__name__):
                return operator
    raise AttributeError(f"module {__name__!r} has no operator class {name!r}")
