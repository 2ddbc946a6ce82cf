"""The operators. Importing this package imports every module in it, so that ``OPS`` is complete."""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
