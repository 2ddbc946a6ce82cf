"""Drop pairs that only round."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.rewriting.edits import alias
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import made_by


@rewrite(Dequantize, on_request=True)
def remove_quantdequant(graph: Graph, op: Dequantize) -> bool:
    """DEQUANTIZE(QUANTIZE(x)) -> x: results are no longer rounded."""
    before = made_by(op.input, Quantize)
    return before is not None and alias(graph, op, before.input)
