"""CONV_3D_TRANSPOSE."""

from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.ops.conv_3d import dilations, strides
from luciole.ir.ops.fill import not_negative
from luciole.ir.quant import FIRST, Quant
from luciole.ir.rules import (
    agree,
    check_bias,
    check_window,
    known_ints,
    rank,
    transposed_macs,
    window,
)
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator, Padding


class Conv3DTranspose(Op, code=BuiltinOperator.CONV_3D_TRANSPOSE, options="Conv3DOptions"):
    """3-D transposed convolution: each element adds the filter times itself to a window.

    Input [N, D, H, W, C], filter [KD, KH, KW, O, C], bias [O]. ``output_shape`` is the result's,
    [N, OD, OH, OW, O], of which a convolution with these windows makes the input's.
    """

    output_shape: Value = operand(dtype=INDEX)
    filter: Value = operand()
    input: Value = operand()
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

    quant = Quant(weight="filter", axis=3, bias="bias", since=FIRST)
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        n, *_, channels = rank(self.input, "input", 5)
        *kernel, outputs, depth = rank(self.filter, "filter", 5)
        agree("input channels", depth, channels, "filter", "input")
        check_bias(self.bias, outputs)
        for extent, stride, dilation in zip(kernel, strides(self), dilations(self), strict=True):
            check_window(extent, stride, dilation)
        sizes = known_ints(self.output_shape, "output_shape", 5)
        if sizes is None:
            return (n, None, None, None, outputs)
        return check_output(self, sizes, self.input.shape, self.filter.shape)

    def macs(self, /) -> int:
        return transposed_macs(self.input, self.filter)


def check_output(
    op: Conv3DTranspose, sizes: tuple[int, ...], input: Shape, filter: Shape
) -> tuple[int, ...]:
    """Compute the result's shape. Raises ShapeError when no convolution makes the input of it."""
    not_negative(sizes, "output_shape")
    agree("batch", sizes[0], input[0], "output_shape", "input")
    agree("output channels", sizes[4], filter[3], "output_shape", "filter")
    steps = zip(sizes[1:4], filter[:3], strides(op), dilations(op), strict=True)
    for axis, step in enumerate(steps, 1):
        agree(f"axis {axis}", window(*step, op.padding), input[axis], "output_shape", "input")
    return sizes
