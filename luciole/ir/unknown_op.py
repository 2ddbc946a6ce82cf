"""Keep operators that no class describes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from luciole.ir.fields import operands
from luciole.ir.op import MOST_QUOTED, Op
from luciole.ir.value import UNRANKED, Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType
from luciole.schema.numbers import numbers_of
from luciole.schema.printable import printable, shorten
from luciole.schema.table import Table


class UnknownOp(Op):
    """An operator without a class: kept as it was read, so that it can be written again.

    ``number`` is its builtin code, ``options_table`` and ``options_2`` its tables as read,
    ``reason`` why its class does not describe it (None where there is no class), ``operands_fit``
    whether its operands are what that class takes.
    """

    inputs: tuple[Value | None, ...] = operands()
    variadic_results = True
    stateful = True

    def __init__(self, number: int, inputs: Sequence[Value | None] = (), **keywords: Any) -> None:
        self._setup()
        self.set_operands(inputs)
        self.number = number
        self.custom: str | None = keywords.get("custom_code")
        self.options_table: Table | None = keywords.get("options_table")
        self.options_2: Table | None = keywords.get("options_2")
        self.custom_options: Any = keywords.get("custom_options")
        self.custom_options_format: int = keywords.get("custom_options_format", 0)
        self.reason: str | None = keywords.get("reason")
        self.operands_fit: bool = keywords.get("operands_fit", True)

    @property
    def kind(self) -> str:
        """Circle's name, ``CUSTOM(code)`` for a custom one, the number where there is no name: on
        one line, whatever the code holds.
        """
        if self.number == BuiltinOperator.CUSTOM:
            return f"CUSTOM({printable(shorten(str(self.custom), MOST_QUOTED))})"
        known = self.number in numbers_of(BuiltinOperator)
        return BuiltinOperator(self.number).name if known else str(self.number)

    def __str__(self) -> str:
        return f"{self.kind} {shorten(self.name, MOST_QUOTED)!r}"

    def infer_shape(self, /) -> tuple[Shape, ...]:
        """Take the shapes that the file gives: nothing better is known."""
        return tuple(UNRANKED if v.has_open_rank else v.shape for v in self.results)

    def infer_dtype(self, /) -> tuple[TensorType, ...]:
        """Take the element types that the file gives."""
        return tuple(value.dtype for value in self.results)
