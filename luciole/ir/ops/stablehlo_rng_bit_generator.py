"""STABLEHLO_RNG_BIT_GENERATOR."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, operand
from luciole.ir.op import Op
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, RngAlgorithm, TensorType


class StablehloRngBitGenerator(
    Op, code=BuiltinOperator.STABLEHLO_RNG_BIT_GENERATOR, options="StablehloRngBitGeneratorOptions"
):
    """Random bits in as many integers as the second result has in the file, and the next state.

    The state is two numbers of 64 bits, a key and a counter; PHILOX takes the upper half of its
    counter from a third one, or from the key. DEFAULT is PHILOX.
    """

    initial_state: Value = operand(dtype=(TensorType.UINT64,))

    algorithm: RngAlgorithm = attr(default=RngAlgorithm.DEFAULT)

    result_names = ("output_state", "output")

    def infer_shape(self, /) -> tuple[Shape, ...]:
        """Take the numbers' shape from the file: nothing else says it."""
        return check_state(self.algorithm, self.initial_state.shape), self._drawn().shape

    def infer_dtype(self, /) -> tuple[TensorType, ...]:
        return TensorType.UINT64, self._drawn().dtype

    def _drawn(self) -> Value:
        if len(self.results) != len(self.result_names):
            raise ShapeError("only its second result can say how many numbers are drawn")
        return self.results[1]


def check_state(algorithm: RngAlgorithm, shape: Shape) -> Shape:
    """Return the shape of a state. Raises ShapeError for one that the algorithm does not take."""
    lengths = (2,) if algorithm == RngAlgorithm.THREEFRY else (2, 3)
    if len(shape) != 1 or shape[0] not in (None, *lengths):
        most = " or ".join(map(str, lengths))
        raise ShapeError(f"initial_state has shape {list(shape)}, {algorithm.name} takes [{most}]")
    return shape
