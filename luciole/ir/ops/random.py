"""RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL: numbers that two seeds decide."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, operand
from luciole.ir.op import Op
from luciole.ir.ops.fill import not_negative, wanted_shape
from luciole.ir.rules import agree, known_ints, product, rank
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType


class RandomNumbers(Op):
    """Base of the family. Each run goes on where the last one ended; an interpreter with new shapes
    begins again. Where both seeds are 0, chance decides.
    """

    stateful = True

    shape: Value = operand(dtype=INDEX)

    seed: int = attr(default=0)
    seed2: int = attr(default=0)

    def infer_shape(self, /) -> Shape:
        return wanted_shape(self, self.shape, "shape")

    def infer_dtype(self, /) -> TensorType:
        return TensorType.FLOAT32


class RandomUniform(RandomNumbers, code=BuiltinOperator.RANDOM_UNIFORM, options="RandomOptions"):
    """Numbers from 0 up to 1, 1 left out, of equal probability."""


class RandomStandardNormal(
    RandomNumbers, code=BuiltinOperator.RANDOM_STANDARD_NORMAL, options="RandomOptions"
):
    """Numbers of a normal distribution with mean 0 and variance 1."""


class Multinomial(Op, code=BuiltinOperator.MULTINOMIAL, options="RandomOptions"):
    """Classes drawn with probabilities in proportion to e^logits.

    Logits [batch, classes], result [batch, ``num_samples``], INT64 unless a file says INT32. Seeds
    and runs are as for RANDOM_UNIFORM.
    """

    stateful = True

    logits: Value = operand()
    num_samples: Value = operand(dtype=INDEX)

    seed: int = attr(default=0)
    seed2: int = attr(default=0)

    def infer_shape(self, /) -> Shape:
        batch, classes = rank(self.logits, "logits", 2)
        if classes is not None:
            check_classes(classes)
        agree("elements", product(self.num_samples.shape), 1, "num_samples", "a number")
        count = known_ints(self.num_samples, "num_samples", 1)
        return (batch, None if count is None else not_negative(count, "num_samples")[0])

    def infer_dtype(self, /) -> TensorType:
        is_short = self.results and self.output.dtype == TensorType.INT32
        return TensorType.INT32 if is_short else TensorType.INT64


def check_classes(classes: int) -> None:
    """Raise ShapeError when there is nothing to draw from."""
    if classes < 1:
        raise ShapeError("logits has 0 classes, at least 1 is needed")
