"""Drop conversions of codes to the same codes."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.rewriting.edits import alias
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import made_by


@rewrite(Quantize)
def remove_redundant_quantize(graph: Graph, op: Quantize) -> bool:
    """QUANTIZE(x) -> x, QUANTIZE(DEQUANTIZE(x)) -> x, where x has the scale and the zero point."""
    before = made_by(op.input, Dequantize)
    return alias(graph, op, op.input if before is None else before.input)
