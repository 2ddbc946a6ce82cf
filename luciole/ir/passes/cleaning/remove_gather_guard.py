"""Drop what keeps indices in their range."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.elementwise_binary import Add, FloorMod
from luciole.ir.ops.gather import Gather
from luciole.ir.rewriting.edits import become
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import integers_of, made_by
from luciole.ir.value import Value


@rewrite(Gather, on_request=True)
def remove_gather_guard(graph: Graph, op: Gather) -> bool:
    """GATHER(x, FLOOR_MOD(ADD(i, n), n)) -> GATHER(x, i): no index is to be below 0.

    n is the extent of the axis that is gathered from.
    """
    indices = _unguarded(op.indices, op.params.shape[op.axis])
    if indices is None:
        return False
    become(graph, op, op.clone([op.params, indices]))
    return True


def _unguarded(indices: Value, extent: int | None) -> Value | None:
    guard = made_by(indices, FloorMod)
    moved = None if guard is None else made_by(guard.x, Add)
    if guard is None or moved is None or integers_of(guard.y) != [extent]:
        return None
    pairs = ((moved.x, moved.y), (moved.y, moved.x))
    return next((value for value, shift in pairs if integers_of(shift) == [extent]), None)
