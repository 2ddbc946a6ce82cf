"""GATHER."""

from luciole.ir import rules
from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Like, Quant
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class Gather(Op, code=BuiltinOperator.GATHER, options="GatherOptions"):
    """Elements picked along an axis: result[.., i, j, ..] = params[.., indices[i, j], ..].

    The first ``batch_dims`` axes of both operands go together (plus the rank of ``indices`` when
    negative). Indices run from 0, negative ones do not count from the end.
    """

    params: Value = operand()
    indices: Value = operand(dtype=INDEX)

    axis: int = attr(default=0, dump="Axis")
    batch_dims: int = attr(default=0)

    quant = Quant(result=Like("params"), table="params", input="params")
    infer_dtype = dtype_of("params")

    def infer_shape(self, /) -> Shape:
        along, batch = places(self, len(self.params.shape), len(self.indices.shape))
        return gathered(self.params.shape, self.indices.shape, along, batch)

    def infer_ints(self, known: rules.PartialInts, /) -> rules.Ints | None:
        entries, chosen = known(self.params), rules.known(self.indices)
        is_vector = len(self.params.shape) == 1 and self.batch_dims == 0
        if entries is None or chosen is None or not is_vector or chosen.ndim > 1:
            return None
        indices = [int(n) for n in chosen.reshape(-1)]
        return tuple(entries[n] if 0 <= n < len(entries) else None for n in indices)


def places(op: Gather, rank: int, length: int) -> tuple[int, int]:
    """Count the axis and the number of batch axes for operands of these ranks from the front."""
    along = rules.axis(op.axis, rank)
    batch = op.batch_dims + length if op.batch_dims < 0 else op.batch_dims
    if not 0 <= batch <= min(along, length):
        raise ShapeError(
            f"batch_dims is {op.batch_dims}, at most axis {along} and the {length} axes of indices"
        )
    return along, batch


def gathered(params: Shape, indices: Shape, along: int, batch: int) -> Shape:
    """Compute the result's shape. Raises ShapeError when the batch axes differ."""
    common = tuple(
        rules.agree(f"batch axis {i}", params[i], indices[i], "params", "indices")
        for i in range(batch)
    )
    return (*common, *params[batch:along], *indices[batch:], *params[along + 1 :])
