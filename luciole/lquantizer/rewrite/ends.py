"""Choose what a network's inputs and outputs are: floats, or the integers that are inside."""

from __future__ import annotations

from luciole.ir import Graph, TensorType, Value
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.quantization import Affine
from luciole.lquantizer.assignment.schemes import ENDS


def integer_ends(graph: Graph, input_type: str, output_type: str) -> set[Value]:
    """List the inputs and outputs that are to be integers."""
    sides = (input_type, graph.inputs), (output_type, graph.outputs)
    return {value for end, side in sides if ENDS[end] != TensorType.FLOAT32 for value in side}


def set_ends(graph: Graph, input_type: str, output_type: str) -> None:
    """Set the element types of inputs and outputs that are quantized inside."""
    for value in list(graph.inputs):
        if ENDS[input_type] != TensorType.FLOAT32:
            _set_input(graph, value, ENDS[input_type])
    for value in list(graph.outputs):
        if ENDS[output_type] != TensorType.FLOAT32:
            _set_output(graph, value, ENDS[output_type])
    remove_dead(graph)


def _set_input(graph: Graph, value: Value, dtype: TensorType) -> None:
    quantizes = [use.op for use in value.users]
    if not quantizes or not all(isinstance(op, Quantize) for op in quantizes):
        return
    inside = Affine.of(quantizes[0].output, "the input")
    value.dtype, value.quantization = dtype, inside.shifted(dtype).table()
    for op in quantizes:
        if Affine.of(op.output, "the input").same_numbers(inside) and dtype == inside.dtype:
            op.output.replace_with(value)


def _set_output(graph: Graph, value: Value, dtype: TensorType) -> None:
    producer = None if value.producer is None else value.producer.op
    if not isinstance(producer, Dequantize):
        return
    inside, name = producer.input, value.name
    affine = Affine.of(inside, "the output")
    if dtype != inside.dtype:
        quantize = Quantize(inside)
        graph.insert_after(producer, quantize, graph.unique_name(f"{name}/integers"))
        quantize.output.dtype = dtype
        quantize.output.quantization = affine.shifted(dtype).table()
        inside = quantize.output
    for op, slot in list(value.users):
        op.set_operand(slot, value)
    graph.outputs = [inside if v is value else v for v in graph.outputs]
    graph.rename_in_signatures(value, inside)
    value.name = graph.unique_name(f"{name}/real")
    inside.name = name
