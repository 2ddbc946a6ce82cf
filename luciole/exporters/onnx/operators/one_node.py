"""Operators on elements that ONNX has under a name of its own, on the same operands."""

from __future__ import annotations

from luciole.exporters.onnx.building import Building
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.operators.activations import activated
from luciole.exporters.onnx.rules import elementwise
from luciole.ir import OPS, Op
from luciole.ir.ops.elementwise_binary import Pow
from luciole.ir.ops.stablehlo_elementwise import StablehloAdd, StablehloMultiply
from luciole.schema.enums import ActivationFunctionType
from luciole.schema.onnx_dialect import NODES

_NAMES: dict[type[Op], str] = {
    **{OPS[code]: name for code, name in NODES.items()},
    Pow: "Pow",
    StablehloAdd: "Add",
    StablehloMultiply: "Mul",
}


@elementwise(*_NAMES)
def one_node(k: Building, op: Op, *terms: Term) -> Term:
    """Write one node, and the fused activation behind it."""
    activation = op.attributes().get("activation", ActivationFunctionType.NONE)
    return activated(k, k.add(_NAMES[type(op)], *terms), activation)
