"""CONV_3D."""

from typing import Protocol

from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import FIRST, Quant
from luciole.ir.rules import agree, check_bias, rank, window
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator, Padding


class Windows3D(Protocol):
    """Attributes of layers with windows of depth, height and width."""

    padding: Padding
    stride_d: int
    stride_h: int
    stride_w: int
    dilation_d_factor: int
    dilation_h_factor: int
    dilation_w_factor: int


class Conv3D(Op, code=BuiltinOperator.CONV_3D, options="Conv3DOptions"):
    """3-D convolution. Input [N, D, H, W, C], filter [KD, KH, KW, C, O], bias [O]."""

    input: Value = operand()
    filter: Value = operand()
    bias: Value | None = operand(default=None)

    padding: Padding = attr(default=Padding.SAME, dump="Padding")
    stride_d: int = attr(default=0, dump="Stride.D")
    stride_w: int = attr(default=0, dump="Stride.W")
    stride_h: int = attr(default=0, dump="Stride.H")
    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )
    dilation_d_factor: int = attr(default=1, dump="Dilation.D")
    dilation_w_factor: int = attr(default=1, dump="Dilation.W")
    dilation_h_factor: int = attr(default=1, dump="Dilation.H")

    quant = Quant(weight="filter", axis=4, bias="bias", since=FIRST)
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        n, *extents, channels = rank(self.input, "input", 5)
        *kernel, depth, outputs = rank(self.filter, "filter", 5)
        agree("input channels", depth, channels, "filter", "input")
        check_bias(self.bias, outputs)
        steps = zip(extents, kernel, strides(self), dilations(self), strict=True)
        return (n, *(window(*step, self.padding) for step in steps), outputs)


def strides(op: Windows3D) -> tuple[int, int, int]:
    """Return strides along depth, height and width."""
    return op.stride_d, op.stride_h, op.stride_w


def dilations(op: Windows3D) -> tuple[int, int, int]:
    """Return dilations along depth, height and width."""
    return op.dilation_d_factor, op.dilation_h_factor, op.dilation_w_factor
