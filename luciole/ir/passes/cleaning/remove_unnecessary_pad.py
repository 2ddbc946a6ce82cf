"""Drop borders of no width."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.mirror_pad import MirrorPad
from luciole.ir.ops.pad import Pad, PadV2
from luciole.ir.rewriting.edits import alias
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import is_filled


@rewrite(Pad, PadV2, MirrorPad)
def remove_unnecessary_pad(graph: Graph, op: Pad | PadV2 | MirrorPad) -> bool:
    """PAD(x, 0) -> x."""
    return is_filled(op.paddings, 0) and alias(graph, op, op.input)
