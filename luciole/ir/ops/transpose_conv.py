"""TRANSPOSE_CONV."""

from collections.abc import Sequence

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Quant
from luciole.ir.rules import (
    PartialInts,
    agree,
    check_bias,
    check_window,
    known_ints,
    rank,
    transposed_macs,
)
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator, Padding, TensorType


class TransposeConv(Op, code=BuiltinOperator.TRANSPOSE_CONV, options="TransposeConvOptions"):
    """2-D transposed convolution: each element adds the filter times itself to a window.

    ``out_backprop`` is the data, [N, H, W, C]; filter [O, KH, KW, C], bias [O]. ``input_sizes`` is
    the result's shape, [N, OH, OW, O]; what the windows put outside of it is dropped. SAME padding
    is that of a convolution from the result to the data.
    """

    input_sizes: Value = operand(dtype=INDEX)
    filter: Value = operand()
    out_backprop: Value = operand()
    bias: Value | None = operand(default=None)

    padding: Padding = attr(default=Padding.SAME, dump="Padding")
    stride_w: int = attr(default=0, dump="Stride.W")
    stride_h: int = attr(default=0, dump="Stride.H")
    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )
    quantized_bias_type: TensorType = attr(default=TensorType.FLOAT32)

    quant = Quant(weight="filter", axis=0, bias="bias", input="out_backprop")
    infer_dtype = dtype_of("out_backprop")

    def infer_shape(self, /) -> Shape:
        n, _, _, depth = rank(self.out_backprop, "out_backprop", 4)
        o, kh, kw, channels = rank(self.filter, "filter", 4)
        agree("input channels", channels, depth, "filter", "out_backprop")
        check_bias(self.bias, o)
        check_window(kh, self.stride_h)
        check_window(kw, self.stride_w)
        sizes = known_ints(self.input_sizes, "input_sizes", 4)
        if sizes is not None:
            return check_sizes(sizes, n, o)
        _, height, width, _ = PartialInts()(self.input_sizes) or (None,) * 4
        return (n, height, width, o)

    def macs(self, /) -> int:
        return transposed_macs(self.out_backprop, self.filter)


def check_sizes(sizes: Sequence[int], batch: int | None, outputs: int | None) -> tuple[int, ...]:
    """Compute the result's shape. Raises ShapeError when it cannot be that of this batch and
    filter.
    """
    if min(sizes) < 0:
        raise ShapeError(f"input_sizes is {list(sizes)}, extents are 0 or more")
    agree("batch", sizes[0], batch, "input_sizes", "out_backprop")
    agree("output channels", sizes[3], outputs, "input_sizes", "filter")
    return tuple(sizes)
