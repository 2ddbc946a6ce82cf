"""DEPTHWISE_CONV_2D."""

from collections.abc import Iterator

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Quant, Versions
from luciole.ir.rules import agree, check_bias, product, rank, window
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator, Padding


class DepthwiseConv2D(Op, code=BuiltinOperator.DEPTHWISE_CONV_2D, options="DepthwiseConv2DOptions"):
    """2-D convolution of each channel by itself, M filters per channel.

    Input NHWC, filter [1, KH, KW, C * M], bias [C * M]; channel c gives the results c * M to
    c * M + M - 1. M follows from the shapes; ``depth_multiplier`` repeats it, or is 0 where a file
    leaves it out.
    """

    input: Value = operand()
    filter: Value = operand()
    bias: Value | None = operand(default=None)

    padding: Padding = attr(default=Padding.SAME, dump="Padding")
    stride_w: int = attr(default=0, dump="Stride.W")
    stride_h: int = attr(default=0, dump="Stride.H")
    depth_multiplier: int = attr(default=0, dump="DepthMultiplier")
    dilation_w_factor: int = attr(default=1, dump="Dilation.W")
    dilation_h_factor: int = attr(default=1, dump="Dilation.H")
    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )

    quant = Quant(
        weight="filter",
        axis=3,
        bias="bias",
        since=Versions(3, 5, int4=7, hybrid=6, hybrid_int4=False),
    )
    infer_dtype = dtype_of("input")

    def verify(self, /) -> Iterator[str]:
        if len(self.input.shape) != 4 or len(self.filter.shape) != 4 or self.depth_multiplier == 0:
            return
        channels, outputs = self.input.shape[3], self.filter.shape[3]
        multiplied = product((channels, self.depth_multiplier))
        if None not in (outputs, multiplied) and outputs != multiplied:
            yield (
                f"depth_multiplier is {self.depth_multiplier}, "
                f"filter has {outputs} output channels and input {channels}"
            )

    def infer_shape(self, /) -> Shape:
        n, h, w, channels = rank(self.input, "input", 4)
        one, kh, kw, outputs = rank(self.filter, "filter", 4)
        agree("first axis", one, 1, "filter", "a depthwise filter")
        check_multiple(channels, outputs)
        check_bias(self.bias, outputs)
        out_h = window(h, kh, self.stride_h, self.dilation_h_factor, self.padding)
        out_w = window(w, kw, self.stride_w, self.dilation_w_factor, self.padding)
        return (n, out_h, out_w, outputs)


def check_multiple(channels: int | None, outputs: int | None) -> None:
    """Raise ShapeError unless each input channel has the same number of filters."""
    if channels is None or outputs is None:
        return
    if channels < 1 or outputs % channels:
        raise ShapeError(
            f"filter has {outputs} output channels, not a multiple of the input's {channels}"
        )
