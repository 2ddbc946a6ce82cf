"""From chosen scales to operators: pairs of QUANTIZE and DEQUANTIZE around tensors, constants as
integers behind a DEQUANTIZE, and at last operators on integers.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, Graph, Op, TensorType, UnsupportedError, Value
from luciole.ir.analysis.constancy import constant_bytes
from luciole.ir.analysis.decoded import is_decoder
from luciole.ir.blockwise import set_blocks
from luciole.ir.dtypes import array_type
from luciole.ir.ops.quantize import Dequantize, Quantize, version_of_dequantize
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.passes.cleaning.remove_duplicate_const import remove_duplicate_const
from luciole.ir.passes.fuse_quantization import fuse_quantization, integers_behind
from luciole.ir.quantization import Affine
from luciole.ir.value import Use
from luciole.kernels.core import registry
from luciole.lquantizer.rewrite.placing import behind, insert_at, read_instead
from luciole.lquantizer.rewrite.recurrent import encode_layers


def runs(op: Op) -> bool:
    """Check whether an operator has a kernel for its operands as they are."""
    try:
        registry.find_reference(op)
    except UnsupportedError:
        return False
    return True


def insert_pairs(
    graph: Graph,
    tensors: Mapping[Value, Affine],
    operands: Mapping[Use, Affine],
    integers: Container[Op],
    ends: Container[Value] = (),
) -> None:
    """Round every tensor that has scales where it is made, and operands that have others where
    they are read. What is not made by an operator on ``integers`` is rounded for those alone,
    unless it is one of the graph's ``ends`` that are to be integers.
    """
    for value, affine in tensors.items():
        made = value.producer is not None and value.producer.op in integers
        _round(graph, value, affine, None if made or value in ends else integers)
    left = dict(operands)
    while left:
        for use in _round_operand(graph, next(iter(left)), left):
            del left[use]


def _round(graph: Graph, value: Value, affine: Affine, only: Container[Op] | None) -> None:
    """Round a tensor for everything that uses it, or for ``only`` some operators. An output keeps
    its name.
    """
    users = [use for use in value.users if only is None or use.op in only]
    if not users and not (only is None and value.is_output):
        return
    dequantize = insert_pair(graph, value, affine, behind(graph, value))
    if only is None:
        read_instead(graph, users, value, dequantize.output, f"{value.name}/integers")
    for op, slot in users:
        op.set_operand(slot, dequantize.output)


def insert_pair(graph: Graph, value: Value, affine: Affine, place: int) -> Dequantize:
    """Insert a QUANTIZE and a DEQUANTIZE in front of the operator at a place; returns the last."""
    quantize = Quantize(value)
    insert_at(graph, place, quantize, f"{value.name}/integers")
    quantize.output.dtype, quantize.output.quantization = affine.dtype, affine.table()
    dequantize = Dequantize(quantize.output)
    dequantize.version = version_of_dequantize(affine.dtype, False)
    insert_at(graph, place + 1, dequantize, f"{value.name}/rounded")
    return dequantize


def _round_operand(graph: Graph, use: Use, operands: Mapping[Use, Affine]) -> list[Use]:
    """Round an operand to other scales, and return the places that read it in these from then on;
    a constant is stored in them.
    """
    value, affine = use.op.required(use.slot), operands[use]
    if value.data is not None:
        set_constant(graph, use, affine.encode(value.data), affine)
        return [use]
    alike = [one for one in value.users if one in operands and _is_same(operands[one], affine)]
    place = min(graph.ops.index(one.op) for one in alike)
    dequantize = insert_pair(graph, value, affine, place)
    for op, slot in alike:
        op.set_operand(slot, dequantize.output)
    return alike


def _is_same(one: Affine, other: Affine) -> bool:
    return one.dtype == other.dtype and one.same_numbers(other)


def set_constant(graph: Graph, use: Use, codes: Array, affine: Affine | None) -> None:
    """Replace an operand by a constant behind a DEQUANTIZE, with the old one's name: integers, or
    numbers in half precision where there is no ``affine``.
    """
    op, slot = use
    old = op.operands[slot] if slot < len(op.operands) else None
    name = f"{op.name}/bias" if old is None else old.name
    dtype = TensorType.FLOAT16 if affine is None else affine.dtype
    value = graph.add_constant(graph.unique_name(name), codes, dtype)
    value.quantization = None if affine is None else affine.table()
    dequantize = Dequantize(value)
    channels = affine is not None and affine.scale.size > 1
    dequantize.version = version_of_dequantize(value.dtype, channels)
    graph.insert_before(op, dequantize, graph.unique_name(f"{name}/real"))
    op.set_operand(slot, dequantize.output)


def set_weights(
    graph: Graph, op: Op, rows: Array, scales: NDArray[np.float32], dtype: TensorType
) -> None:
    """Give a layer integer weights, a row [o, n] for each output, with a scale for each or one; or
    one for each block of a row [o, blocks].
    """
    slot, value, axis = weight_slot(op)
    if scales.ndim > 1:
        _set_blocks(graph, Use(op, slot), rows, scales, dtype)
        return
    shape = np.moveaxis(np.empty(value.dims, np.int8), axis, 0).shape
    whole = np.moveaxis(rows.reshape(shape), 0, axis)
    set_constant(graph, Use(op, slot), *weight_codes(whole, scales, axis, dtype))


def _set_blocks(
    graph: Graph, use: Use, rows: Array, scales: NDArray[np.float32], dtype: TensorType
) -> None:
    """Replace an operand by rows [o, n] of codes behind a DEQUANTIZE, in blocks with scales of half
    precision.
    """
    op, slot = use
    name = op.required(slot).name
    value = graph.add_constant(graph.unique_name(name), rows, dtype)
    halves = graph.add_constant(
        graph.unique_name(f"{name}/scales"), scales.astype(np.float16), TensorType.FLOAT16
    )
    set_blocks(value, halves)
    dequantize = graph.insert_before(op, Dequantize(value), graph.unique_name(f"{name}/real"))
    op.set_operand(slot, dequantize.output)


def weight_codes(
    codes: Array, scales: NDArray[np.float32], axis: int, dtype: TensorType
) -> tuple[Array, Affine]:
    """Store codes around 0 in a type, and say what they stand for: with a scale for each index of
    the axis, or one. Those without a sign are around 128.
    """
    point = 128 if dtype == TensorType.UINT8 else 0
    points = np.full(len(scales), point)
    affine = Affine.channels(scales, points, axis if len(scales) > 1 else 0, dtype)
    stored = codes.astype(np.int16) + point
    return np.ascontiguousarray(stored, array_type(dtype)), affine


def weight_slot(op: Op) -> tuple[int, Value, int]:
    """Find a layer's weights: the slot, what is there, and the axis of its outputs."""
    quant = op.quantized_as
    slot, _ = slot_of(op, quant.stored or "")
    return slot, op.required(slot), quant.axis


