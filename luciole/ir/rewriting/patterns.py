"""Find what passes look for around a value: who computes it, orders of axes, and constants of one
number.
"""

from __future__ import annotations

from typing import TypeVar

from luciole.ir.dtypes import Array
from luciole.ir.op import Op
from luciole.ir.ops.comparisons import Comparison
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.elementwise_binary import Add, Binary
from luciole.ir.ops.reduce import Reduction
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.transpose import Transpose
from luciole.ir.value import Value
from luciole.schema.enums import ActivationFunctionType, TensorType

Order = tuple[int, ...]

O = TypeVar("O", bound=Op)  # noqa: E741  # the operator class


def made_by(value: Value, kind: type[O]) -> O | None:
    """Return the operator that computes a value where it is of a class, else None."""
    producer = value.producer
    return producer.op if producer is not None and isinstance(producer.op, kind) else None


def order_of(op: Transpose) -> Order | None:
    """Read the order of axes of a TRANSPOSE: result axis i is axis order[i]; None where it is not
    constant, or none.
    """
    data = op.perm.data
    order = None if data is None else tuple(int(n) for n in data.reshape(-1))
    return order if order is not None and sorted(order) == list(range(len(order))) else None


def inverse(order: Order) -> Order:
    """Find the order that turns another one back."""
    return tuple(order.index(axis) for axis in range(len(order)))


def is_filled(value: Value, number: float) -> bool:
    """Return whether a value is a constant whose elements all are ``number``."""
    data = value.data
    return data is not None and bool((data == number).all())


def constant_of(value: Value | None) -> Array | None:
    """Read the real numbers of a constant of float32, None for any other tensor."""
    if value is None or value.dtype != TensorType.FLOAT32:
        return None
    return value.data


def number_of(value: Value | None) -> float | None:
    """Read the one number of a constant of float32, None for any other tensor."""
    data = constant_of(value)
    return float(data.reshape(-1)[0]) if data is not None and data.size == 1 else None


def integers_of(value: Value | None) -> list[int] | None:
    """Read the integers of a constant vector or scalar, None for any other tensor."""
    data = value.data if value is not None else None
    if data is None or data.dtype.kind not in "iu":
        return None
    return [int(number) for number in data.reshape(-1)]


def with_constant(op: Binary) -> tuple[Value, Value] | None:
    """Part the operand of a binary operator that is computed and the one that is constant; None
    where both are of one kind.
    """
    if op.x.is_constant == op.y.is_constant:
        return None
    return (op.y, op.x) if op.x.is_constant else (op.x, op.y)


def is_compared(value: Value) -> bool:
    """Return whether a comparison reads a value: x == MAXIMUM(x, 0) is exact in integers, where
    RELU(x) has a scale of its own.
    """
    return any(isinstance(use.op, Comparison) for use in value.users)


def is_plain(op: Op) -> bool:
    """Return whether an operator carries no activation."""
    activation = op.attributes().get("activation", ActivationFunctionType.NONE)
    return bool(activation == ActivationFunctionType.NONE)


def axes_of(op: Reduction) -> tuple[int, ...] | None:
    """Read the axes of a reduction, counted from the front, None where they are computed."""
    numbers, rank = integers_of(op.reduction_indices), len(op.input.shape)
    if numbers is None or op.input.has_open_rank:
        return None
    return tuple(sorted({number % rank for number in numbers})) if rank else None


def first_of(vector: Value, rest: int) -> Value | None:
    """Return the integer that a vector begins with where all others are ``rest``, else None."""
    joined = made_by(vector, Concatenation)
    if joined is None or len(joined.inputs) != 2 or not is_filled(joined.inputs[1], rest):
        return None
    reshape = made_by(joined.inputs[0], Reshape)
    return None if reshape is None or reshape.tensor.shape != () else reshape.tensor


def follows(value: Value, number: Value) -> bool:
    """Return whether a value is ``number`` + 1."""
    add = made_by(value, Add)
    if add is None:
        return False
    return (add.x is number and is_filled(add.y, 1)) or (add.y is number and is_filled(add.x, 1))
