"""Find which implementation runs an operator: tables from operator class and element
types to code.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from luciole.ir import Array, LucioleError, Op, TensorType, UnknownOp, UnsupportedError, Value
from luciole.ir.calls import Call
from luciole.ir.dtypes import MICROSCALED, NUMPY
from luciole.kernels.core import custom, extents
from luciole.kernels.core.allocation import placed
from luciole.kernels.core.errors import ExecutionError as ExecutionError
from luciole.kernels.core.meter import Meter, present
from luciole.kernels.core.reasons import Declined, apparent, decline, listening
from luciole.kernels.jit.record import Shared

Reference = Callable[..., Any]
"""``kernel(op, *operands) -> result``, or a tuple of results. Absent operands are None, a variadic
operand is a tuple. A kernel reads its operands and returns fresh arrays; only variable tensors are
written in place.
"""

Calls = Generator[Call, tuple[Array, ...], tuple[Array, ...]]
"""A kernel that has graphs run for it: it yields each call, is sent what the graph returned, and
returns its results.
"""

Stateful = Callable[..., Any]
"""``kernel(op, state, *operands)`` of an operator that is more than its operands: as a reference
kernel, but given what outlives a run (``State`` of ``luciole.kernels.core.state``), and it may be
``Calls``.
"""

Signature = tuple[TensorType, ...]
OPERATORS = "luciole.ir.ops"
_KERNELS = Path(__file__).parents[1]
_FAMILIES = "luciole.kernels.integers"

ANY: tuple[TensorType, ...] = tuple(NUMPY)
"""For kernels that only move elements."""

ANYTHING: tuple[TensorType, ...] = (*ANY, TensorType.STRING)
"""For references of such operators that LiteRT runs on texts, too: arrays of objects, see
``luciole.ir.strings``. They have no places in the arena, so that no compiled kernel is given one.
"""

O = TypeVar("O", bound=Op)  # noqa: E741  # the operator class


@dataclass(frozen=True)
class NativeStep:
    """A compiled kernel and the record of numbers it runs on.

    ``address`` is that of a ``void(int64*)`` function. ``record`` is its argument: addresses, sizes
    and parameters as int64; ``owns`` are the arrays behind those addresses, kept alive with the
    step. ``split`` gives, for a number of threads, records that do the work together (at most one
    each; none where it does not pay); without it one thread does a step alone. ``check`` is called
    behind a step that may fail, and raises LucioleError where it did. ``is_paused`` tells behind
    one that may return on the way whether it is to be called again, and raises as ``check``.
    """

    address: int
    record: Array
    owns: tuple[Array, ...] = ()
    split: Callable[[int], Sequence[Array]] | None = None
    check: Callable[[], None] | None = None
    is_paused: Callable[[], bool] | None = None

    @property
    def stands_alone(self) -> bool:
        """Whether nothing may follow in the same call."""
        return self.check is not None or self.is_paused is not None


def ranges(count: int, threads: int, least: int = 1) -> list[tuple[int, int]]:
    """Cut ``count`` pieces of work evenly for ``threads`` threads: (first, behind the last) of each
    share of at least ``least`` pieces, none where a single share is left.
    """
    parts = min(threads, count // max(least, 1))
    edges = np.linspace(0, count, parts + 1).astype(np.int64).tolist() if parts > 1 else []
    return list(pairwise(edges))


def shares(record: Shared, threads: int, least: int = 1) -> list[Array]:
    """Copy a record for each of several threads that share its pieces of work, see ``ranges``."""
    parts = ranges(record.end - record.begin, threads, least)
    return [placed(record.replace(begin=b, end=e).words()) for b, e in parts]


@dataclass(frozen=True)
class Context:
    """Arguments of a native kernel's builder: the arrays that hold each operand and result for
    good.
    """

    operands: tuple[Array | None, ...]
    results: tuple[Array, ...]


Build = Callable[[Any, Context], "NativeStep | None"]
"""``build(op, context)``: configure once per model. None declines, for a reason that ``decline``
says: the reference runs instead.

It is called by ``build_native`` alone, so that extents were checked.
"""

StatefulBuild = Callable[[Any, Any, Context], "NativeStep | None"]
"""``build(op, state, context)`` after a run: what the state holds may be relied on until a variable
moves. None declines: the ``Stateful`` kernel goes on.
"""

_REFERENCE: dict[tuple[type[Op], Signature], Reference] = {}
_NATIVE: dict[tuple[type[Op], Signature], Build] = {}
_STATEFUL: dict[type[Op], Stateful] = {}
_STATEFUL_NATIVE: dict[type[Op], StatefulBuild] = {}
_T = TypeVar("_T", Reference, Build)
_F = TypeVar("_F", bound=Callable[..., Any])
_P = ParamSpec("_P")
_R = TypeVar("_R")


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
    """Register the builder of what an operator with state is compiled to once it ran."""
    return _register_once(_STATEFUL_NATIVE, cls, "builders")


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
        for given in signatures:
            signature = given if isinstance(given, tuple) else (given,)
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
    """Find the NumPy kernel of an operator. Raises UnsupportedError that says what there is."""
    load_kernels_of(type(op))
    if isinstance(op, UnknownOp):
        found = custom.kernel(op)
    else:
        found = _REFERENCE.get((type(op), data_types(op)))
    if found is None:
        raise UnsupportedError(missing(op))
    return found


def find_stateful(op: Op) -> Stateful | None:
    """Find the kernel of an operator that calls graphs or has state, None for all others."""
    load_kernels_of(type(op))
    return _STATEFUL.get(type(op))


def find_native(op: Op) -> Build | None:
    """Find the builder of an operator's compiled kernel, None when there is none."""
    load_kernels_of(type(op))
    return _NATIVE.get((type(op), data_types(op)))


