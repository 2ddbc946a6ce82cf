"""Bring integers to the scales of the tensors that they are moved to.

ONE gives results of operators that only move or pick elements, most of them, scales of their own,
while no kernel rescales there: a QUANTIZE does.
"""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.moved_codes import misplaced
from luciole.ir.op import Op
from luciole.ir.ops.quantize import Quantize
from luciole.ir.quant import Like
from luciole.ir.value import Value


def rescale_moved(graph: Graph, *, only_copied: bool = False) -> None:
    """Insert a QUANTIZE wherever an operator moves integers to another scale: behind it, or in
    front of it where it picks elements of several tensors; ``only_copied``: where kernels know no
    other scale.
    """
    for op in list(graph.ops):
        rule = None if op.quant is None else op.quant.result
        if not isinstance(rule, Like) or (only_copied and (rule.computed or rule.rescaled)):
            continue
        for value, result in list(misplaced(op, op.operands, op.results)):
            if value.dtype in rule.rescaled:
                continue
            if len(rule.operands) > 1 or op.operand_field(0).kind == "operands":
                _rescale_operand(graph, op, value, result)
            else:
                _rescale_result(graph, op, value, result)


def _rescale_operand(graph: Graph, op: Op, value: Value, result: Value) -> None:
    quantize = Quantize(value)
    graph.insert_before(op, quantize, graph.unique_name(f"{value.name}_Quantize"))
    quantize.output.dtype, quantize.output.quantization = result.dtype, result.quantization
    op.set_operands([quantize.output if v is value else v for v in op.operands])


def _rescale_result(graph: Graph, op: Op, value: Value, result: Value) -> None:
    """Give an operator's result its operand's scale, and a QUANTIZE behind it the result's name and
    scale.
    """
    users, quantize = list(result.users), Quantize(result)
    graph.insert_after(op, quantize, graph.unique_name(f"{result.name}_moved"))
    rescaled = quantize.output
    rescaled.dtype, rescaled.quantization = result.dtype, result.quantization
    result.quantization = value.quantization
    for user, slot in users:
        user.set_operand(slot, rescaled)
    graph.outputs = [rescaled if v is result else v for v in graph.outputs]
    graph.rename_in_signatures(result, rescaled)
    result.name, rescaled.name = rescaled.name, result.name
