"""A node of an ONNX graph as rules see it: operands that are values, attributes by their type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from luciole.importers.onnx.errors import RefusedError
from luciole.ir import Array, Value

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

T = TypeVar("T")


@dataclass
class Node:
    """One node: ``operands`` are None where they are left out, ``opset`` is the version of its
    domain's operators.
    """

    kind: str
    opset: int
    operands: Sequence[Value | None]
    outputs: Sequence[str]
    attributes: Mapping[str, object] = field(default_factory=dict)
    name: str = ""
    domain: str = ""
    proto: NodeProto | None = None

    def __getitem__(self, slot: int) -> Value:
        """Return an operand. Raises RefusedError where it is left out."""
        value = self.get(slot)
        if value is None:
            raise RefusedError(f"operand {slot} is missing")
        return value

    def get(self, slot: int) -> Value | None:
        """Return an operand, None where it is left out."""
        return self.operands[slot] if slot < len(self.operands) else None

    def has_result(self, slot: int) -> bool:
        """Return whether a result is wanted."""
        return slot < len(self.outputs) and bool(self.outputs[slot])

    def alone(self) -> None:
        """Raise RefusedError where more than the first result is wanted."""
        if any(self.outputs[1:]):
            raise RefusedError("more than its first result is used")

    def has(self, name: str) -> bool:
        """Return whether an attribute is given."""
        return name in self.attributes

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an attribute that is an integer. Raises RefusedError where it is none."""
        return self._typed(name, int, default)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an attribute that is 0 or 1."""
        return bool(self.integer(name, int(default)))

    def number(self, name: str, default: float | None = None) -> float:
        """Return an attribute that is a number."""
        return self._typed(name, float, default)

    def text(self, name: str, default: str | None = None) -> str:
        """Return an attribute that is a text."""
        return self._typed(name, str, default)

    def array(self, name: str) -> Array:
        """Return an attribute that is a tensor."""
        return self._typed(name, np.ndarray, None)

    def graph(self, name: str) -> GraphProto:
        """Return an attribute that is a graph."""
        from onnx import GraphProto

        return self._typed(name, GraphProto, None)

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """Return an attribute that is a list of integers."""
        return [self._of(name, item, int) for item in self._typed(name, list, default)]

    def numbers(self, name: str, default: Sequence[float] | None = None) -> list[float]:
        """Return an attribute that is a list of numbers."""
        return [self._of(name, item, float) for item in self._typed(name, list, default)]

    def texts(self, name: str, default: Sequence[str] | None = None) -> list[str]:
        """Return an attribute that is a list of texts."""
        return [self._of(name, item, str) for item in self._typed(name, list, default)]

    def _typed(self, name: str, kind: type[T], default: T | Sequence[object] | None) -> T:
        value = self.attributes.get(name, default)
        if value is None:
            raise RefusedError(f"attribute {name} is missing")
        return self._of(name, value, kind)

    def _of(self, name: str, value: object, kind: type[T]) -> T:
        if kind is float and isinstance(value, int):
            value = float(value)
        if kind is list and isinstance(value, tuple):
            value = list(value)
        if not isinstance(value, kind):
            raise RefusedError(f"attribute {name} is a {type(value).__name__}")
        return value
