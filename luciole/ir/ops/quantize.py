"""QUANTIZE and DEQUANTIZE: between real numbers and integers, value = scale (q - zero point)."""

from collections.abc import Iterator

from luciole.ir.blockwise import blocks_of
from luciole.ir.dtypes import MICROSCALED
from luciole.ir.fields import like, operand
from luciole.ir.op import Op
from luciole.ir.quant import Quant
from luciole.ir.quantization import faults
from luciole.ir.value import Value
from luciole.schema.enums import BuiltinOperator, TensorType

_WITHOUT_SCALES = (TensorType.FLOAT16, *MICROSCALED)


class Quantize(Op, code=BuiltinOperator.QUANTIZE, options="QuantizeOptions"):
    """q = value / scale + zero point, saturated; the quotient is rounded half away from zero.

    Scales and zero points are the result's.
    """

    input: Value = operand()

    quant = Quant()
    infer_shape = like("input")

    def infer_dtype(self, /) -> TensorType:
        return self.output.dtype if self.results else TensorType.INT8

    def verify(self, /) -> Iterator[str]:
        if self.results and self.output.dtype not in MICROSCALED:
            yield from faults(self.output, "the result")


class Dequantize(Op, code=BuiltinOperator.DEQUANTIZE, options="DequantizeOptions"):
    """Real numbers from integers with the operand's scales, or from half precision."""

    input: Value = operand()

    infer_shape = like("input")

    def infer_dtype(self, /) -> TensorType:
        return TensorType.FLOAT32

    def verify(self, /) -> Iterator[str]:
        if self.input.dtype not in _WITHOUT_SCALES and blocks_of(self.input) is None:
            yield from faults(self.input, "the input", only_read=True)


def version_of_dequantize(dtype: TensorType, channels: bool) -> int:
    """Return the first version of a DEQUANTIZE of this element type, with a scale for each of the
    ``channels``, that TFLite's runtimes know (``tools/versioning/op_version.cc``).
    """
    since = {TensorType.UINT8: 1, TensorType.INT8: 2, TensorType.INT4: 6}
    return max(since.get(dtype, 3), 5 if channels else 1)
