"""Let a fused activation stand as an operator of its own: ``fuse_activation_function`` undone."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.activations import FUSED
from luciole.schema.enums import ActivationFunctionType


def split_activation(graph: Graph, op: Op) -> bool:
    """Split one operator's activation off; the activation's result keeps the operator's name."""
    activation = op.attributes().get("activation", ActivationFunctionType.NONE)
    if activation not in FUSED:
        return False
    name, output = op.name, op.output
    op.activation = ActivationFunctionType.NONE  # type: ignore[attr-defined]  # it has one
    users, is_output = list(output.users), output.is_output
    new = graph.insert_after(op, FUSED[activation](output), graph.unique_name(f"{name}/linear"))
    for user, slot in users:
        user.set_operand(slot, new.output)
    if is_output:
        graph.outputs = [new.output if v is output else v for v in graph.outputs]
        graph.rename_in_signatures(output, new.output)
    output.name, new.output.name = new.output.name, name
    new.output.quantization, output.quantization = output.quantization, None
    return True
