"""Files larger than a flatbuffer can be: constants lie behind the tables, which say where."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from luciole.schema.dialect import Dialect
from luciole.schema.tables import Buffer, Model
from luciole.schema.writer import LARGEST, write

ALIGNMENT = 16
"""Bytes: where TFLite's tools begin a constant."""
ROOM_FOR_TABLES = 64 << 20
"""Bytes of a flatbuffer that are kept for everything that is no constant."""
_SMALLEST = 16
"""Bytes from which a constant is moved. TFLite does not look behind the tables for one byte."""


def parts(model: Model, dialect: Dialect, use_buffer_offset: bool = False) -> Iterator[memoryview]:
    """Give a model file's bytes in parts, to be joined or written one after the other.

    Tensors' constants lie in the flatbuffer, or behind it where they are too large for that, and
    with ``use_buffer_offset``: each at a multiple of 16 bytes, as TFLite's converter has it.
    Nothing large is copied. Raises FormatError for what the format cannot hold.
    """
    if not use_buffer_offset and _total(model) <= LARGEST - ROOM_FOR_TABLES:
        yield memoryview(write(model, dialect))
        return
    moved = {number: data for number, data in _constants(model) if data.nbytes >= _SMALLEST}
    # an offset takes as many bytes as any other: a first writing tells where the tables end
    end = len(write(_with_offsets(model, moved, 0), dialect))
    yield memoryview(write(_with_offsets(model, moved, end), dialect))
    for data in moved.values():
        yield memoryview(bytes(-end % ALIGNMENT))
        yield np.ascontiguousarray(data).data
        end += -end % ALIGNMENT + data.nbytes


def _total(model: Model) -> int:
    return sum(b.data.nbytes for b in model.buffers or () if b.data is not None)


def _constants(model: Model) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """List the numbers and contents of buffers that tensors have. Metadata stay where all tools
    look.
    """
    graphs = model.subgraphs or ()
    used = {tensor.buffer for graph in graphs for tensor in graph.tensors or ()}
    for number, buffer in enumerate(model.buffers or ()):
        if number in used and buffer.data is not None:
            yield number, buffer.data


def _with_offsets(model: Model, moved: dict[int, NDArray[np.uint8]], end: int) -> Model:
    """Copy tables without the constants that are moved behind byte ``end``."""
    buffers = list(model.buffers or ())
    for number, data in moved.items():
        end += -end % ALIGNMENT
        buffers[number] = Buffer(offset=end or ALIGNMENT, size=data.nbytes)
        end += data.nbytes
    return Model(**{**vars(model), "buffers": buffers})
