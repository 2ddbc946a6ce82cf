"""SOFTMAX and LOG_SOFTMAX: distributions over the last axis."""

import math

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import SECOND, Contrast, Fixed, Quant
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType

BYTES = (TensorType.INT8, TensorType.UINT8)
"""Of these, SOFTMAX gives its results in 16 bits where they are declared so."""


class Distribution(Op):
    """Base of both; x below is an element of ``logits``."""

    logits: Value = operand()

    infer_dtype = dtype_of("logits")

    def infer_shape(self, /) -> Shape:
        if not self.logits.shape:
            raise ShapeError("logits is a scalar, at least one axis is needed")
        return self.logits.shape


class Softmax(Distribution, code=BuiltinOperator.SOFTMAX, options="SoftmaxOptions"):
    """e^(beta x) / sum of e^(beta x)."""

    beta: float = attr(default=0.0, dump="Beta")

    quant = Quant(
        result=Fixed(int8=(1 / 256, -128), uint8=(1 / 256, 0), int16=(1 / 32768, 0)),
        contrast=Contrast(math.log(2**9), math.log(2**16), "beta"),
    )

    def infer_dtype(self, /) -> TensorType:
        dtype = self.logits.dtype
        finer = self.results and self.output.dtype == TensorType.INT16
        return TensorType.INT16 if finer and dtype in BYTES else dtype


class LogSoftmax(Distribution, code=BuiltinOperator.LOG_SOFTMAX, options="LogSoftmaxOptions"):
    """x - log(sum of e^x)."""

    quant = Quant(result=Fixed(int8=(16 / 256, 127), uint8=(16 / 256, 255)), since=SECOND)
