"""Move RESHAPE towards the end of a network."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.activations import Rectifier
from luciole.ir.ops.elementwise_unary import Unary
from luciole.ir.ops.reshape import Reshape
from luciole.ir.rewriting.edits import is_private, put, reshape_to, same_numbers
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import made_by


@rewrite(Unary, Rectifier, on_request=True)
def forward_reshape_to_unaryop(graph: Graph, op: Unary | Rectifier) -> bool:
    """ABS(RESHAPE(x)) -> RESHAPE(ABS(x)): all that computes element by element."""
    value = op.operands[0]
    before = made_by(value, Reshape) if value is not None else None
    if value is None or before is None or not is_private(value):
        return False
    if not same_numbers(before.tensor, value) or None in op.output.shape:
        return False
    moved = put(graph, op, op.clone([before.tensor]), f"{op.name}/flat", op.output)
    return reshape_to(graph, op, moved)
