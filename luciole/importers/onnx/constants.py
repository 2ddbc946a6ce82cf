"""ONNX's tensors to arrays: those inside of the file, and those in other files beside it.

Sizes are checked before anything is allocated, and no file is opened but below the model's folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from luciole.importers.onnx.element_types import BFLOAT16, HELD, held_type
from luciole.ir import Array
from luciole.ir.dtypes import PACKED, array_type, byte_count
from luciole.ir.errors import SLIPS, FormatError
from luciole.ir.value import element_count
from luciole.schema.enums import TensorType
from luciole.schema.printable import quoted

if TYPE_CHECKING:
    from onnx import AttributeProto, TensorProto

_EXTERNAL = 1
_BITS = 8
"""Of a byte."""
_BLOCK = 512
"""Bytes in which stat counts."""


def array_of(tensor: TensorProto, folder: Path | None) -> tuple[Array, TensorType]:
    """Read a tensor: an array of its shape, and its element type, which packed ones need.

    Raises FormatError for contents that are not as long as the shape says, and for files that may
    not be read; RefusedError for element types that circle lacks.
    """
    from onnx import numpy_helper

    dtype = held_type(tensor.data_type)
    shape = tuple(tensor.dims)
    if min(shape, default=0) < 0:
        raise FormatError(f"tensor {quoted(tensor.name)} has the extents {list(shape)}")
    if tensor.data_location == _EXTERNAL:
        return _outside_numbers(tensor, dtype, shape, folder), dtype
    _check_length(tensor, dtype, shape)
    try:
        array = numpy_helper.to_array(tensor)
    except SLIPS as error:
        raise FormatError(f"tensor {quoted(tensor.name)} is damaged: {error}") from None
    if dtype in PACKED or tensor.data_type in HELD:
        array = array.astype(array_type(dtype))
    return np.array(array, order="C"), dtype


def _check_length(tensor: TensorProto, dtype: TensorType, shape: tuple[int, ...]) -> None:
    """Raise FormatError where the contents do not have the length of the shape."""
    count = element_count(shape)
    expected: int | None = count
    held = len(tensor.string_data) if dtype == TensorType.STRING else _numbers(tensor, dtype)
    bits, _ = HELD.get(tensor.data_type, (0, dtype))
    if tensor.HasField("raw_data"):
        expected, held = byte_count(dtype, count), len(tensor.raw_data)
        expected = -(-count * bits // _BITS) if bits else expected
    elif 0 < bits < _BITS:
        expected = -(-count * bits // _BITS)
    if expected != held:
        raise FormatError(
            f"tensor {quoted(tensor.name)} of shape {list(shape)} holds {held}, not {expected}"
        )


def _numbers(tensor: TensorProto, dtype: TensorType) -> int:
    """Count the elements in the lists of numbers: complex ones take two, narrow ones less."""
    lists = (tensor.float_data, tensor.int32_data, tensor.int64_data)
    longest = max(map(len, (*lists, tensor.double_data, tensor.uint64_data)))
    if dtype in (TensorType.COMPLEX64, TensorType.COMPLEX128):
        return longest // 2
    if dtype in PACKED:
        return element_count(tensor.dims) if longest == -(-element_count(tensor.dims) // 2) else -1
    return longest


def _outside_numbers(
    tensor: TensorProto, dtype: TensorType, shape: tuple[int, ...], folder: Path | None
) -> Array:
    """Map a tensor's numbers in another file; those of BFLOAT16 are the first halves of FLOAT32."""
    if tensor.data_type == BFLOAT16:
        halves = _outside(tensor, TensorType.UINT16, shape, folder)
        return (halves.astype(np.uint32) << 16).view(np.float32)
    if tensor.data_type in HELD:
        raise FormatError(f"tensor {quoted(tensor.name)}: its type is not read from other files")
    return _outside(tensor, dtype, shape, folder)


def _outside(
    tensor: TensorProto, dtype: TensorType, shape: tuple[int, ...], folder: Path | None
) -> Array:
    """Map a tensor's bytes in another file. Raises FormatError unless it is a plain file below the
    model's folder, reached by no link, and long enough.
    """
    said = {entry.key: entry.value for entry in tensor.external_data}
    path = _below(folder, said.get("location", ""), tensor.name)
    offset = _place(said, "offset", tensor.name)
    size = byte_count(dtype, element_count(shape))
    if size is None or dtype in PACKED:
        raise FormatError(f"tensor {quoted(tensor.name)}: no {dtype.name} is read from other files")
    length = _place(said, "length", tensor.name) if said.get("length") else size
    there = path.stat().st_size
    if length != size or offset + size > there:
        raise FormatError(
            f"tensor {quoted(tensor.name)} takes {size} bytes from {offset} on, "
            f"{quoted(path.name)} has {there} and {length} are said"
        )
    if not size:
        return np.zeros(shape, array_type(dtype))
    raw = np.memmap(path, np.uint8, "r", offset, (size,))
    return np.asarray(raw).view(array_type(dtype)).reshape(shape)


def outside_bytes(tensors: Iterable[TensorProto], folder: Path | None) -> int:
    """Count the bytes that the files beside a model take on the disk: holes in them count
    nothing.
    """
    said = {e.value for t in tensors for e in t.external_data if e.key == "location"}
    paths = [_below(folder, location, location) for location in said]
    return sum(path.stat().st_blocks * _BLOCK for path in paths)


def _below(folder: Path | None, location: str, name: str) -> Path:
    """Find a file that a model names. Raises FormatError for what is not a file below its
    folder.
    """
    parts = PurePosixPath(location.replace("\\", "/")).parts
    who = f"tensor {quoted(name)} lies in the file {quoted(location)}"
    if folder is None:
        raise FormatError(f"{who}: only models that are read by their path have such files")
    if not parts or "\0" in location or ".." in parts or Path(*parts).is_absolute():
        raise FormatError(f"{who}: only files below the model's folder are read")
    path = folder
    try:
        for part in parts:
            path = path / part
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                raise FormatError(f"{who}: links are not followed")
    except OSError as error:
        raise FormatError(f"{who}: {error.strerror or error}") from None
    if not stat.S_ISREG(mode):
        raise FormatError(f"{who}: that is no file")
    return path


def _place(said: Mapping[str, str], key: str, name: str) -> int:
    text = said.get(key) or "0"
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise FormatError(f"tensor {quoted(name)}: its {key} is {quoted(text)}")
    return int(text)


def attribute_value(attribute: AttributeProto, folder: Path | None) -> object:
    """Read an attribute's value: a number, a text, an array, a graph, a list, or the proto of a
    value that has no form here.
    """
    from onnx import AttributeProto, helper

    if attribute.type == AttributeProto.TENSOR:
        return array_of(attribute.t, folder)[0]
    value: object = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str | int | float):
        return value
    if attribute.type == AttributeProto.STRINGS:
        return [text.decode("utf-8", "replace") for text in attribute.strings]
    if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS):
        return list(attribute.ints or attribute.floats)
    return value
