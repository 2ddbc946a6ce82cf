"""BCQ_GATHER: rows picked from a matrix whose elements are sums of scaled signs."""

from collections.abc import Iterator

from luciole.ir import rules
from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.learned_levels import WORD
from luciole.ir.op import Op
from luciole.ir.ops.bcq_fully_connected import is_whole, known_rows, not_whole
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType


class BCQGather(Op, code=BuiltinOperator.BCQ_GATHER, options="BCQGatherOptions"):
    """Rows (``axis`` 0) or columns (1) of the matrix [rows, hidden] that the codes stand for.

    Scales, signs and clusters are those of BCQ_FULLY_CONNECTED. ``indices`` has at most 2 axes,
    which take the place of the axis; negative ones do not count from the end.
    """

    input_scales: Value = operand()
    input_binary: Value = operand(dtype=(TensorType.INT32,))
    indices: Value = operand(dtype=INDEX)
    input_clusters: Value = operand(dtype=(TensorType.INT32,))

    axis: int = attr(default=0, dump="axis")
    input_hidden_size: int = attr(default=0, dump="weights_hidden_size")

    infer_dtype = dtype_of("input_scales")

    def verify(self, /) -> Iterator[str]:
        if not is_whole(self.input_hidden_size):
            yield not_whole("input_hidden_size", self.input_hidden_size)

    def infer_shape(self, /) -> Shape:
        hidden = self.input_hidden_size
        if not is_whole(hidden):
            raise ShapeError(not_whole("input_hidden_size", hidden))
        along = rules.axis(self.axis, 2)
        picked = rules.rank(self.indices, "indices", 0, 1, 2)
        (scales,) = rules.rank(self.input_scales, "input_scales", 1)
        planes, words = rules.rank(self.input_binary, "input_binary", 2)
        rules.agree("words", words, hidden // WORD, "input_binary", f"input_hidden_size {hidden}")
        planes = rules.agree("rows of planes", planes, scales, "input_binary", "input_scales")
        rows = known_rows(self.input_clusters, planes)
        return (rows, *picked) if along else (*picked, hidden)
