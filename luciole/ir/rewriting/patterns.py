"""Find what passes look for around a value: who computes it, orders of axes, and constants of one
number.
"""

from __future__ import annotations

from typing import TypeVar

from luciole.ir.op import Op
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.transpose import Transpose
from luciole.ir.value import Value

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
    """Tell whether a value is a constant whose elements all are ``number``."""
    data = value.data
    return data is not None and bool((data == number).all())


def first_of(vector: Value, rest: int) -> Value | None:
    """Return the integer that a vector begins with where all others are ``rest``, else None."""
    joined = made_by(vector, Concatenation)
    if joined is None or len(joined.inputs) != 2 or not is_filled(joined.inputs[1], rest):
        return None
    reshape = made_by(joined.inputs[0], Reshape)
    return None if reshape is None or reshape.tensor.shape != () else reshape.tensor


def follows(value: Value, number: Value) -> bool:
    """Tell whether a value is ``number`` + 1."""
    add = made_by(value, Add)
    if add is None:
        return False
    return (add.x is number and is_filled(add.y, 1)) or (add.y is number and is_filled(add.x, 1))
