"""CONCATENATION."""

from collections.abc import Sequence

from luciole.ir.fields import attr, operands
from luciole.ir.op import Op
from luciole.ir.quant import Like, Quant
from luciole.ir.rules import Ints, PartialInts, axis, by_axis, product, same_extent
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator, TensorType


class Concatenation(Op, code=BuiltinOperator.CONCATENATION, options="ConcatenationOptions"):
    """Tensors one after the other along an axis; all other extents are equal."""

    inputs: tuple[Value, ...] = operands()

    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )
    axis: int = attr(default=0, dump="Axis")

    quant = Quant(result=Like("inputs", rescaled=(TensorType.UINT8,)))

    def infer_shape(self, /) -> Shape:
        return concatenated([value.shape for value in self.inputs], self.axis)

    def infer_ints(self, known: PartialInts, /) -> Ints | None:
        parts = [known(value) or (None,) * (product(value.shape) or 0) for value in self.inputs]
        is_vector = all(len(value.shape) == 1 and None not in value.shape for value in self.inputs)
        return tuple(entry for part in parts for entry in part) if is_vector else None


def concatenated(shapes: Sequence[Shape], place: int) -> Shape:
    """Compute the shape of tensors put together. Raises ShapeError when they do not fit."""
    extents = by_axis(shapes)
    along = axis(place, len(extents))
    return tuple(_sum(e) if i == along else same_extent(i, e) for i, e in enumerate(extents))


def _sum(extents: Sequence[int | None]) -> int | None:
    known = [n for n in extents if n is not None]
    return sum(known) if len(known) == len(extents) else None
