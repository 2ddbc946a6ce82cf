"""CONCATENATION."""

from luciole.ir.errors import ShapeError
from luciole.ir.op import Op, attr, operands
from luciole.ir.rules import agree, axis
from luciole.ir.value import Shape, Value
from luciole.schema.enums import ActivationFunctionType, BuiltinOperator


class Concatenation(Op, code=BuiltinOperator.CONCATENATION, options="ConcatenationOptions"):
    """Tensors one after the other along an axis; all other extents are equal."""

    inputs: tuple[Value, ...] = operands()

    axis: int = attr(default=0)
    activation: ActivationFunctionType = attr(
        default=ActivationFunctionType.NONE, field="fused_activation_function", dump="Activation"
    )

    def infer_shape(self, /) -> Shape:
        shapes = [value.shape for value in self.inputs]
        if len({len(s) for s in shapes}) != 1:
            raise ShapeError(f"the inputs have ranks {', '.join(str(len(s)) for s in shapes)}")
        along = axis(self.axis, len(shapes[0]))
        result = list(shapes[0])
        for shape in shapes[1:]:
            for i, n in enumerate(shape):
                result[i] = _sum(result[i], n) if i == along else agree(f"axis {i}", result[i], n, "one", "another")
        return tuple(result)


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b
