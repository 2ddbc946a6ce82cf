"""Give normalizations between layers on bytes 16 bits inside: each operator of one would round the
same numbers again, a distance from their mean as coarsely as what it was taken from.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from luciole.ir import Graph, Op, TensorType, Value
from luciole.ir.ops.elementwise_binary import Add, Mul, Sub
from luciole.lquantizer.assignment.layer_format import Integers
from luciole.lquantizer.assignment.schemes import SCHEMES
from luciole.lquantizer.network.bounds import Interval, intervals_of
from luciole.lquantizer.network.places import obstacle
from luciole.lquantizer.network.uneven import insides

_FINER = SCHEMES[Integers(8, 16)]


def with_finer_norms(
    graph: Graph,
    integers: Mapping[Op, TensorType],
    ends: Container[Value],
    asked: Container[str] = (),
) -> dict[Op, TensorType]:
    """Return the types of operators on integers, INT16 for all of a normalization of INT8, but for
    those without kernels for it, those that give one of the ``ends``, and those of which somebody
    ``asked`` for bytes in one by its name.
    """
    types = dict(integers)
    blocks = [block for block in insides(graph) if len(block) > 1]
    intervals = intervals_of(graph) if blocks else {}
    for block in blocks:
        whole = block | set(_behind(block))
        if any(op.name in asked for op in whole):
            continue
        if all(types.get(op) == TensorType.INT8 for op in whole) and not any(
            _needs_bytes(op, intervals, ends) for op in whole
        ):
            types |= dict.fromkeys(whole, TensorType.INT16)
    return types


def _behind(block: set[Op]) -> Iterator[Op]:
    """Yield the operators that scale and move by constants what a normalization gives."""
    uses = [use for op in block for value in op.results for use in value.users]
    left = {use.op for use in uses} - block
    while len(left) == 1:
        (op,) = left
        if not isinstance(op, Add | Mul | Sub) or not (op.x.is_constant or op.y.is_constant):
            return
        yield op
        left = {use.op for use in op.output.users}


def _needs_bytes(op: Op, intervals: Mapping[Value, Interval], ends: Container[Value]) -> bool:
    """Return whether an operator has no kernel on INT16, whose integers reach below 0 as well."""
    values = op.given_operands()
    roots = [values[pole.operand] for pole in op.poles]
    below = any(intervals.get(value, (-1.0, 0.0))[0] < 0 for value in roots)
    return below or obstacle(op, _FINER) is not None or any(v in ends for v in op.results)
