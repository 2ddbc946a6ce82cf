"""STABLEHLO_REDUCE_WINDOW."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, dtype_of, operand, subgraph
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.stablehlo_pad import padded
from luciole.ir.rules import agree, check_window, product
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class StablehloReduceWindow(
    Op, code=BuiltinOperator.STABLEHLO_REDUCE_WINDOW, options="StablehloReduceWindowOptions"
):
    """Reduces a first value and all elements of each window by a graph of two numbers.

    The input has ``base_dilations`` - 1 first values between its elements, and is then cut off or
    filled up with first values by ``padding``, two numbers for each axis. Windows of
    ``window_dimensions`` elements that are ``window_dilations`` apart move along every axis by
    ``window_strides``.
    """

    input: Value = operand()
    init_value: Value = operand()

    window_dimensions: tuple[int, ...] = attr(default=())
    window_strides: tuple[int, ...] = attr(default=())
    base_dilations: tuple[int, ...] = attr(default=())
    window_dilations: tuple[int, ...] = attr(default=())
    padding: tuple[int, ...] = attr(default=())
    body: Graph | None = subgraph(default=None, field="body_subgraph_index")

    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        agree("elements", product(self.init_value.shape), 1, "init_value", "a first value")
        return windows_of(self, spread_out(self, self.input.shape))


def spread_out(op: StablehloReduceWindow, shape: Shape) -> Shape:
    """Compute the extents of the input with all first values around and between its elements.

    Raises ShapeError for numbers that are not one, or two, for each axis, and below 1.
    """
    for name in ("window_dimensions", "window_strides", "base_dilations", "window_dilations"):
        numbers: tuple[int, ...] = op.attributes()[name]
        agree("numbers", len(numbers), len(shape), name, "input's axes")
        if min(numbers, default=1) < 1:
            raise ShapeError(f"{name} is {list(numbers)}, nothing below 1 is possible")
    agree("numbers", len(op.padding), 2 * len(shape), "padding", "both ends of input's axes")
    return padded(shape, op.padding[::2], op.padding[1::2], [n - 1 for n in op.base_dilations])


def windows_of(op: StablehloReduceWindow, shape: Shape) -> Shape:
    """Count the windows along each axis of extents as ``spread_out`` computes them."""
    sizes = zip(shape, op.window_dimensions, op.window_strides, op.window_dilations, strict=True)
    return tuple(_count(*numbers) for numbers in sizes)


def _count(size: int | None, window: int, stride: int, dilation: int) -> int | None:
    check_window(window, stride, dilation)
    span = (window - 1) * dilation + 1
    return None if size is None else max((size - span) // stride + 1, 0)
