"""Other tools' scales, zero points, values and ranges in models, from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from luciole.files.json_reading import read_json
from luciole.importers import load
from luciole.interpreter.errors import NO_ARRAY
from luciole.ir import Array, LucioleError, Model, TensorType
from luciole.ir.dtypes import integer_range
from luciole.ir.errors import FormatError, expect
from luciole.ir.quantization import Affine
from luciole.ir.surgery import implant as implanting
from luciole.ir.surgery.implant import Implant, ranges_in
from luciole.lquantizer.assignment.options import FoundRanges, RangesSource
from luciole.lquantizer.assignment.schemes import Source
from luciole.lquantizer.calibration.saved import Ranges, TensorRange
from luciole.lquantizer.errors import QuantizeError

__all__ = ["implant"]

Path_ = str | os.PathLike[str]

DESCRIPTION = "qparam.json"
"""The file in a folder that names the others."""

_KEYS = {"dtype", "scale", "zerop", "quantized_dimension", "value"}
_MODELS = (".circle", ".tflite")


def implant(
    model: Path_ | Model,
    parameters: Path_ | Mapping[str, Mapping[str, Any]] | None = None,
    *,
    ranges: Path_ | Ranges | Mapping[str, Any] | None = None,
) -> Model:
    """Put parameters that another tool found into a model, which itself stays as it is.

    ``parameters`` are scales, zero points and values as ONE's q-implant reads them: a folder with
    ``qparam.json`` and .npy files, that file, or by tensor name a dictionary with ``dtype``
    ("int8"), ``scale`` and ``zerop`` (arrays), ``quantized_dimension`` (0 unless it is there) and,
    for a constant, ``value``, its integers; without it what it holds is rounded. Results that
    repeat an operand (RESHAPE, MAX_POOL_2D) follow it, and float biases the scales of their layer.

    ``ranges`` (a file of ``--save-ranges``, its content) are written as each tensor's ``min`` and
    ``max``, as ONE's record-minmax does: ``quantize(..., ranges_from="net.circle")`` reads them.
    Raises FormatError for files that are not understood, LucioleError for a tensor of no such name,
    for what does not fit a tensor, and where what comes out is no network of integers.
    """
    changed = model if isinstance(model, Model) else load(model)
    if parameters is None and ranges is None:
        raise LucioleError("nothing is put in: give parameters or ranges")
    if parameters is not None:
        changed = implanting.implant(changed, _implants(parameters))
    if ranges is not None:
        changed = implanting.set_ranges(changed, _bounds(ranges))
    return changed


def read_ranges(source: RangesSource | None) -> RangesSource | None:
    """Replace the paths of models among sources of ranges by the ranges that these hold. Raises
    QuantizeError for a model without any.
    """
    if isinstance(source, Sequence) and not isinstance(source, str):
        return [_of_model(one) for one in source]
    return None if source is None else _of_model(source)


def _of_model(source: Source | FoundRanges) -> Source | FoundRanges:
    if not isinstance(source, str | os.PathLike) or Path(source).suffix.lower() not in _MODELS:
        return source
    ranges = ranges_in(load(source).graph)
    if not ranges:
        raise QuantizeError(f"ranges {source}: no tensor of the model has a min and a max")
    tensors = {name: TensorRange(low, high) for name, (low, high) in ranges.items()}
    return Ranges(tensors, source=f"ranges {source}")


def _bounds(source: Path_ | Ranges | Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Read the least and the largest number of each tensor."""
    if isinstance(source, Mapping):
        source = Ranges.parse(dict(source))
    if not isinstance(source, Ranges):
        expect(source, (str, os.PathLike), "ranges: a file's path, Ranges or a dictionary")
    ranges = source if isinstance(source, Ranges) else Ranges.read(source)
    if ranges.rescaled:
        raise LucioleError(
            f"{ranges.source} are of a network whose channels were rescaled: save them with "
            "--rescale none"
        )
    return {name: (one.low, one.high) for name, one in ranges.tensors.items()}


def _implants(source: Path_ | Mapping[str, Mapping[str, Any]]) -> dict[str, Implant]:
    if isinstance(source, Mapping):
        return {name: _implant(name, entry) for name, entry in source.items()}
    expect(source, (str, os.PathLike), "parameters: a path or a dictionary by tensor")
    place = Path(source) / DESCRIPTION if Path(source).is_dir() else Path(source)
    content = read_json(place, FormatError)
    if not isinstance(content, dict) or not all(isinstance(e, dict) for e in content.values()):
        raise FormatError(f"{place.name}: an object with an object for each tensor is needed")
    return {name: _implant(name, _with_arrays(place, e)) for name, e in content.items()}


def _with_arrays(place: Path, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Read the files that an entry names, which lie beside the description."""
    files = {key: entry[key] for key in ("scale", "zerop", "value") if key in entry}
    return {**entry, **{key: _array(place, file) for key, file in files.items()}}


def _array(place: Path, name: object) -> Array:
    if not isinstance(name, str) or Path(name).name != name:
        raise FormatError(f"{place.name}: an array is a .npy file beside it, found {name!r}")
    try:
        array = np.load(place.with_name(name), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        reason = " ".join(str(error).split())
        raise FormatError(f"{name}: not a .npy file that can be read ({reason})") from None
    if not isinstance(array, np.ndarray):
        raise FormatError(f"{name}: a .npy file is needed")
    return array


def _implant(name: str, entry: Mapping[str, Any]) -> Implant:
    """Read the parameters of a tensor. Raises FormatError that names it."""
    where = f"tensor {name!r}"
    expect(entry, Mapping, f"{where}: a dictionary")
    missing = [key for key in ("dtype", "scale", "zerop") if key not in entry]
    strange = sorted(str(key) for key in entry.keys() - _KEYS)
    if missing or strange:
        fault = f"{missing[0]} is missing" if missing else f"{strange[0]} is not understood"
        raise FormatError(f"{where}: {fault}, there is {', '.join(sorted(_KEYS))}")
    scale, points = (_vector(where, entry, key) for key in ("scale", "zerop"))
    if scale.shape != points.shape or not len(scale):
        raise FormatError(f"{where}: {len(scale)} scales, {len(points)} zero points")
    axis = entry.get("quantized_dimension", 0)
    if type(axis) is not int or axis < 0:
        raise FormatError(f"{where}: quantized_dimension is {axis!r}, an axis is needed")
    affine = Affine.channels(scale, points, axis, _dtype(where, entry["dtype"]))
    return Implant(affine, None if entry.get("value") is None else _read(where, entry, "value"))


def _read(where: str, entry: Mapping[str, Any], key: str) -> Array:
    try:
        return np.asarray(entry[key])
    except NO_ARRAY:
        raise FormatError(f"{where}: {key} is no array") from None


def _vector(where: str, entry: Mapping[str, Any], key: str) -> Array:
    array = np.atleast_1d(_read(where, entry, key))
    if array.ndim != 1 or array.dtype.kind not in ("fiu" if key == "scale" else "iu"):
        raise FormatError(f"{where}: {key} is {array.dtype} of {array.ndim} axes, one is needed")
    return array


def _dtype(where: str, word: object) -> TensorType:
    dtypes: Sequence[TensorType] = [t for t in TensorType if integer_range(t) is not None]
    for dtype in dtypes:
        if isinstance(word, str) and dtype.name == word.upper():
            return dtype
    names = ", ".join(dtype.name.lower() for dtype in dtypes)
    raise FormatError(f"{where}: dtype is {word!r}, there is {names}")
