"""Keras files whose configurations are changed: programs must be found, whatever else there is."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import h5py
import numpy as np

from luciole.importers import hdf5
from luciole.importers.keras.programs import refuse_programs
from luciole.ir import LucioleError
from tests.fuzz.data.common import COMPUTING, DataCase, check_refusal, choose, emptied, promised
from tests.fuzz.mutations import Rng, damaged_bytes
from tests.fuzz.programs import BrokenPromiseError

PER_MODEL = 1
"""Cases that start from the same file."""

_LAMBDA = {"class_name": "Lambda", "module": "keras.layers", "config": {"name": "\u202e\n"}}
_LEAVES: tuple[Any, ...] = (
    None,
    3,
    -1.5,
    True,
    "relu",
    "x" * 5000,
    [],
    {},
    "\ud800",
    {"class_name": None},
)
_MODULES = (None, "keras.layers", "keras", "keras.src.ops", "builtins", "os", "", 3, ["keras"])


def make(seed: int, number: int) -> DataCase:
    """The case of that number; where it says that there is a program, the file is whole."""
    rng = np.random.default_rng([seed, 12, number])
    config = _object(rng, 0)
    program = rng.random() < 0.4
    if program:
        config = _around(rng, _LAMBDA)
    text = json.dumps(config)
    content = _hdf5(rng, text) if rng.random() < 0.2 else _archive(rng, text)
    if not program and rng.random() < 0.6:
        return DataCase(number, damaged_bytes(rng, content), "damaged bytes")
    return DataCase(number, content, "a program" if program else "no program")


def run(case: DataCase, seed: int) -> str:
    """Look for programs in the file."""
    hdf5.SECONDS = COMPUTING
    with emptied() as folder, promised(0):
        path = folder / "m.keras"
        path.write_bytes(case.content)
        try:
            refuse_programs(path, lambda name: name == "mine")
        except LucioleError as error:
            check_refusal(error)
            return type(error).__name__
    if case.what == "a program":
        raise BrokenPromiseError("a program was not found")
    return "let through"


def _object(rng: Rng, depth: int) -> Any:
    """An object with others in it."""
    if depth > 3 or rng.random() < 0.2:
        return choose(rng, _LEAVES)
    name = choose(
        rng, ["Dense", "Sequential", "function", "Functional", "__tuple__", 3, ["Lambda"]]
    )
    found = {"class_name": name, "module": choose(rng, _MODULES)}
    found["registered_name"] = choose(rng, [None, "mine", "function"])
    found["config"] = {str(n): _object(rng, depth + 1) for n in range(int(rng.integers(3)))}
    return found if rng.random() < 0.7 else [found, _object(rng, depth + 1)]


def _around(rng: Rng, config: Any) -> Any:
    """A configuration somewhere in lists and other objects."""
    for _ in range(int(choose(rng, [0, 1, 3, 30, 200]))):
        inner = {"x": config, "y": choose(rng, _LEAVES[:7])}
        layer = {"class_name": "Dense", "module": "keras.layers", "config": inner}
        config = choose(rng, [[config], inner, layer, [1, config, 2]])
    return config


def _archive(rng: Rng, text: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", int(choose(rng, [0, 8]))) as archive:
        archive.writestr("metadata.json", "{}")
        archive.writestr("config.json", text)
        archive.writestr("model.weights.h5", bytes(1000))
    return out.getvalue()


def _hdf5(rng: Rng, text: str) -> bytes:
    out = io.BytesIO()
    with h5py.File(out, "w", libver="latest") as file:
        file.attrs["model_config"] = text if rng.random() < 0.5 else np.bytes_(text.encode())
    return out.getvalue()
