"""Check that arrays have the extents of an operator's own rules, which compiled kernels rely on.

A graph may call an extent unknown, or be wrong. Kernels walk arrays, so it is these that the rules
are asked about, just before a kernel is built.
"""

from __future__ import annotations

from collections.abc import Sequence

from luciole.ir import Array, Op, ShapeError, TensorType
from luciole.ir.dtypes import NUMPY, PACKED
from luciole.ir.infer import shapes_given
from luciole.ir.value import shape_text


def check(op: Op, operands: Sequence[Array | None], results: Sequence[Array]) -> None:
    """Raise ShapeError, naming the operator, unless every operand has an array of its type, and the
    rules make the results' arrays of just these.
    """
    shapes = {}
    for (name, value), array in zip(op.named_operands(), operands, strict=True):
        if value is not None and array is not None:
            _check_type(op, f"operand {name!r}", array, value.dtype)
            shapes[value] = array.shape
        elif value is not None or array is not None:
            raise ShapeError(f"{op}: operand {name!r} is there without an array, or the reverse")
    with shapes_given(shapes):
        expected = zip(op.result_shapes(), op.result_dtypes(), results, strict=True)
        for value, (shape, dtype, array) in zip(op.results, expected, strict=True):
            _check_type(op, f"result {value.name!r}", array, dtype)
            if shape != array.shape:
                raise ShapeError(
                    f"{op}: its operands make a result {shape_text(shape)}, "
                    f"{value.name!r} has room for {shape_text(array.shape)}"
                )


def _check_type(op: Op, what: str, array: Array, dtype: TensorType) -> None:
    stored = PACKED[dtype][1] if dtype in PACKED else NUMPY.get(dtype)
    if array.dtype != stored or not array.flags.c_contiguous:
        order = "" if array.flags.c_contiguous else " in another order than C's"
        raise ShapeError(f"{op}: {what} is {dtype.name}, its array {array.dtype}{order}")
