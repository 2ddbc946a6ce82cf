"""Find the programs that a Keras file would make Keras run: in its configuration, before Keras
reads it.

A ``.keras`` file is a zip archive with ``config.json``, a ``.h5`` file has such a text as an
attribute. Every object in it names a class or a function, and Keras makes what it names. Some of
those are programs in the file itself, others call functions with the file's arguments.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from luciole.importers.hdf5 import open_hdf5
from luciole.ir.errors import FormatError
from luciole.schema.printable import quoted, shorten

Registered = Callable[[str], bool]
"""Whether the user's own program registered something with Keras under a name."""

_PROGRAMS = {"Lambda", "__lambda__", "TFSMLayer", "TorchModuleWrapper", "JaxLayer", "FlaxLayer"}
"""Keras's classes whose configuration is a program, or names one."""

_OBJECTS = {
    "layers", "models", "activations", "initializers", "regularizers", "constraints", "losses",
    "metrics", "optimizers", "ops", "random", "dtype_policies", "quantizers",
}  # fmt: skip
"""Parts of Keras that models are made of; the others (``utils``, ``saving``, ...) do things."""

_LONGEST_CONFIG = 64 << 20
_UNPACKED = 256 << 20
"""Bytes that an archive may unpack to whatever its size is; beyond, four times its size. Keras
packs nothing.
"""
_HINT = "who trusts the file can load it with Keras and export a SavedModel"


def refuse_programs(path: Path, registered: Registered) -> None:
    """Raise FormatError for a .keras or .h5 file that holds or names a program, or that unpacks to
    much more than it is.
    """
    with path.open("rb") as file:
        packed = file.read(2) == b"PK"
    try:
        config = json.loads(_packed_config(path) if packed else _hdf5_config(path))
    except FormatError as error:
        raise FormatError(f"{path.name}: {error}") from None
    except Exception as error:  # no list of what libraries raise on damaged files is complete
        why = shorten(" ".join(str(error).split()) or type(error).__name__)
        raise FormatError(f"{path.name}: its configuration cannot be read: {why}") from None
    for entry in _objects(config):
        program = _program(entry, registered)
        if program is not None:
            raise FormatError(f"{path.name}: Keras would run {program}; {_HINT}")


def _packed_config(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        _check_members(archive.infolist(), max(_UNPACKED, 4 * path.stat().st_size))
        with archive.open("config.json") as file:
            config = file.read(_LONGEST_CONFIG + 1)
    if len(config) > _LONGEST_CONFIG:
        raise FormatError(f"its configuration is longer than {_LONGEST_CONFIG:,} bytes")
    return config


def _check_members(members: Sequence[zipfile.ZipInfo], most: int) -> None:
    unpacked = sum(member.file_size for member in members)
    if unpacked > most:
        raise FormatError(f"unpacks to {unpacked:,} bytes, at most {most:,} are read")
    methods = {member.compress_type for member in members}
    others = sorted(methods - {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
    if others:  # they unpack without a bound
        raise FormatError(f"is packed with method {others[0]}, 0 and 8 (deflate) are read")


def _hdf5_config(path: Path) -> str:
    with open_hdf5(path) as file:
        if "model_config" not in file.attributes("/"):
            raise FormatError("it holds no model, weights at the most: model.save writes both")
        return file.text("/", "model_config")


def _objects(config: Any) -> Iterator[dict[str, Any]]:
    """Find everything in a configuration that names a class or a function, at any depth."""
    left = [config]
    while left:
        entry = left.pop()
        if isinstance(entry, dict):
            left += entry.values()
            if "class_name" in entry:
                yield entry
        elif isinstance(entry, list):
            left += entry


def _program(entry: dict[str, Any], registered: Registered) -> str | None:
    """Find the program that an object would run, None for objects that models are made of."""
    name, module = entry["class_name"], entry.get("module")
    inner = entry.get("config")
    if not isinstance(name, str):
        return f"what is called {quoted(name)}"
    if name in _PROGRAMS:
        layer = inner.get("name") if isinstance(inner, dict) else None
        return f"a program: {quoted(layer or name)} is a {name}"
    is_function = name == "function"
    registered_name = inner if is_function else entry.get("registered_name", name)
    if module is None or (isinstance(registered_name, str) and registered(registered_name)):
        return None
    if is_function and module == "builtins":
        return None  # the name of an activation, a loss, ...
    if isinstance(module, str) and _is_of_models(module):
        return None
    what = inner if is_function else name
    return f"{quoted(what)} of {quoted(module)}, which is no part of Keras that models are made of"


def _is_of_models(module: str) -> bool:
    """Return whether a module is one of those of Keras that models are made of."""
    keras, *parts = module.split(".")
    area = next((part for part in parts if part not in ("src", "_legacy", "legacy")), None)
    return keras == "keras" and (area is None or area in _OBJECTS)
