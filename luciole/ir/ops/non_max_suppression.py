"""NON_MAX_SUPPRESSION_V4 and V5: the best of boxes that overlap."""

from collections.abc import Sequence

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, operand
from luciole.ir.op import Op
from luciole.ir.rules import agree, known_ints, product, rank
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType

CORNERS = 4
"""Numbers of a box: y and x of one corner, y and x of the opposite one."""


class NonMaxSuppression(Op):
    """Base of the family. Boxes [n, 4] and scores [n]; the other operands are single numbers.

    Boxes are taken from the best score down to ``score_threshold``, of equal ones the first, unless
    what they have in common with a box taken before is ``iou_threshold`` or more of their union.
    LiteRT takes equal ones as its heap has them: 0, 2, 3, 1 of four.
    Results are padded with zeros to ``max_output_size``; ``valid_outputs`` says how many count.
    """

    boxes: Value = operand()
    scores: Value = operand()
    max_output_size: Value = operand(dtype=INDEX)
    iou_threshold: Value = operand()
    score_threshold: Value = operand()

    def infer_shape(self, /) -> tuple[Shape, ...]:
        count, corners = rank(self.boxes, "boxes", 2)
        agree("numbers of a box", corners, CORNERS, "boxes", "a box")
        (scores,) = rank(self.scores, "scores", 1)
        agree("number", scores, count, "scores", "boxes")
        for name, value in [*self.named_operands()][2:]:
            if value is not None:
                agree("elements", product(value.shape), 1, name, "a number")
        most = known_ints(self.max_output_size, "max_output_size", 1)
        chosen = (None if most is None else wanted(most),)
        return (*(chosen for _ in self.result_names[1:]), ())


class NonMaxSuppressionV4(
    NonMaxSuppression,
    code=BuiltinOperator.NON_MAX_SUPPRESSION_V4,
    options="NonMaxSuppressionV4Options",
):
    """The places of the boxes taken, and their number; INT32."""

    result_names = ("selected_indices", "valid_outputs")

    def infer_dtype(self, /) -> tuple[TensorType, ...]:
        return TensorType.INT32, TensorType.INT32


class NonMaxSuppressionV5(
    NonMaxSuppression,
    code=BuiltinOperator.NON_MAX_SUPPRESSION_V5,
    options="NonMaxSuppressionV5Options",
):
    """The places of the boxes taken, their scores, and their number.

    Where ``soft_nms_sigma`` is above 0, a box's score is multiplied by e^(-u^2 / (2 sigma)) for
    each box taken before, u being the share in common. Bodla et al., arXiv:1704.04503, section 3.
    """

    soft_nms_sigma: Value = operand()

    result_names = ("selected_indices", "selected_scores", "valid_outputs")

    def infer_dtype(self, /) -> tuple[TensorType, ...]:
        return TensorType.INT32, self.scores.dtype, TensorType.INT32


def wanted(most: Sequence[int]) -> int:
    """Read how many boxes are wanted. Raises ShapeError when it is a negative number."""
    if most[0] < 0:
        raise ShapeError(f"max_output_size is {most[0]}, it must be at least 0")
    return most[0]
