"""AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D: one number for each window of each channel."""

from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Like, Quant
from luciole.ir.rules import rank, window
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator, Padding


class Pool2D(Op):
    """Base of the family. Input and result NHWC, with the same batch and channels."""

    value: Value = operand()

    padding: Padding = attr(default=Padding.SAME, dump="Padding")
    stride_w: int = attr(default=0, dump="Stride.W")
    stride_h: int = attr(default=0, dump="Stride.H")
    filter_width: int = attr(default=0, dump="Filter.W")
    filter_height: int = attr(default=0, dump="Filter.H")
    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )

    infer_dtype = dtype_of("value")

    def infer_shape(self, /) -> Shape:
        n, h, w, c = rank(self.value, "value", 4)
        out_h = window(h, self.filter_height, self.stride_h, 1, self.padding)
        out_w = window(w, self.filter_width, self.stride_w, 1, self.padding)
        return (n, out_h, out_w, c)


class AveragePool2D(Pool2D, code=BuiltinOperator.AVERAGE_POOL_2D, options="Pool2DOptions"):
    """The mean over each window; what lies in the padding does not count."""

    quant = Quant(result=Like("value", computed=True))


class MaxPool2D(Pool2D, code=BuiltinOperator.MAX_POOL_2D, options="Pool2DOptions"):
    """The largest element of each window; what lies in the padding does not count."""

    quant = Quant(result=Like("value", computed=True))


class L2Pool2D(Pool2D, code=BuiltinOperator.L2_POOL_2D, options="Pool2DOptions"):
    """The root of the mean square over each window; what lies in the padding does not count."""
