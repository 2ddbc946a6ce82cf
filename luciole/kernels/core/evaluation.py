"""Compute operators on arrays by their reference kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, LucioleError, Op, UnsupportedError, Value
from luciole.kernels.core.contract import Reference
from luciole.kernels.core.errors import ExecutionError
from luciole.kernels.core.meter import Meter, explain
from luciole.kernels.core.registry import find_reference, find_stateful


def has_kernel(op: Op) -> bool:
    """Return whether an operator has a kernel for its operands as they are."""
    try:
        return find_stateful(op) is not None or bool(find_reference(op))
    except UnsupportedError:
        return False


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
        explain(str(op), error)
        raise ExecutionError(f"{op}: {type(error).__name__}: {error}") from error
    results = result if isinstance(result, tuple) else (result,)
    return tuple(np.asarray(array) for array in results)


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
