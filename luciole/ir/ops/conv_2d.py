"""CONV_2D."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Quant, Versions
from luciole.ir.rules import check_bias, rank, window
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator, Padding, TensorType


class Conv2D(Op, code=BuiltinOperator.CONV_2D, options="Conv2DOptions"):
    """2-D convolution. Input NHWC, filter [O, KH, KW, C], bias [O].

    C divides the input's channels; the quotient is the number of groups.
    """

    input: Value = operand()
    filter: Value = operand()
    bias: Value | None = operand(default=None)

    padding: Padding = attr(default=Padding.SAME, dump="Padding")
    stride_w: int = attr(default=0, dump="Stride.W")
    stride_h: int = attr(default=0, dump="Stride.H")
    dilation_w_factor: int = attr(default=1, dump="Dilation.W")
    dilation_h_factor: int = attr(default=1, dump="Dilation.H")
    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )
    quantized_bias_type: TensorType = attr(default=TensorType.FLOAT32)

    quant = Quant(weight="filter", axis=0, bias="bias", since=Versions(3, 4, int4=7, hybrid=5))
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        n, h, w, channels = rank(self.input, "input", 4)
        o, kh, kw, depth = rank(self.filter, "filter", 4)
        check_groups(channels, depth, o)
        check_bias(self.bias, o)
        out_h = window(h, kh, self.stride_h, self.dilation_h_factor, self.padding)
        out_w = window(w, kw, self.stride_w, self.dilation_w_factor, self.padding)
        return (n, out_h, out_w, o)


def check_groups(channels: int | None, depth: int | None, outputs: int | None) -> None:
    """Raise ShapeError unless filters of ``depth`` channels make whole groups of both sides."""
    if channels is None or depth is None:
        return
    if depth < 1 or channels < 1 or channels % depth:
        raise ShapeError(f"filter has {depth} input channels, input has {channels}")
    groups = channels // depth
    if outputs is not None and outputs % groups:
        raise ShapeError(f"filter has {outputs} output channels, not a multiple of {groups} groups")
