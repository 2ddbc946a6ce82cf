"""Build the compiled steps of operators, or return the reasons why there are none."""

from __future__ import annotations

from luciole.ir import LucioleError, Op
from luciole.kernels.core import extents
from luciole.kernels.core.contract import Build, Context, NativeStep
from luciole.kernels.core.meter import explain
from luciole.kernels.core.reasons import Declined, apparent
from luciole.kernels.core.registry import find_native, find_stateful_native, no_builder


def build_native(op: Op, context: Context) -> NativeStep | Declined:
    """Build an operator's compiled step; where there is none, or its builder declines, the reason.

    Whatever the graph says of extents, the operator's rules hold for the arrays: raises ShapeError
    where they do not, and ExecutionError where a kernel would touch more than these. Both name the
    operator.
    """
    build = find_native(op)
    return Declined(no_builder(op)) if build is None else _built(build, op, context)


def build_after_run(op: Op, state: object, context: Context) -> NativeStep | Declined:
    """Build the compiled step of an operator with state that ran; as ``build_native``."""
    build = find_stateful_native(op)
    if build is None:
        return Declined(no_builder(op))
    return _built(lambda op, context: build(op, state, context), op, context)


def _built(build: Build, op: Op, context: Context) -> NativeStep | Declined:
    extents.check(op, context.operands, context.results)
    try:
        return build(op, context) or apparent(op)
    except LucioleError as error:
        raise type(error)(f"{op}: {error}") from None
    except MemoryError as error:
        explain(str(op), error)
        raise
