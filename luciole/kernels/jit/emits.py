"""Instructions that kernels call as functions: each is one function that writes LLVM's code.

Such a function takes the builder first. Its other parameters are what a kernel gives it, and their
annotations say in which type it comes, and as what:

- ``Int64``, ``Address``, ``Float32`` and others with a type of numba's: converted, LLVM's value;
- ``Operand[...]``: as it is, where its type is one of a class; LLVM's value and that type;
- ``Literal``: a Python number, known when a kernel is compiled.

A type checker reads the annotations as a kernel does: an ``Address`` is an int there. What the body
makes of it goes through llvmlite, which has no annotations.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import (
    Annotated,
    Any,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from llvmlite import ir
from numba.core import types as _numba_types
from numba.core.base import BaseContext
from numba.core.errors import TypingError
from numba.core.types import IntegerLiteral
from numba.extending import intrinsic

types: Any = _numba_types

Builder: TypeAlias = ir.IRBuilder
"""Writer of LLVM's instructions, one behind the other."""

Value: TypeAlias = ir.Value
"""Value in LLVM: a register, or a constant."""

Form: TypeAlias = ir.Type
"""A type of LLVM's, which says how a value lies in registers and memory."""

Kind: TypeAlias = _numba_types.Type
"""A type of numba's, which says what a value means."""

Single: TypeAlias = float | np.float32
"""A float32, as kernels have it."""

Int64: TypeAlias = Annotated[int, types.int64]
Address: TypeAlias = Annotated[int, types.int64]
Float32: TypeAlias = Annotated[Single, types.float32]
UInt32: TypeAlias = Annotated[int, types.uint32]
Truth: TypeAlias = Annotated[bool, types.boolean]

Literal: TypeAlias = Annotated[int, "literal"]
"""A number that is known when a kernel is compiled."""

P = ParamSpec("P")
R = TypeVar("R")
K = TypeVar("K", bound=Kind)

Generate: TypeAlias = Callable[[BaseContext, Builder, Kind, Sequence[Value]], Value]
"""Function that numba calls to have an instruction written: with its context, and a signature."""


class Operand(NamedTuple, Generic[K]):
    """A value, and numba's type of it."""

    value: Value
    kind: K


def same(first: Kind, *_: Kind) -> Kind:
    """Return the type of the first operand, for results that have it."""
    return first


def emits(emit: Callable[Concatenate[Builder, P], R], result: Kind | None = None) -> Callable[P, R]:
    """Make a function that kernels call of one that writes its code.

    What that returns is of numba's type ``result``, or else as its annotation says: nothing, or a
    value of the type that stands there, or that a function there finds from the types of the
    operands (of a ``Literal``, from the number). numba raises TypingError for an operand that is
    not what it should be.
    """
    write: Callable[..., Value] = emit

    @functools.cache
    def declared() -> tuple[dict[str, object], object]:
        """Read the types of operands and result, when the function is first used: many never
        are.
        """
        hints = get_type_hints(emit, include_extras=True)
        returned = hints.pop("return")
        _, *operands = hints.items()
        return dict(operands), returned if result is None else Annotated[Value, result]

    @functools.wraps(emit)  # numba finds the operands' names by it, behind the builder
    def typed(_: object, *operands: Kind) -> tuple[Kind, Generate]:
        hints, returned = declared()
        kinds = [
            _accepted(f"{emit.__name__}: {name}", hint, kind)
            for (name, hint), kind in zip(hints.items(), operands, strict=True)
        ]
        result_kind = _result(returned, kinds)

        def generate(
            context: BaseContext, builder: Builder, _: Kind, values: Sequence[Value]
        ) -> Value:
            value = write(builder, *map(_operand, hints.values(), kinds, values))
            return context.get_dummy_value() if result_kind == types.void else value

        return result_kind(*kinds), generate

    has_literals = any(hint in ("Literal", Literal) for hint in emit.__annotations__.values())
    made: Callable[P, R] = intrinsic(prefer_literal=has_literals)(typed)
    return made


def _accepted(who: str, hint: object, kind: Kind) -> Kind:
    """Return the type in which an operand is taken."""
    if hint == Literal:
        return _required(who, kind, IntegerLiteral, "a number known when a kernel is compiled")
    if get_origin(hint) is Operand:
        (expected,) = get_args(hint)
        return _required(who, kind, expected, f"a value of a {expected.__name__}")
    (declared,) = get_args(hint)[1:]
    return declared if isinstance(declared, types.Type) else types.unliteral(kind)


def _required(who: str, kind: Kind, expected: type[Kind], right: str) -> Kind:
    if not isinstance(kind, expected):
        raise TypingError(f"{who} is of type {kind}: {right} is possible")
    return kind


def _result(hint: object, kinds: Sequence[Kind]) -> Kind:
    """Return the type of a result."""
    if hint is type(None):
        return types.void
    (declared,) = get_args(hint)[1:]
    return declared if isinstance(declared, types.Type) else declared(*map(_known, kinds))


def _known(kind: Kind) -> object:
    """Return the number of a ``Literal``'s type, else the type."""
    return kind.literal_value if isinstance(kind, IntegerLiteral) else kind


def _operand(hint: object, kind: Kind, value: Value) -> object:
    """Return an operand as the function that writes code takes it."""
    if hint == Literal:
        return _known(kind)
    return Operand(value, kind) if get_origin(hint) is Operand else value
