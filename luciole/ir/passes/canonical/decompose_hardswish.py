"""Spell HARD_SWISH out."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.activations import HardSwish, Relu6
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.rewriting.edits import become, constant, is_float, put
from luciole.ir.rewriting.passes import rewrite


@rewrite(HardSwish, on_request=True)
def decompose_hardswish(graph: Graph, op: HardSwish) -> bool:
    """HARD_SWISH(x) -> MUL(x, MUL(RELU6(ADD(x, 3)), 1 / 6)), for targets without HARD_SWISH."""
    if not is_float(op.features):
        return False
    three, sixth = (
        constant(graph, f"{op.name}/three", 3),
        constant(graph, f"{op.name}/sixth", 1 / 6),
    )
    moved = put(graph, op, Add(op.features, three), f"{op.name}/moved")
    cut = put(graph, op, Relu6(moved), f"{op.name}/cut")
    share = put(graph, op, Mul(cut, sixth), f"{op.name}/share")
    become(graph, op, Mul(op.features, share))
    return True
