"""Check that arrays have the extents of an operator's own rules, which compiled kernels rely on.

A graph may call an extent unknown, or be wrong. Kernels walk arrays, so it is these that the rules
are asked about, just before a kernel is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from luciole.ir import Array, Op, ShapeError, TensorType
from luciole.ir.dtypes import NUMPY, PACKED
from luciole.ir.infer import shapes_given
from luciole.ir.value import shape_text


def check(op: Op, operands: Sequence[Array | None], results: Sequence[Array]) -> None:
    """Raise ShapeError, naming the operator, unless every operand has an array of its type, and the
    rules make the results' arrays of just these.
    """
    shapes = {}
    for slot, (value, array) in enumerate(zip(op.operands, operands, strict=True)):
        if value is not None and array is not None:
            if not _is_stored(array, value.dtype):
                _refuse(op, f"operand {_name(op, slot)!r}", array, value.dtype)
            if value.shape != array.shape:
                shapes[value] = array.shape
        elif value is not None or array is not None:
            raise ShapeError(
                f"{op}: operand {_name(op, slot)!r} is there without an array, or the reverse"
            )
    with shapes_given(shapes):
        _check_results(op, results)


def _check_results(op: Op, results: Sequence[Array]) -> None:
    expected = op.result_shapes()
    types = op.result_dtypes(len(expected))
    for value, shape, dtype, array in zip(op.results, expected, types, results, strict=True):
        if not _is_stored(array, dtype):
            _refuse(op, f"result {value.name!r}", array, dtype)
        if shape != array.shape:
            raise ShapeError(
                f"{op}: its operands make a result {shape_text(shape)}, "
                f"{value.name!r} has room for {shape_text(array.shape)}"
            )


def _is_stored(array: Array, dtype: TensorType) -> bool:
    """Return whether an array is what tensors of a type are stored as, in C order."""
    stored = PACKED[dtype][1] if dtype in PACKED else NUMPY.get(dtype)
    return array.dtype == stored and array.flags.c_contiguous


def _refuse(op: Op, what: str, array: Array, dtype: TensorType) -> NoReturn:
    order = "" if array.flags.c_contiguous else " in another order than C's"
    raise ShapeError(f"{op}: {what} is {dtype.name}, its array {array.dtype}{order}")


def _name(op: Op, slot: int) -> str:
    return list(op.named_operands())[slot][0]
