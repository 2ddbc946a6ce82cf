"""REDUCE_WINDOW."""

from collections.abc import Sequence

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.rules import agree, check_window, known_ints, product, rank, unknown
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, ReduceWindowFunction


class ReduceWindow(Op, code=BuiltinOperator.REDUCE_WINDOW, options="ReduceWindowOptions"):
    """Reduces a first value and all elements of each window by a function of two numbers.

    Windows of ``window_dimensions`` elements move along every axis by ``window_strides``; their
    elements are ``window_dilations`` apart, and none lies outside.
    """

    input: Value = operand()
    init_value: Value = operand()
    window_dimensions: Value = operand(dtype=INDEX)
    window_strides: Value = operand(dtype=INDEX)
    window_dilations: Value = operand(dtype=INDEX)

    reduce_function: ReduceWindowFunction = attr(default=ReduceWindowFunction.UNSUPPORTED)

    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        agree("elements", product(self.init_value.shape), 1, "init_value", "a first value")
        shape, windows = self.input.shape, []
        for name in ("window_dimensions", "window_strides", "window_dilations"):
            value = self.given_operands()[name]
            (axes,) = rank(value, name, 1)
            agree("axes", axes, len(shape), name, "input")
            windows.append(known_ints(value, name))
        sizes, strides, dilations = windows
        if sizes is None or strides is None or dilations is None:
            return unknown(len(shape))
        return reduced(shape, sizes, strides, dilations)


def reduced(
    shape: Shape, sizes: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Shape:
    """Compute the result's shape. Raises ShapeError for windows that have no element, do not move
    on, or do not fit.
    """
    return tuple(map(_extent, shape, sizes, strides, dilations))


def _extent(size: int | None, window: int, stride: int, dilation: int) -> int | None:
    check_window(window, stride, dilation)
    span = (window - 1) * dilation + 1
    if size is None:
        return None
    if size < span:
        raise ShapeError(f"a window reaches over {span} elements, the axis has {size}")
    return (size - span) // stride + 1
