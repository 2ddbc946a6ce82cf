"""EMBEDDING_LOOKUP_SPARSE."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.rules import agree, known_ints, rank, unknown
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, CombinerType, TensorType

INT32 = (TensorType.INT32,)


class EmbeddingLookupSparse(
    Op, code=BuiltinOperator.EMBEDDING_LOOKUP_SPARSE, options="EmbeddingLookupSparseOptions"
):
    """Rows picked along the first axis, weighed, and combined where they come to lie.

    ``weights[i] value[ids[i]]`` is for the place that ``indices[i]`` gives, without the last
    coordinate, in a sparse tensor of ``dense_shape``. MEAN divides what is in a place by the sum of
    its weights, SQRTN by the root of the sum of their squares.
    """

    ids: Value = operand(dtype=INT32)
    indices: Value = operand(dtype=INT32)
    dense_shape: Value = operand(dtype=INT32)
    weights: Value = operand()
    value: Value = operand()

    combiner: CombinerType = attr(default=CombinerType.SUM)

    infer_dtype = dtype_of("value")

    def infer_shape(self, /) -> Shape:
        (count,), (rows, depth) = rank(self.ids, "ids", 1), rank(self.indices, "indices", 2)
        agree("elements", count, rows, "ids", "indices")
        agree("elements", count, rank(self.weights, "weights", 1)[0], "ids", "weights")
        (axes,) = rank(self.dense_shape, "dense_shape", 1)
        axes = agree("coordinates", depth, axes, "indices", "dense_shape")
        if not axes or len(self.value.shape) < 2:
            raise ShapeError(f"indices has {axes} coordinates, value {len(self.value.shape)} axes")
        return placed(self.value.shape, known_ints(self.dense_shape, "dense_shape"), axes)


def placed(value: Shape, dense: tuple[int, ...] | None, axes: int) -> Shape:
    """Compute the result's shape. Raises ShapeError for a negative extent."""
    if dense is not None and min(dense, default=0) < 0:
        raise ShapeError(f"dense_shape is {list(dense)}, nothing below 0 is possible")
    return (*(unknown(axes - 1) if dense is None else dense[:-1]), *value[1:])
