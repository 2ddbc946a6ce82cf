"""Drop notes on ranges."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.fake_quant import FakeQuant
from luciole.ir.rewriting.edits import alias
from luciole.ir.rewriting.passes import rewrite


@rewrite(FakeQuant, on_request=True)
def remove_fakequant(graph: Graph, op: FakeQuant) -> bool:
    """FAKE_QUANT(x) -> x: results are no longer rounded and cut off."""
    return alias(graph, op, op.inputs)
