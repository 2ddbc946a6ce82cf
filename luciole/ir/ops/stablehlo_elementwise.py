"""StableHLO's operators on two tensors of one shape: nothing is stretched."""

from luciole.ir.errors import ShapeError
from luciole.ir.ops.elementwise_binary import Binary
from luciole.ir.value import Shape, compatible, shape_text
from luciole.schema.enums import BuiltinOperator


class StablehloBinary(Binary):
    """Base of the family."""

    def infer_shape(self, /) -> Shape:
        x, y = self.x.shape, self.y.shape
        if not compatible(x, y):
            raise ShapeError(f"x is {shape_text(x)} and y {shape_text(y)}, both must be the same")
        return tuple(n if m is None else m for m, n in zip(x, y, strict=True))


class StablehloAdd(StablehloBinary, code=BuiltinOperator.STABLEHLO_ADD):
    """x + y; "or" of truth values."""


class StablehloMultiply(StablehloBinary, code=BuiltinOperator.STABLEHLO_MULTIPLY):
    """x * y; "and" of truth values."""


class StablehloMaximum(StablehloBinary, code=BuiltinOperator.STABLEHLO_MAXIMUM):
    """The larger of both; x where one of them is NaN, as LiteRT has it."""


class StablehloMinimum(StablehloBinary, code=BuiltinOperator.STABLEHLO_MINIMUM):
    """The smaller of both; x where one of them is NaN, as LiteRT has it."""


class StablehloAnd(StablehloBinary, code=BuiltinOperator.STABLEHLO_AND):
    """Bits that are set in both."""


class StablehloShiftLeft(
    StablehloBinary,
    code=BuiltinOperator.STABLEHLO_SHIFT_LEFT,
    options="StablehloShiftLeftOptions",
):
    """x with its bits moved up by y places, 0 where y is not one of the type's places."""
