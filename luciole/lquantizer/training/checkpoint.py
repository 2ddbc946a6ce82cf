"""The state of a fine-tuning in one file, so that it can go on where it was stopped."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from luciole.files import replacing
from luciole.files.json_reading import parse_json
from luciole.ir import Array, LucioleError, Model
from luciole.lquantizer.training.settings import Epoch

VERSION = 2
_INFORMATION, _NOW, _BEST = "information", "now/", "best/"


@dataclass
class State:
    """The state after an epoch: the present one, the best one, the history, and the factor of the
    usual learning rates.

    The step follows from the number of epochs, and so does the order of the records.
    """

    now: dict[str, Array]
    best: dict[str, Array]
    best_epoch: int
    history: list[Epoch]
    rate: float = 1.0


def fingerprint(models: Iterable[Model]) -> str:
    """Digest the operators, shapes and constants of models."""
    digest = hashlib.sha256()
    for model in models:
        for op in model.graph.ops:
            digest.update(f"{op.kind} {op.name} {sorted(op.attributes().items())}".encode())
        for value in model.graph.values:
            digest.update(f"{value.name} {value.dtype.name} {value.shape}".encode())
            if value.data is not None:
                digest.update(np.ascontiguousarray(value.data).tobytes())
    return digest.hexdigest()


def fingerprint_of_data(arrays: Iterable[Array | None]) -> str:
    """Digest records: their types, shapes and numbers."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(b"none" if array is None else f"{array.dtype} {array.shape}".encode())
        if array is not None:
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def save(path: Path, identity: dict[str, str], state: State) -> None:
    """Write everything, see ``luciole.files.replacing``. Raises LucioleError when that is not
    possible.
    """
    history = [asdict(epoch) for epoch in state.history]
    information = {"version": VERSION, "best_epoch": state.best_epoch, "history": history}
    text = json.dumps({**information, "rate": state.rate, **identity})
    arrays = {_INFORMATION: np.array(text)}
    arrays.update({_NOW + name: array for name, array in state.now.items()})
    arrays.update({_BEST + name: array for name, array in state.best.items()})
    with replacing(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # names are no options


def load(path: Path, identity: dict[str, str]) -> State:
    """Read a file of ``save``; ``identity`` are the digests, by name, that must be the same.

    Raises LucioleError for a file that is none, or that belongs to another model, other records or
    other settings.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        information: Any = parse_json(str(arrays.pop(_INFORMATION)))
        version = information["version"]
        history = [Epoch(**epoch) for epoch in information["history"]]
        best_epoch, rate = int(information["best_epoch"]), float(information.get("rate", 1.0))
    except OSError as error:
        raise LucioleError(f"checkpoint {path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile):
        raise LucioleError(f"checkpoint {path}: it was not written by a fine-tuning") from None
    if version != VERSION:
        raise LucioleError(f"checkpoint {path}: its version is {version}, {VERSION} is needed")
    for digested, expected in identity.items():
        if information.get(digested) != expected:
            raise LucioleError(f"checkpoint {path}: it was made with other {digested}")
    return State(_under(arrays, _NOW), _under(arrays, _BEST), best_epoch, history, rate)


def _under(arrays: dict[str, Array], prefix: str) -> dict[str, Array]:
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
