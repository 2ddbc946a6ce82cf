"""Arrays in .npy and .npz files, and which of several arrays are the inputs and the labels."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.lib.npyio import NpzFile

from luciole.ir.dtypes import Array
from luciole.tools.data.errors import DataError, damage_refused
from luciole.tools.data.fitting import InputSpec, Stored, check_count

_LABEL = re.compile(r"(y|labels?|targets?)(_.*)?|.*_(labels?|targets?)|(train|test|val|valid)_y")
_DATA = re.compile(r"(x|images?|data|inputs?)(_.*)?|input.*|.*_(x|images?|data|inputs?)")
_SPLIT = re.compile(r"(?:^|_)(train|test|val|valid|validation)(?=_|$)")


def read_npy(path: str, specs: Sequence[InputSpec], limit: int | None) -> Stored:
    """The first ``limit`` records of the one array in a .npy file, for a model with one input."""
    if len(specs) != 1:
        raise DataError(f"a .npy file holds one input, the model has {_listed(specs)}")
    stored = _check_array(map_npy(path), "the array")
    first = np.array(stored[:limit])
    return Stored({specs[0].name: specs[0].fit(first, "the array")}, len(stored))


def load_npy(path: str) -> Array:
    """The whole array of a .npy file."""
    return np.array(map_npy(path))


def map_npy(path: str) -> Array:
    """The array of a .npy file, in the file: only what is used is read."""
    with damage_refused("the file"):
        try:
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        except ValueError:  # an array without elements cannot be mapped
            return np.asarray(np.load(path, allow_pickle=False))


def read_npz(
    path: str, specs: Sequence[InputSpec], limit: int | None, array: str | None = None
) -> Stored:
    """The first ``limit`` records of the arrays that are the inputs, and their labels.

    ``array`` says which array is the input of a model with one input. Raises DataError when the
    arrays cannot be told apart.
    """
    names = array_names(path)
    chosen = _choose(names, specs, array)
    arrays = {spec.name: _check_array(load_member(path, n), f"array {n!r}") for spec, n in chosen}
    totals = {name: len(stored) for name, stored in arrays.items()}
    if len(set(totals.values())) != 1:
        raise DataError(f"every input needs the same number of records, found {totals}")
    records = {
        spec.name: spec.fit(_first(arrays.pop(spec.name), limit), f"array {n!r}")
        for spec, n in chosen
    }
    label = label_array(names, [n for _, n in chosen])
    labels = None if label is None else load_member(path, label)
    return Stored(records, next(iter(totals.values())), labels)


@contextmanager
def _open(path: str) -> Iterator[NpzFile]:
    with open(path, "rb") as file:  # np.load leaves it open when the archive is damaged
        with damage_refused("the file"):
            arrays = np.load(file, allow_pickle=False)
        with arrays:
            yield arrays


def array_names(path: str) -> list[str]:
    """The names of the arrays in a .npz file."""
    with _open(path) as file:
        return list(file.files)


def load_member(path: str, name: str) -> Array:
    """One array of a .npz file."""
    names = array_names(path)
    if name not in names:
        raise DataError(f"no array {name!r}, found {_quoted(names)}")
    with _open(path) as file, damage_refused(f"array {name!r}"):
        member = file[name]
    if not isinstance(member, np.ndarray):
        raise DataError(f"{name!r} is not an array")
    return member


def _first(array: Array, limit: int | None) -> Array:
    """The first records; a copy, so that the others can be forgotten."""
    return array if limit is None or limit >= len(array) else array[:limit].copy()


def _check_array(array: Array, what: str) -> Array:
    if array.ndim == 0:
        raise DataError(f"{what} is a single number; its first axis has to count records")
    check_count(len(array))
    return array


def _choose(
    names: Sequence[str], specs: Sequence[InputSpec], array: str | None
) -> list[tuple[InputSpec, str]]:
    if array is not None:
        if len(specs) != 1:
            raise DataError(f"{array!r} names one array, the model has {_listed(specs)}")
        return [(specs[0], array)]
    missing = [spec.name for spec in specs if spec.name not in names]
    if not missing:
        return [(spec, spec.name) for spec in specs]
    if len(specs) > 1:
        raise DataError(f"no array for input {missing[0]!r}, found {_quoted(names)}")
    return [(specs[0], _only_data_array(names, specs[0].name))]


def _only_data_array(names: Sequence[str], wanted: str) -> str:
    data = [name for name in names if not _LABEL.fullmatch(name)]
    usual = [name for name in data if _DATA.fullmatch(name)]
    for candidates in (data, usual):
        if len(candidates) == 1:
            return candidates[0]
    if not data:
        raise DataError(f"no array for input {wanted!r}, found {_quoted(names)}")
    pick = (usual or data)[-1]
    raise DataError(
        f"input {wanted!r} could be any of {_quoted(usual or data)}: say which, e.g. FILE:{pick}"
    )


def label_array(names: Sequence[str], chosen: Sequence[str] = ()) -> str | None:
    """The array that labels the chosen ones, None if there is none or several could be it.

    It is of the same split: ``x_test`` goes with ``y_test``, ``train_images`` with
    ``train_labels``, ``x`` with ``y`` or ``labels``.
    """
    labels = [name for name in names if _LABEL.fullmatch(name) and name not in chosen]
    others = [name for name in names if name not in labels]
    if len(labels) == 1 and len(others) <= 1:
        return labels[0]
    split = _SPLIT.findall(chosen[0]) if chosen else []
    same = [name for name in labels if _SPLIT.findall(name) == split]
    twins = [name for name in same if chosen and name == re.sub(r"^x", "y", chosen[0])]
    candidates = twins or same
    return candidates[0] if len(candidates) == 1 else None


def _listed(specs: Sequence[InputSpec]) -> str:
    return f"{len(specs)} inputs: {_quoted([spec.name for spec in specs])}"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names)) or "nothing"
