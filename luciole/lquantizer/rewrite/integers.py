"""From chosen scales to operators: pairs of QUANTIZE and DEQUANTIZE around tensors, constants as
integers behind a DEQUANTIZE, and at last operators on integers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, Graph, Op, TensorType, UnsupportedError, Value
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.passes.fuse_quantization import fuse_quantization, integers_behind
from luciole.ir.passes.remove_dead import remove_dead
from luciole.ir.quantization import Affine
from luciole.ir.value import Use
from luciole.kernels.core import registry


def runs(op: Op) -> bool:
    """Tell whether an operator has a kernel for its operands as they are."""
    try:
        registry.find_reference(op)
    except UnsupportedError:
        return False
    return True


def insert_pairs(
    graph: Graph, tensors: Mapping[Value, Affine], operands: Mapping[Use, Affine]
) -> None:
    """Round every tensor that has scales where it is made, and operands that have others where
    they are read.
    """
    for value, affine in tensors.items():
        _round(graph, value, affine)
    for (op, slot), affine in operands.items():
        _round_operand(graph, op, slot, affine)


def _round(graph: Graph, value: Value, affine: Affine) -> None:
    """Let everything that uses a tensor use it rounded. An output keeps its name."""
    users, is_output, name = list(value.users), value.is_output, value.name
    if not users and not is_output:
        return
    place = 0 if value.producer is None else graph.ops.index(value.producer.op) + 1
    dequantize = _pair(graph, value, affine, place)
    for op, slot in users:
        op.set_operand(slot, dequantize.output)
    if is_output:
        graph.outputs = [dequantize.output if v is value else v for v in graph.outputs]
        graph.rename_in_signatures(value, dequantize.output)
        if not value.is_input:
            value.name = graph.unique_name(f"{name}/integers")
            dequantize.output.name = name


def _pair(graph: Graph, value: Value, affine: Affine, place: int) -> Dequantize:
    """Insert a QUANTIZE and a DEQUANTIZE in front of the operator at a place; returns the last."""
    quantize = Quantize(value)
    _insert(graph, place, quantize, f"{value.name}/integers")
    quantize.output.dtype, quantize.output.quantization = affine.dtype, affine.table()
    dequantize = Dequantize(quantize.output)
    dequantize.version = version_of_dequantize(affine.dtype)
    _insert(graph, place + 1, dequantize, f"{value.name}/rounded")
    return dequantize


def _insert(graph: Graph, place: int, op: Op, name: str) -> None:
    if place < len(graph.ops):
        graph.insert_before(graph.ops[place], op, graph.unique_name(name))
    else:
        graph.append(op, graph.unique_name(name))


def version_of_dequantize(dtype: TensorType) -> int:
    """The version of a DEQUANTIZE of this type."""
    since = {TensorType.UINT8: 1, TensorType.INT8: 2, TensorType.INT4: 6}
    return since.get(dtype, 3)


def _round_operand(graph: Graph, op: Op, slot: int, affine: Affine) -> None:
    """Let an operand be read in other scales; a constant is stored in them."""
    value = op.operands[slot]
    assert value is not None, "an operand with scales is there"
    if value.data is not None:
        set_constant(graph, Use(op, slot), affine.encode(value.data), affine)
        return
    dequantize = _pair(graph, value, affine, graph.ops.index(op))
    op.set_operand(slot, dequantize.output)


def set_constant(graph: Graph, use: Use, codes: Array, affine: Affine | None) -> None:
    """Let an operand be a constant behind a DEQUANTIZE, with the old one's name: integers, or
    numbers in half precision where there is no ``affine``.
    """
    op, slot = use
    old = op.operands[slot] if slot < len(op.operands) else None
    name = f"{op.name}/bias" if old is None else old.name
    dtype = TensorType.FLOAT16 if affine is None else affine.dtype
    value = graph.add_constant(graph.unique_name(name), codes, dtype)
    value.quantization = None if affine is None else affine.table()
    dequantize = Dequantize(value)
    dequantize.version = version_of_dequantize(value.dtype)
    if affine is not None and affine.scale.size > 1:
        dequantize.version = max(dequantize.version, 5)
    graph.insert_before(op, dequantize, graph.unique_name(f"{name}/real"))
    op.set_operand(slot, dequantize.output)


def set_weights(
    graph: Graph, op: Op, rows: Array, scales: NDArray[np.float32], dtype: TensorType
) -> None:
    """Give a layer integer weights, a row [o, n] for each output, with a scale for each or one."""
    slot, value, axis = weight_slot(op)
    shape = np.moveaxis(np.empty(value.dims, np.int8), axis, 0).shape
    codes = np.moveaxis(rows.reshape(shape), 0, axis).astype(np.int8)
    affine = Affine.channels(scales, np.zeros(len(scales)), axis if len(scales) > 1 else 0, dtype)
    set_constant(graph, Use(op, slot), np.ascontiguousarray(codes), affine)


def weight_slot(op: Op) -> tuple[int, Value, int]:
    """Find a layer's weights: the slot, what is there, and the axis of its outputs."""
    name = None if op.quant is None else op.quant.weight
    assert name is not None, "only layers have weights"
    slot, value = slot_of(op, name)
    assert value is not None, "a layer's weights are there"
    return slot, value, 0 if op.quant is None else op.quant.axis


def slot_of(op: Op, name: str) -> tuple[int, Value | None]:
    """Find an operand by its name: its slot, and what is there."""
    slot = next(f.index for f in op.operand_fields() if f.name == name)
    return slot, op.operands[slot] if slot < len(op.operands) else None


def set_bias(graph: Graph, op: Op, bias: Array) -> None:
    """Give a layer another bias [o], in float, where it may have one."""
    wanted = None if op.quant is None else op.quant.bias
    if wanted is None:
        return
    slot, old = slot_of(op, wanted)
    name = f"{op.name}/bias" if old is None else old.name
    constant = graph.add_constant(graph.unique_name(name), bias.astype(np.float32))
    op.set_operand(slot, constant)


def stored_bytes(op: Op) -> int:
    """Count the bytes of an operator's constants, those behind a DEQUANTIZE included."""
    behind = [integers_behind(v) or v for v in op.operands if v is not None]
    return sum(len(value.buffer or ()) for value in behind if value.is_constant)


def to_integers(graph: Graph) -> None:
    """Let operators compute with the integers around them, and drop what nothing uses any more."""
    fuse_quantization(graph, runs)
    remove_dead(graph)
