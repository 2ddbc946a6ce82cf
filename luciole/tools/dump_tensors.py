"""Tensors' contents out of a model: to the terminal, to .npy, or to HDF5 as circle-tensordump."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from luciole.files import replacing
from luciole.ir import Array, LucioleError, Model, Value
from luciole.ir.quantization import vectors
from luciole.ir.strings import strings_of
from luciole.ir.text.common import one_line, utf8
from luciole.ir.text.plain import jsonable
from luciole.ir.value import shape_text
from luciole.tools.common.command import UsageError

_HDF5 = (".h5", ".hdf5")


def contents(value: Value) -> Array:
    """Read a constant's values as stored. Raises LucioleError where there are none to show."""
    if not value.is_constant:
        made = "it is computed" if value.producer else "the caller gives it"
        raise LucioleError(f"tensor {value.name!r} has no contents in the file: {made}")
    texts = strings_of(value)
    data = value.data if texts is None else texts
    if data is None:
        why = "it is sparse" if value.sparsity is not None else f"it is {value.dtype.name}"
        raise LucioleError(f"tensor {value.name!r} cannot be shown as an array: {why}")
    return data


def as_text(value: Value) -> str:
    """Print type, shape, quantization and values, as NumPy prints them."""
    lines = [f"{one_line(value.name)}: {value.dtype.name} {shape_text(value.shape)}"]
    for name, numbers in parameters(value):
        lines.append(f"{name}: {np.array2string(numbers, threshold=8, edgeitems=3)}")
    if value.is_constant:
        lines.append(np.array2string(contents(value), threshold=1000, max_line_width=100))
    return "\n".join(lines)


def as_json(value: Value) -> dict[str, Any]:
    """Turn a tensor into JSON values; all values, however many."""
    return {
        "name": utf8(value.name),
        "dtype": value.dtype.name,
        "shape": jsonable(value.shape),
        **{name: jsonable(numbers) for name, numbers in parameters(value)},
        "values": jsonable(contents(value)) if value.is_constant else None,
    }


def parameters(value: Value) -> Iterator[tuple[str, Array]]:
    """Return quantization parameters by the names that circle-tensordump gives them."""
    table = value.quantization
    if table is None:
        return
    for name, vector in vectors(table).items():
        if vector is not None and len(vector):
            yield name, vector
    yield "quantized_dimension", np.array(table.quantized_dimension, np.int32)


def write_tensor(value: Value, path: str) -> None:
    """Write a constant's values to a .npy file, or with its parameters to an HDF5 file."""
    suffix = Path(path).suffix.lower()
    if suffix == ".npy":
        array = contents(value)
        if array.dtype == object:
            raise LucioleError(f"tensor {value.name!r} holds texts: no {suffix} is written of them")
        with replacing(path) as file:
            np.save(file, array)
    elif suffix in _HDF5:
        contents(value)
        _write_groups(path, [value])
    else:
        raise UsageError(f"{path}: values are written as .npy or .h5, not {suffix or 'this'}")


def write_hdf5(model: Model, path: str) -> int:
    """Write every tensor to an HDF5 file; returns how many there are.

    A group for each, ``/`` in names becoming ``_``: datasets weights (where it is a constant), min,
    max, scale, zero_point and quantized_dimension, as ONE's circle-tensordump has it.
    """
    values = [value for graph in model.graphs for value in graph.values]
    _write_groups(path, values)
    return len(values)


def _write_groups(path: str, values: list[Value]) -> None:
    """Write a file that appears whole or not at all."""
    import h5py

    with replacing(path) as draft, h5py.File(draft, "w") as file:
        for value in values:
            _write_group(file, value)


def _write_group(file: Any, value: Value) -> None:
    name = base = utf8(value.name).replace("/", "_").replace("\0", "_").strip(".") or "no_name"
    count = 0
    while name in file:
        count += 1
        name = f"{base}_{count}"
    group = file.create_group(name)
    if value.is_constant and value.data is not None:
        group.create_dataset("weights", data=value.data)
    for key, numbers in parameters(value):
        group.create_dataset(key, data=numbers)
