"""Share the parts of all texts of a model: indices, names that fit a line, numbers in ONE's
form.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from luciole.ir.dtypes import Array
from luciole.ir.graph import Graph, Model, all_ops
from luciole.ir.op import Op
from luciole.ir.unknown_op import UnknownOp
from luciole.ir.value import Buffer, Value
from luciole.schema import opcodes
from luciole.schema.enums import BuiltinOperator
from luciole.schema.numbers import numbers_of
from luciole.schema.printable import printable
from luciole.schema.table import Table
from luciole.schema.tables import Int32Vector, Uint8Vector, Uint16Vector

LONGEST_NAME = 4096
"""Characters of a name that a text shows; more are cut off and counted."""

NOWHERE = -1
"""The number of an absent operand, and of anything that the model does not hold."""

Code = tuple[int, str | None, int]
"""Builtin number, custom code, version: what an entry of a file's operator codes says."""


class Numbering:
    """The indices that everything in a model has in a file, as the exporter assigns them.

    Buffers that the model does not list yet follow those that it does, in order of first use.
    """

    def __init__(self, model: Model) -> None:
        self.graphs = {id(graph): i for i, graph in enumerate(model.graphs)}
        self.tensors = {v: i for graph in model.graphs for i, v in enumerate(graph.values)}
        self.buffers = list(model.buffers) or [Buffer()]
        self._places = {id(buffer): i for i, buffer in enumerate(self.buffers)}
        for value in self.tensors:
            self._place(value.buffer)
        for buffer in [b for _, b in model.metadata] + model.metadata_buffers:
            self._place(buffer)
        keys = dict.fromkeys(code_of(op) for op in all_ops(model.graphs))
        self.codes = {key: i for i, key in enumerate(keys)}

    def _place(self, buffer: Buffer | None) -> None:
        if buffer is not None and id(buffer) not in self._places:
            self._places[id(buffer)] = len(self.buffers)
            self.buffers.append(buffer)

    def graph(self, graph: Graph) -> int:
        """Find the number of a graph."""
        return self.graphs.get(id(graph), NOWHERE)

    def tensor(self, value: Value | None) -> int:
        """Find the number of a tensor within its graph."""
        return NOWHERE if value is None else self.tensors.get(value, NOWHERE)

    def buffer(self, buffer: Buffer | None) -> int:
        """Find the number of a buffer; 0, the empty one, for none."""
        return 0 if buffer is None else self._places[id(buffer)]


def code_of(op: Op) -> Code:
    """Return the key by which operators share an operator code."""
    if isinstance(op, UnknownOp):
        return op.number, op.custom, op.version
    return int(op.code), op.custom_code, op.version


def utf8(text: str) -> str:
    """Write a text that UTF-8 can hold: bytes that the file had and that are none become
    ``\\xff``.
    """
    try:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")


def one_line(text: str, longest: int = LONGEST_NAME) -> str:
    """Write a text that stays on its line whatever it holds, cut off after ``longest``
    characters.
    """
    shown = printable(utf8(text[:longest]))
    return shown if len(text) <= longest else f"{shown}... ({len(text)} characters)"


def scalar(value: Any) -> str:
    """Write a number as a C++ stream prints it (``%g``, bools as 0 and 1), an enum member by its
    name.
    """
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, float):
        return f"{value:g}"
    return str(int(value))


def plain(values: Array | Sequence[Any] | None) -> list[Any]:
    """Write a list of numbers as Python has it."""
    if values is None:
        return []
    return list(values.tolist() if isinstance(values, np.ndarray) else values)


def listed(values: Array | Sequence[Any] | None) -> str:
    """Write all of several numbers."""
    return ", ".join(map(scalar, plain(values)))


def first_named(names: Sequence[str], most: int) -> str:
    """List the first of several names, and say how many more there are."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def shortened(values: Array | Sequence[Any] | None, limit: int = 4) -> str:
    """Write several numbers; of a longer list its length and the first few, as ONE does it."""
    if values is None or len(values) <= limit:
        return listed(values)
    return f"({len(values)}) {listed(values[:limit])} ... "


def hex_bytes(data: Array | bytes | None, limit: int = 16) -> str:
    """Write the first bytes in hexadecimal, zeros as ``00``; dots follow if there are more than
    4.
    """
    if data is None:
        return ""
    shown = " ".join(f"{int(b):#x}" if b else "00" for b in data[:limit])
    return f"{shown} ..." if len(data) > 4 else shown


def code_name(builtin: int, custom: str | None) -> str | None:
    """Return circle's name of an operator number, ``CUSTOM(code)`` for a custom one, None without
    one.
    """
    if builtin == BuiltinOperator.CUSTOM:
        return "(invalid custom)" if custom is None else f"CUSTOM({one_line(custom)})"
    return BuiltinOperator(builtin).name if builtin in numbers_of(BuiltinOperator) else None


def deprecated_code(builtin: int) -> int:
    """Find the number in a file's old one-byte field for an operator number."""
    if builtin in numbers_of(BuiltinOperator):
        return opcodes.encode(builtin, 1, None).deprecated_builtin_code
    return min(builtin, BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES.value)


def index_vector(union: Table | None) -> Array | None:
    """Read the numbers behind one of the index vectors of a sparse tensor."""
    return union.values if isinstance(union, Int32Vector | Uint16Vector | Uint8Vector) else None