def slot_of(op: Op, name: str) -> tuple[int, Value | None]:
    """Find an operand by its name: its slot, and what is there."""
    slot = next(f.index for f in op.operand_fields() if f.name == name)
    return slot, op.operands[slot] if slot < len(op.operands) else None


def set_bias(graph: Graph, op: Op, bias: Array) -> None:
    """Give a layer another bias [o], in float, where it may have one."""
    operand = None if op.quant is None else op.quant.bias
    if operand is None:
        return
    slot, old = slot_of(op, operand)
    name = f"{op.name}/bias" if old is None else old.name
    constant = graph.add_constant(graph.unique_name(name), bias.astype(np.float32))
    op.set_operand(slot, constant)


def stored_bytes(op: Op) -> int:
    """Count the bytes of an operator's constants, also of those that are decoded."""
    behind = [integers_behind(v) or v for v in op.operands if v is not None]
    makers = {v.producer.op for v in behind if v.producer is not None}
    decoders = sum(constant_bytes(maker) for maker in makers if is_decoder(maker))
    constants = {value for value in behind if value.is_constant}
    scales = {one for value in constants for one in value.block_tensors if one is not None}
    return decoders + sum(len(value.buffer or ()) for value in constants | scales)


def to_integers(graph: Graph, chosen: Container[Op]) -> None:
    """Fuse the rounding around chosen operators into them, so that they compute with integers, drop
    operators that nothing uses any more, and let constants be one that became equal: steps of an
    unrolled LSTM have the same biases.
    """
    encode_layers(graph, chosen)
    fuse_quantization(graph, lambda op: (isinstance(op, Quantize) or op in chosen) and runs(op))
    remove_dead(graph)
    remove_duplicate_const(graph)
