"""GATHER_ND."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import FIRST, Like, Quant
from luciole.ir.rules import rank_of_file
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator, TensorType


class GatherNd(Op, code=BuiltinOperator.GATHER_ND, options="GatherNdOptions"):
    """Parts picked by coordinates: result[i, ..] = params[indices[i, 0], indices[i, 1], ..].

    Indices run from 0, negative ones do not count from the end.
    """

    params: Value = operand()
    indices: Value = operand(dtype=(*INDEX, TensorType.INT16))

    quant = Quant(result=Like("params"), since=FIRST)
    infer_dtype = dtype_of("params")

    def infer_shape(self, /) -> Shape:
        if not self.indices.shape:
            raise ShapeError("indices is a scalar, an axis of coordinates is needed")
        depth = self.indices.shape[-1]
        if depth is None:
            return rank_of_file(self, "the number of coordinates in indices is not known")
        return (*self.indices.shape[:-1], *left(self.params.shape, depth, "params"))


def left(shape: Shape, depth: int, name: str) -> Shape:
    """List the axes that ``depth`` coordinates leave. Raises ShapeError when there are not as
    many.
    """
    if depth > len(shape):
        raise ShapeError(f"indices has {depth} coordinates, {name} has {len(shape)} axes")
    return shape[depth:]
