"""Declare the members of an operator class: operands, attributes, graphs that it calls, and rules
that follow a named operand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from luciole.ir.errors import expect
from luciole.ir.value import Shape, Value
from luciole.schema.enums import TensorType

INDEX = (TensorType.INT32, TensorType.INT64)
"""Element types of operands that hold axes, shapes and indices."""


REQUIRED: Any = object()


class HasOperands(Protocol):
    """An operator, as far as its fields are concerned."""

    operands: tuple[Value | None, ...]

    def set_operand(self, slot: int, value: Value | None) -> None:
        """Replace one operand."""

    def set_operands(self, slots: Sequence[Value | None]) -> None:
        """Replace all operands."""


@dataclass
class Field:
    """One declared member of an operator class; also the descriptor that gives access to it."""

    kind: Literal["operand", "operands", "attr"]
    default: Any = REQUIRED
    dtypes: tuple[TensorType, ...] = ()
    explicit: bool = False
    column: str | None = None
    dump: str | None = None
    is_graph: bool = False
    name: str = ""
    index: int = 0

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @property
    def schema_name(self) -> str:
        """Name of this attribute in the options table."""
        return self.column or self.name

    @property
    def label(self) -> str:
        """Name of this attribute in a dump."""
        return self.dump or self.name

    def __get__(self, op: HasOperands | None, owner: type) -> Any:
        if op is None:
            return self
        if self.kind == "operands":
            return op.operands[self.index :]
        return op.operands[self.index] if self.index < len(op.operands) else None

    def __set__(self, op: HasOperands, value: Any) -> None:
        if self.kind == "operands":
            rest = listed(value, f"{type(op).__name__}.{self.name}")
            op.set_operands([*op.operands[: self.index], *rest])
        else:
            op.set_operand(self.index, value)


# The specifiers of a definition. They return Any so that the annotation rules, and take ``default``
# by keyword because type checkers see it only there (PEP 681).
def operand(
    *, default: Any = REQUIRED, dtype: tuple[TensorType, ...] = (), explicit: bool = False
) -> Any:
    """Declare one input tensor. ``dtype`` fixes its type where it does not follow the data; an
    optional one (``default=None``) is left out of the file when it is the last, unless
    ``explicit``.
    """
    return Field("operand", default, dtypes=dtype, explicit=explicit)


def operands() -> Any:
    """Declare all remaining input tensors, as a tuple."""
    return Field("operands", ())


def attr(*, default: Any, field: str | None = None, dump: str | None = None) -> Any:
    """Declare one attribute. ``field`` is the schema's name and ``dump`` ONE's label where they
    differ.
    """
    return Field("attr", default, column=field, dump=dump)


def subgraph(*, default: Any = None, field: str | None = None, dump: str | None = None) -> Any:
    """Declare a graph of the model that the operator calls. A file has its number."""
    return Field("attr", default, column=field, dump=dump, is_graph=True)


def subgraphs(*, field: str | None = None) -> Any:
    """Declare several graphs of the model that the operator calls, as a tuple."""
    return Field("attr", (), column=field, is_graph=True)


def listed(tensors: Iterable[Any], name: str) -> list[Any]:
    """List tensors of a member of this name. Raises LucioleError for one tensor without a list."""
    expect(tensors, Iterable, f"{name}: a list of tensors")
    return list(tensors)


def for_graphs(held: Any, change: Callable[[Any], Any]) -> Any:
    """Change the value of an attribute for graphs: one (or its number, or None), or a tuple."""
    return tuple(map(change, held)) if isinstance(held, tuple) else change(held)


def dtype_of(name: str) -> Callable[[Any], TensorType]:
    """Make a dtype rule: the element type of the named operand."""

    def rule(op: Any, /) -> TensorType:
        dtype: TensorType = getattr(op, name).dtype
        return dtype

    rule.operand = name  # type: ignore[attr-defined]  # checked by __init_subclass__
    return rule


def like(name: str) -> Callable[[Any], Shape]:
    """Shape rule: the shape of the named operand."""

    def rule(op: Any, /) -> Shape:
        shape: Shape = getattr(op, name).shape
        return shape

    rule.operand = name  # type: ignore[attr-defined]  # checked by __init_subclass__
    return rule
