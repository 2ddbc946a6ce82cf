"""CUSTOM operators of MediaPipe's models that TFLite's XNNPACK runs: pools that remember where
their results came from, pools backwards, and transposed convolutions.

Their options are the bytes of a C struct.
"""

from enum import IntEnum

from luciole.ir.errors import ShapeError, UnsupportedError
from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Quant
from luciole.ir.rules import agree, check_bias, check_window, rank, transposed_macs, window
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, Padding, TensorType


class StructPadding(IntEnum):
    """Padding as TFLite's structs have it."""

    UNKNOWN = 0
    SAME = 1
    VALID = 2

    @property
    def kind(self) -> Padding:
        """The padding. Raises UnsupportedError for an unknown one."""
        if self == StructPadding.UNKNOWN:
            raise UnsupportedError("the padding is not known")
        return Padding[self.name]


class MaxPoolingWithArgmax2D(Op, code=BuiltinOperator.CUSTOM, custom_code="MaxPoolingWithArgmax2D"):
    """The largest element of each window, and its place there.

    A place is x filter_height + y; it is an unsigned integer of 32 bits in a tensor that files call
    FLOAT32. Windows do not overlap; where they leave the image they have its last row or column.
    """

    value: Value = operand()

    padding: StructPadding = attr(default=StructPadding.UNKNOWN, dump="Padding")
    stride_width: int = attr(default=0, dump="Stride.W")
    stride_height: int = attr(default=0, dump="Stride.H")
    filter_width: int = attr(default=0, dump="Filter.W")
    filter_height: int = attr(default=0, dump="Filter.H")
    activation: int = attr(default=0, dump="Activation")

    packed = True
    result_names = ("output", "places")

    def infer_dtype(self, /) -> tuple[TensorType, TensorType]:
        return self.value.dtype, TensorType.FLOAT32

    def infer_shape(self, /) -> tuple[Shape, Shape]:
        n, h, w, c = rank(self.value, "value", 4)
        _check_windows(self)
        out_h = window(h, self.filter_height, self.stride_height, 1, self.padding.kind)
        out_w = window(w, self.filter_width, self.stride_width, 1, self.padding.kind)
        return (n, out_h, out_w, c), (n, out_h, out_w, c)


class MaxUnpooling2D(Op, code=BuiltinOperator.CUSTOM, custom_code="MaxUnpooling2D"):
    """Each element at its place in a window, zeros around it: MaxPoolingWithArgmax2D backwards."""

    value: Value = operand()
    places: Value = operand()

    padding: StructPadding = attr(default=StructPadding.UNKNOWN, dump="Padding")
    stride_width: int = attr(default=0, dump="Stride.W")
    stride_height: int = attr(default=0, dump="Stride.H")
    filter_width: int = attr(default=0, dump="Filter.W")
    filter_height: int = attr(default=0, dump="Filter.H")
    activation: int = attr(default=0, dump="Activation")

    packed = True
    infer_dtype = dtype_of("value")

    def infer_shape(self, /) -> Shape:
        n, h, w, c = rank(self.value, "value", 4)
        for axis, (a, b) in enumerate(
            zip((n, h, w, c), rank(self.places, "places", 4), strict=True)
        ):
            agree(f"axis {axis}", a, b, "value", "places")
        _check_windows(self)
        if self.padding.kind != Padding.VALID:
            raise UnsupportedError("the padding is SAME, VALID is possible")
        out_h = None if h is None else h * self.filter_height
        out_w = None if w is None else w * self.filter_width
        return (n, out_h, out_w, c)


def _check_windows(op: MaxPoolingWithArgmax2D | MaxUnpooling2D) -> None:
    """Raise UnsupportedError unless windows lie side by side."""
    strides, sizes = (op.stride_height, op.stride_width), (op.filter_height, op.filter_width)
    for stride, size in zip(strides, sizes, strict=True):
        check_window(size, stride)
    if strides != sizes or op.activation:
        raise UnsupportedError(
            f"windows are {list(sizes)}, strides {list(strides)}, activation {op.activation}; "
            "both the same and no activation are possible"
        )


class Convolution2DTransposeBias(
    Op, code=BuiltinOperator.CUSTOM, custom_code="Convolution2DTransposeBias"
):
    """2-D transposed convolution: each element adds the filter times itself to a window.

    Input NHWC, filter [O, KH, KW, C], bias [O]. SAME: extents are the input's times the stride;
    VALID: results are all that a window reaches.
    """

    input: Value = operand()
    filter: Value = operand()
    bias: Value = operand()

    padding: StructPadding = attr(default=StructPadding.UNKNOWN, dump="Padding")
    stride_width: int = attr(default=0, dump="Stride.W")
    stride_height: int = attr(default=0, dump="Stride.H")

    packed = True
    quant = Quant(weight="filter", axis=0, bias="bias")
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        n, h, w, depth = rank(self.input, "input", 4)
        o, kh, kw, channels = rank(self.filter, "filter", 4)
        agree("input channels", channels, depth, "filter", "input")
        check_bias(self.bias, o)
        out_h = reached(h, kh, self.stride_height, self.padding)
        out_w = reached(w, kw, self.stride_width, self.padding)
        return (n, out_h, out_w, o)

    def macs(self, /) -> int:
        return transposed_macs(self.input, self.filter)


def reached(
    size: int | None, kernel: int | None, stride: int, padding: StructPadding
) -> int | None:
    """Find the extent of a transposed convolution's result."""
    check_window(kernel, stride)
    if size is None or kernel is None:
        return None
    if size < 1:
        raise ShapeError(f"the input has an extent of {size}, 1 is the least")
    rest = 0 if padding.kind == Padding.SAME else max(kernel - stride, 0)
    return size * stride + rest
