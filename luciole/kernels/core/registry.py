"""Find the implementation that runs an operator: tables from operator class and element types to
code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from luciole.ir import Op, TensorType, UnknownOp, UnsupportedError
from luciole.ir.dtypes import MICROSCALED, NUMPY
from luciole.kernels.core import custom
from luciole.kernels.core.contract import Build, Reference, Signature, Stateful, StatefulBuild
from luciole.kernels.core.discovery import load_kernels, load_kernels_of

ANY: tuple[TensorType, ...] = tuple(NUMPY)
"""For kernels that only move elements."""

ANYTHING: tuple[TensorType, ...] = (*ANY, TensorType.STRING)
"""For references of operators that LiteRT runs on texts, too: arrays of objects, see
``luciole.ir.strings``. They have no places in the arena, so that no compiled kernel is given one.
"""

O = TypeVar("O", bound=Op)  # noqa: E741  # the operator class

Reads = Callable[[Any], object]
"""Reads an operator's scales as its kernels do; raises LucioleError for those that they refuse."""


_REFERENCE: dict[tuple[type[Op], Signature], Reference] = {}
_NATIVE: dict[tuple[type[Op], Signature], Build] = {}
_READS: dict[tuple[type[Op], Signature], Reads] = {}
_STATEFUL: dict[type[Op], Stateful] = {}
_STATEFUL_NATIVE: dict[type[Op], StatefulBuild] = {}
_T = TypeVar("_T", Reference, Build, Reads)
_F = TypeVar("_F", bound=Callable[..., Any])


def reference(
    cls: type[O], *signatures: TensorType | Signature
) -> Callable[[Reference], Reference]:
    """Register a NumPy kernel.

    A signature is one element type that all data operands share, or one type per data operand.
    Operands whose declaration fixes their type (shapes, axes, ...) do not count, nor do absent
    ones.
    """
    return _register(_REFERENCE, cls, signatures)


def stateful(cls: type[O]) -> Callable[[Stateful], Stateful]:
    """Register the kernel of an operator that calls graphs or has state, for all element types."""
    return _register_once(_STATEFUL, cls, "kernels")


def native(cls: type[O], *signatures: TensorType | Signature) -> Callable[[Build], Build]:
    """Register the builder of a compiled kernel; signatures as for ``reference``."""
    return _register(_NATIVE, cls, signatures)


def stateful_native(cls: type[O]) -> Callable[[StatefulBuild], StatefulBuild]:
    """Register the builder that compiles an operator with state once it ran."""
    return _register_once(_STATEFUL_NATIVE, cls, "builders")


def reads(cls: type[O], *signatures: TensorType | Signature) -> Callable[[_F], _F]:
    """Register the function by which kernels of integers read scales, and refuse some; signatures
    as for ``reference``.
    """
    add = _register(_READS, cls, signatures)

    def register(function: _F) -> _F:
        add(function)
        return function

    return register


def _register_once(table: dict[type[Op], _F], cls: type[Op], what: str) -> Callable[[_F], _F]:
    def register(function: _F) -> _F:
        if cls in table:
            raise TypeError(f"{cls.__name__} has two {what}")
        table[cls] = function
        return function

    return register


def _register(
    table: dict[tuple[type[Op], Signature], _T],
    cls: type[Op],
    signatures: Iterable[TensorType | Signature],
) -> Callable[[_T], _T]:
    def register(kernel: _T) -> _T:
        for types in signatures:
            signature = types if isinstance(types, tuple) else (types,)
            if (cls, signature) in table:
                raise TypeError(f"{cls.__name__} has two kernels for {_names(signature)}")
            table[cls, signature] = kernel
        return kernel

    return register


def data_types(op: Op) -> Signature:
    """Return the element types of the operands that carry data, one each; a single one where they
    all agree. Types of blocks that share scales are computed as float32.
    """
    types = [
        TensorType.FLOAT32 if value.dtype in MICROSCALED else value.dtype
        for slot, value in enumerate(op.operands)
        if value is not None and not op.operand_field(slot).dtypes
    ]
    return (types[0],) if len(set(types)) == 1 else tuple(types)


def find_reference(op: Op) -> Reference:
    """Find the NumPy kernel of an operator. Raises UnsupportedError with a list of those there
    are.
    """
    load_kernels_of(type(op))
    if isinstance(op, UnknownOp):
        kernel = custom.kernel(op)
    else:
        kernel = _REFERENCE.get((type(op), data_types(op)))
    if kernel is None:
        raise UnsupportedError(missing(op))
    return kernel


def find_stateful(op: Op) -> Stateful | None:
    """Find the kernel of an operator that calls graphs or has state, None for all others."""
    load_kernels_of(type(op))
    return _STATEFUL.get(type(op))


def find_native(op: Op) -> Build | None:
    """Find the builder of an operator's compiled kernel, None when there is none."""
    load_kernels_of(type(op))
    return _NATIVE.get((type(op), data_types(op)))


def find_reads(op: Op) -> Reads | None:
    """Find the function by which an operator's kernels read scales, None when they take all."""
    load_kernels_of(type(op))
    return _READS.get((type(op), data_types(op)))


def find_stateful_native(op: Op) -> StatefulBuild | None:
    """Find the builder of the step that an operator with state is compiled to once it ran."""
    load_kernels_of(type(op))
    return _STATEFUL_NATIVE.get(type(op))


def no_builder(op: Op) -> str:
    """Explain why an operator has no builder."""
    if find_stateful(op) is not None:
        return "it calls other graphs, or has state"
    has_others = any(cls is type(op) for cls, _ in _NATIVE)
    return f"no compiled form for {_names(data_types(op))}" if has_others else "no compiled form"


def missing(op: Op) -> str:
    """Explain why an operator has no kernel, and list the types that have one."""
    if isinstance(op, UnknownOp):
        hint = op.reason or (custom.HINT if op.custom else "")
        return f"operator {op.kind} is not supported" + (f" ({hint})" if hint else "")
    have = sorted(_names(s) for cls, s in _REFERENCE if cls is type(op))
    return f"{op}: {lack(op)}; there is {', '.join(have) or 'none'}"


def lack(op: Op) -> str:
    """Name the element types for which an operator has no kernel."""
    return f"no kernel for {_names(data_types(op))}"


def registered() -> Iterator[tuple[str, type[Op], Signature]]:
    """Yield every kernel: kind ("reference", "native" or "stateful"), operator class, signature
    (empty for stateful ones: they take all types).
    """
    load_kernels()
    yield from registered_now()


def registered_now() -> Iterator[tuple[str, type[Op], Signature]]:
    """Yield the kernels of the files that were imported so far."""
    for cls in _STATEFUL:
        yield "stateful", cls, ()
    for cls, signature in _REFERENCE:
        yield "reference", cls, signature
    for cls, signature in _NATIVE:
        yield "native", cls, signature


def _names(signature: Signature) -> str:
    return " x ".join(t.name for t in signature) or "no data"
