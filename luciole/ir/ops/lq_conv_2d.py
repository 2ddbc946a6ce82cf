"""LQ_CONV_2D: a convolution whose inputs and weights have learned levels."""

from collections.abc import Iterator

from luciole.ir.fields import attr
from luciole.ir.learned_levels import WORD
from luciole.ir.ops.lq_fully_connected import LQLayer, outputs_of
from luciole.ir.rules import agree, rank, window
from luciole.ir.value import Shape
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator, Padding


class LQConv2D(
    LQLayer,
    code=BuiltinOperator.LQ_CONV_2D,
    options="LQConv2DOptions",
    custom_code="LQConv2D",
):
    """y = activation(q(x) * W + b), with q(x) and W made of levels offset + sum_i (+-a_i).

    Input [n, h, w, c], input_scales [kx], weights_scales [o, kw], weights_binary [o, kw, kernel
    height, kernel width, ceil(c / 32)], bias [o], weights_offsets [o]; result [n, h', w', o]. q
    takes each input to the nearest level, a tie to the lower one; what SAME pads is exactly 0.
    """

    padding: Padding = attr(default=Padding.SAME, dump="Padding")
    stride_w: int = attr(default=0, dump="Stride.W")
    stride_h: int = attr(default=0, dump="Stride.H")
    dilation_w_factor: int = attr(default=1, dump="Dilation.W")
    dilation_h_factor: int = attr(default=1, dump="Dilation.H")
    input_channels: int = attr(default=0, dump="input_channels")
    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )
    input_offset: float = attr(default=0.0, dump="input_offset")

    def verify(self, /) -> Iterator[str]:
        if self.input_channels < 1:
            yield f"input_channels is {self.input_channels}, it must be at least 1"

    def weight_shape(self, /) -> tuple[int, ...]:
        dims = self.weights_binary.dims
        return (*dims[:1], *dims[2:4], self.input_channels)

    def infer_shape(self, /) -> Shape:
        n, h, w, channels = rank(self.input, "input", 4)
        _, _, kh, kw, words = rank(self.weights_binary, "weights_binary", 5)
        o = outputs_of(self)
        c = self.input_channels
        agree("channels", channels, c, "input", "input_channels")
        agree("words", words, -(-c // WORD), "weights_binary", f"input_channels {c}")
        out_h = window(h, kh, self.stride_h, self.dilation_h_factor, self.padding)
        out_w = window(w, kw, self.stride_w, self.dilation_w_factor, self.padding)
        return (n, out_h, out_w, o)
