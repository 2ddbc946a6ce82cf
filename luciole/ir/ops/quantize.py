"""QUANTIZE and DEQUANTIZE: between real numbers and integers, value = scale (q - zero point)."""

from collections.abc import Iterator

from luciole.ir.op import Op, like, operand
from luciole.ir.value import Shape, Value, shape_text
from luciole.schema.enums import BuiltinOperator, TensorType


def faults(value: Value, name: str) -> Iterator[str]:
    """What is wrong with a value's scales and zero points; ``name`` says whose they are."""
    found = value.quantization
    if found is None or found.scale is None or not len(found.scale):
        yield f"{name} has no scale; one, or one per channel, is needed"
        return
    scales, points = found.scale, found.zero_point
    if not all(0 < s < float("inf") for s in scales):
        yield f"{name} has scales {min(scales)} to {max(scales)}; they must be positive and finite"
    if points is not None and len(points) not in (0, 1, len(scales)):
        yield f"{name} has {len(points)} zero points, {len(scales)} scales; one each is needed"
    if len(scales) > 1:
        yield from _channel_faults(value.shape, found.quantized_dimension, len(scales), name)


def _channel_faults(shape: Shape, axis: int, count: int, name: str) -> Iterator[str]:
    if not 0 <= axis < len(shape):
        yield f"{name} has its scales along axis {axis}; it has {len(shape)} axes"
    elif shape[axis] not in (None, count):
        fits = f"1 or {shape[axis]} fit"
        yield f"{name} {shape_text(shape)} has {count} scales along axis {axis}; {fits}"


class Quantize(Op, code=BuiltinOperator.QUANTIZE, options="QuantizeOptions"):
    """q = value / scale + zero point, saturated; the quotient is rounded half away from zero.

    Scales and zero points are the result's.
    """

    input: Value = operand()

    infer_shape = like("input")

    def infer_dtype(self, /) -> TensorType:
        return self.output.dtype if self.results else TensorType.INT8

    def verify(self, /) -> Iterator[str]:
        if self.results:
            yield from faults(self.output, "the result")


class Dequantize(Op, code=BuiltinOperator.DEQUANTIZE, options="DequantizeOptions"):
    """Real numbers from integers with the operand's scales, or from half precision."""

    input: Value = operand()

    infer_shape = like("input")

    def infer_dtype(self, /) -> TensorType:
        return TensorType.FLOAT32

    def verify(self, /) -> Iterator[str]:
        if self.input.dtype != TensorType.FLOAT16:
            yield from faults(self.input, "the input")
