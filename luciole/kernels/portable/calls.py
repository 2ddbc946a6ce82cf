"""Describe an operator in C: calls of functions, and the builder that makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from luciole.ir import Array, Graph, LucioleError, Op, TensorType, UnsupportedError, Value
from luciole.ir.ops.control_flow import Calling
from luciole.kernels.core.contract import Signature
from luciole.kernels.core.discovery import load_kernels, load_kernels_of
from luciole.kernels.core.registry import data_types

Field: TypeAlias = "int | float | Array | Mapping[str, Field] | None"
"""Value of a C struct's field: a number, a table, a struct's fields, or no table."""


@dataclass(frozen=True)
class FixedPoint:
    """Numbers as an int32 in units of 2^-places, each within ``error`` of exact arithmetic on the
    operands of layers of learned levels.
    """

    places: int
    error: float

    @property
    def unit(self) -> float:
        """Number that 1 stands for."""
        return float(2.0**-self.places)

    def __str__(self) -> str:
        return f"times 2^{self.places}, within {self.error:.1e} of exact arithmetic"


@dataclass(frozen=True)
class Vectors:
    """Registers of a machine: words of 32 bits, and whether it counts the ones in each at once."""

    words: int = 1
    counts_bits: bool = False


SCALAR = Vectors()


class Control(Enum):
    """Words around calls: a truth that is read decides; ``END`` stands for the last of either."""

    IF = "if (*{} != 0) {{"
    ELSE = "}} else {{"
    WHILE = "for (;;) {{"
    UNLESS = "if (*{} == 0) {{ break; }}"
    END = "}}"


@dataclass(frozen=True, eq=False)
class CCall:
    """A call ``function(&fields, reads..., writes..., scratch)``.

    ``fields`` are those of ``struct function`` (``layout`` where that is another one), by name;
    arrays become tables of the type that the struct declares. ``scratch`` are bytes of memory, a
    multiple of 8, that the call needs for itself. ``note`` says in a few words what people should
    know of the numbers; ``fixed`` is what numbers it writes or reads in fixed point are. ``words``
    are those of a vector that its tables are laid out for, 0 where these are the same for all.
    One with a ``control`` calls nothing, but says when those behind it run, by what it reads.
    """

    function: str
    fields: Mapping[str, Field]
    reads: tuple[Value, ...]
    writes: tuple[Value, ...]
    scratch: int = 0
    note: str = ""
    source: Op | None = field(default=None)
    fixed: FixedPoint | None = None
    words: int = 0
    layout: str = ""
    control: Control | None = None

    @property
    def struct(self) -> str:
        """The name of the struct that holds the fields."""
        return self.layout or self.function


def control(word: Control, *reads: Value) -> CCall:
    """Make a word between calls. Its operands last until it stands."""
    return CCall("", {}, reads, (), control=word)


class Called(NamedTuple):
    """The calls of a graph for given operands, and the tensors that they leave its outputs in."""

    calls: Sequence[CCall]
    outputs: Sequence[Value]


def _calls_nothing(graph: Graph, operands: Sequence[Value]) -> Called:
    raise UnsupportedError(f"graph {graph.name!r} cannot be called here")


@dataclass(frozen=True)
class PortableContext:
    """Facts for a builder besides its operator: the contents of constants, sparse and folded ones
    included, the machine's registers, the tensors that stand for variables, by their handles, and
    whether weights of few levels become codes. ``called`` makes the calls of another graph.
    """

    constants: Mapping[Value, Array]
    vectors: Vectors = SCALAR
    variables: Mapping[Value, Value] = field(default_factory=dict)
    packs_weights: bool = True
    called: Callable[[Graph, Sequence[Value]], Called] = _calls_nothing

    def constant(self, value: Value) -> Array:
        """Return the contents of a constant. Raises UnsupportedError for what is computed."""
        if value not in self.constants:
            raise UnsupportedError(f"{value.name!r} is not constant")
        return self.constants[value]

    def optional(self, value: Value | None) -> Array | None:
        """Return the contents of a constant that may be absent."""
        return None if value is None else self.constant(value)


BuildPortable = Callable[[Any, PortableContext], Sequence[CCall]]
"""``build(op, context)``: the calls of one operator, in order. Raises UnsupportedError where there
is no C form for its types or attributes.
"""

_Build = TypeVar("_Build", bound=BuildPortable)
_PORTABLE: dict[tuple[type[Op], Signature], BuildPortable] = {}


def portable(cls: type[Op], *signatures: TensorType | Signature) -> Callable[[_Build], _Build]:
    """Register the builder of an operator's C form; signatures as for ``reference``."""

    def register(build: _Build) -> _Build:
        for types in signatures:
            signature = types if isinstance(types, tuple) else (types,)
            if (cls, signature) in _PORTABLE:
                raise TypeError(f"{cls.__name__} has two C forms for {signature}")
            _PORTABLE[cls, signature] = build
        return build

    return register


def portable_calls(op: Op, context: PortableContext) -> list[CCall]:
    """Make the calls of an operator; those that call graphs take operands of any types. Raises
    UnsupportedError, naming it, where it has no C form.
    """
    load_kernels_of(type(op))
    signature = data_types(op)
    build = _PORTABLE.get((type(op), signature[:1] if isinstance(op, Calling) else signature))
    if build is None:
        types = " x ".join(t.name for t in signature)
        raise UnsupportedError(f"{op}: no C form for {types or 'no data'}", [op.kind])
    try:
        return list(build(op, context))
    except UnsupportedError as error:
        raise UnsupportedError(f"{op}: {error}", [op.kind]) from None
    except LucioleError as error:
        raise type(error)(f"{op}: {error}") from None


def portable_kinds() -> list[tuple[type[Op], Signature]]:
    """List the operators that have a C form: classes and signatures."""
    load_kernels()
    return portable_now()


def portable_now() -> list[tuple[type[Op], Signature]]:
    """List the C forms of the files that were imported so far."""
    return list(_PORTABLE)


def number_of(fields: Mapping[str, Field], name: str) -> float:
    """Return a field that is a number. Raises LucioleError for another one."""
    value = fields[name]
    if not isinstance(value, int | float | np.number):
        raise LucioleError(f"{name} is no number")
    return float(value)


def made(like: Value, what: str, dtype: TensorType) -> Value:
    """Make a tensor of a call that the graph does not have: as another one, of another type."""
    return Value(f"{like.name}_{what}", dtype, like.dims)