def build_native(op: Op, context: Context) -> NativeStep | Declined:
    """Build an operator's compiled step; where there is none, or its builder declines, say why.

    Whatever the graph says of extents, the operator's rules hold for the arrays: raises ShapeError
    where they do not, and ExecutionError where a kernel would touch more than these. Both name the
    operator.
    """
    build = find_native(op)
    return Declined(_not_registered(op)) if build is None else _built(build, op, context)


def has_kernel(op: Op) -> bool:
    """Tell whether an operator has a kernel for its operands as they are."""
    try:
        return find_stateful(op) is not None or bool(find_reference(op))
    except UnsupportedError:
        return False


def compiles_later(op: Op) -> bool:
    """Return whether there is something to compile an operator with state to once it ran."""
    load_kernels_of(type(op))
    return type(op) in _STATEFUL_NATIVE


def build_stateful(op: Op, state: object, context: Context) -> NativeStep | Declined:
    """Build the compiled step of an operator with state that ran; as ``build_native``."""
    build = _STATEFUL_NATIVE[type(op)]
    return _built(lambda op, context: build(op, state, context), op, context)


def _built(build: Build, op: Op, context: Context) -> NativeStep | Declined:
    extents.check(op, context.operands, context.results)
    try:
        with listening() as reasons:
            step = build(op, context)
        return step or Declined(reasons[-1] if reasons else apparent(op))
    except LucioleError as error:
        raise type(error)(f"{op}: {error}") from None
    except MemoryError as error:
        _explain(op, error)
        raise


def _not_registered(op: Op) -> str:
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
    return f"{op}: no kernel for {_names(data_types(op))}; there is {', '.join(have) or 'none'}"


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


def load_kernels_of(cls: type[Op]) -> None:
    """Import the files of kernels, in whatever folder, whose names begin with that of an operator's
    file, so that they register themselves, and those of ``integers``, which are for families; an
    operator from elsewhere registers its own.
    """
    package, _, file = cls.__module__.rpartition(".")
    if package == OPERATORS:
        _load_named(file)


@cache
def _load_named(file: str) -> None:
    for module in _modules():
        folder, _, name = module.rpartition(".")
        if f"{name}_".startswith(f"{file}_") or folder == _FAMILIES:
            importlib.import_module(module)


@cache
def load_kernels() -> None:
    """Import every file of kernels once."""
    for module in _modules():
        importlib.import_module(module)


@cache
def _modules() -> list[str]:
    """List this room's modules by where their files lie, without importing any."""
    files = sorted(_KERNELS.rglob("*.py"))
    names = (file.relative_to(_KERNELS).with_suffix("").parts for file in files)
    return [".".join(("luciole.kernels", *parts)) for parts in names if parts[-1] != "__init__"]


def call(kernel: Reference, op: Op, arrays: list[Array | None]) -> tuple[Array, ...]:
    """Run a reference kernel on arrays in operand order; always a tuple of arrays, also where NumPy
    made a scalar of one without axes.

    Whatever goes wrong inside becomes a LucioleError that names the operator.
    """
    try:
        with np.errstate(all="ignore"):  # infinities and NaN are values here, as in every runtime
            result = kernel(op, *op.arguments(arrays))
    except LucioleError as error:
        raise type(error)(f"{op}: {error}") from None
    except (ValueError, IndexError, TypeError, ArithmeticError, MemoryError) as error:
        _explain(op, error)
        raise ExecutionError(f"{op}: {type(error).__name__}: {error}") from error
    results = result if isinstance(result, tuple) else (result,)
    return tuple(np.asarray(array) for array in results)


def _explain(op: Op, error: Exception) -> None:
    """Raise MemoryLimitError where an array was refused."""
    meter = present()
    if isinstance(error, MemoryError) and meter is not None:
        meter.explain(str(op))


def _names(signature: Signature) -> str:
    return " x ".join(t.name for t in signature) or "no data"


def computed(op: Op, arrays: list[Array | None]) -> tuple[Array, ...]:
    """Run an operator's reference kernel on arrays in operand order."""
    return call(find_reference(op), op, arrays)


def evaluate(op: Op) -> tuple[Array, ...]:
    """Compute the results of an operator whose operands are all constant, by its reference
    kernel.
    """
    return computed(op, [_contents(value) for value in op.operands])


def bounded(most: int, who: str, allowed: str) -> Meter:
    """Return a context that counts arrays and refuses those beyond ``most`` bytes."""
    return Meter(most, who, allowed)


def _contents(value: Value | None) -> Array | None:
    return None if value is None else value.data


def accepted(read: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R | None:
    """Call a function; None where it refuses with a LucioleError.

    For builders, which then decline: the reference kernel refuses again when the operator runs.
    """
    try:
        return read(*args, **kwargs)
    except LucioleError as error:
        decline(str(error))
        return None
