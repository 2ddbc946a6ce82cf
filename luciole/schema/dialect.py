"""The two file formats that share these tables, and each number to which they give two meanings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from luciole.schema.enums import (
    BuiltinOperator,
    BuiltinOptions,
    FullyConnectedOptionsWeightsFormat,
    QuantizationDetails,
    TensorType,
)


@dataclass(frozen=True)
class Dialect:
    """A file format: its identifier, and where it departs from ``circle.fbs``.

    ``slots`` moves a field (table, field) to another slot, ``numbers`` gives enum members (by enum
    and name) other numbers; ``None`` means that the format has no such field or member.
    """

    name: str
    identifier: bytes
    model_version: int
    slots: Mapping[tuple[str, str], int | None] = field(default_factory=dict)
    numbers: Mapping[type[IntEnum], Mapping[str, int | None]] = field(default_factory=dict)

    def slot(self, table: str, field: str, default: int) -> int | None:
        """Find the slot of a table's field, or None when this format has no such field."""
        return self.slots.get((table, field), default)

    def number(self, member: IntEnum) -> int | None:
        """Find the number of an enum member, or None when this format has no such member."""
        return self.numbers.get(type(member), {}).get(member.name, int(member))

    def member(self, enum: type[IntEnum], number: int) -> IntEnum | None:
        """Find the enum member behind a file's number, None when this format gives it no
        meaning.
        """
        moved = self.numbers.get(enum, {})
        for name, there in moved.items():
            if there == number:
                return enum[name]
        try:
            member = enum(number)
        except ValueError:
            return None
        return None if member.name in moved else member


CIRCLE = Dialect("circle", b"CIR0", model_version=0)

_CIRCLE_TYPES = {t.name: None for t in TensorType if t < 0}
_CIRCLE_OPERATORS = {code.name: None for code in BuiltinOperator if code < 0}
_CIRCLE_OPTIONS = {
    tag.name: None for tag in BuiltinOptions if tag >= BuiltinOptions.LQConv2DOptions
}

TFLITE = Dialect(
    "tflite",
    b"TFL3",
    model_version=3,
    slots={("SubGraph", "debug_metadata_index"): 5, ("Tensor", "compression_type"): None},
    numbers={
        QuantizationDetails: {"MXQuantization": None, "BlockwiseQuantization": 2},
        TensorType: {**_CIRCLE_TYPES, "UINT4": 20},
        BuiltinOperator: _CIRCLE_OPERATORS,
        BuiltinOptions: _CIRCLE_OPTIONS,
        FullyConnectedOptionsWeightsFormat: {"SHUFFLED16x1FLOAT32": None},
    },
)

DIALECTS = (CIRCLE, TFLITE)
