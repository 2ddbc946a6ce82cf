"""Let a float network compute with minifloats: constants become codes, results are rounded.

Sums inside an operator stay float32, and so do the biases that are added to them, as in hardware
whose accumulator is wider than its numbers (FAT, Goncharenko et al., chapter on minifloats).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.minifloat import Minifloat, pack_codes
from luciole.ir.ops.minifloat import MinifloatDecode, MinifloatRound
from luciole.ir.passes.cleaning.remove_dead import remove_dead, remove_dead_buffers
from luciole.lquantizer.rewrite.placing import behind, insert_at, read_instead

_WORTH = 256
"""Bytes that codes must save: an operator that reads them takes about as many."""


def to_minifloats(model: Model, formats: Mapping[Value, Minifloat]) -> Model:
    """Copy a float network so that it computes with the minifloats of each of its tensors."""
    work = model.clone()
    twins = dict(zip(model.graph.values, work.graph.values, strict=True))
    for value, numbers in formats.items():
        (_code if is_constant(value) else _round)(work.graph, twins[value], numbers)
    remove_dead(work.graph)
    remove_dead_buffers(work)
    return work


def multiplied(op: Op) -> list[Value]:
    """List an operator's float constants but its bias."""
    bias = None if op.quant is None else op.quant.bias
    operands = op.named_operands()
    return [v for name, v in operands if v is not None and name != bias and is_constant(v)]


def is_constant(value: Value) -> bool:
    """Return whether a tensor holds constant floats."""
    return value.is_constant and value.dtype == TensorType.FLOAT32 and value.data is not None


def _code(graph: Graph, value: Value, numbers: Minifloat) -> None:
    """Replace a constant by its minifloats in all operators that multiply it."""
    data = value.contents
    users = [use for use in value.users if value in multiplied(use.op)]
    new = _decoded if data.nbytes - numbers.bytes(data.shape) >= _WORTH else _rounded
    read_instead(graph, users, value, new(graph, value.name, data, numbers), value.name)


def _rounded(graph: Graph, name: str, data: Array, numbers: Minifloat) -> Value:
    """Store a constant's minifloats as they are."""
    return graph.add_constant(graph.unique_name(f"{name}/rounded"), numbers.round(data))


def _decoded(graph: Graph, name: str, data: Array, numbers: Minifloat) -> Value:
    """Store a constant's codes, and an operator that reads them."""
    codes = pack_codes(numbers.encode(data), numbers.bits)
    packed = graph.add_constant(graph.unique_name(f"{name}/codes"), codes)
    dims = np.array(data.shape, np.int32)
    extents = graph.add_constant(graph.unique_name(f"{name}/dims"), dims)
    op = MinifloatDecode(packed, extents, **_attributes(numbers))
    insert_at(graph, 0, op, f"{name}/decoded")
    return op.output


def _round(graph: Graph, value: Value, numbers: Minifloat) -> None:
    """Round a tensor for all operators that read it, and for the graph where it is a result."""
    users = list(value.users)
    if users or value.is_output:
        op = MinifloatRound(value, **_attributes(numbers))
        insert_at(graph, behind(graph, value), op, f"{value.name}/rounded")
        read_instead(graph, users, value, op.output, f"{value.name}/unrounded")


def _attributes(numbers: Minifloat) -> dict[str, int]:
    return {
        "exponent_bits": numbers.exponent,
        "mantissa_bits": numbers.mantissa,
        "shift": numbers.shift,
    }
