"""Tensors whose blocks share scales (MXFP4, MXINT8), in the copy of a graph that is run: float32
numbers, rounded to what blocks hold as soon as an operator has computed them.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from luciole.ir import Array, Graph, Op, TensorType, Value
from luciole.ir.dtypes import MICROSCALED
from luciole.ir.fields import attr, dtype_of, like, operand
from luciole.ir.microscaling import axis_of, in_blocks
from luciole.ir.ops.quantize import Quantize
from luciole.ir.value import Producer
from luciole.kernels.core.registry import reference


class InBlocks(Op):
    """Numbers rounded to ones that blocks along an axis hold; no file has it."""

    x: Value = operand()

    elements: TensorType = attr(default=TensorType.MXFP4)
    axis: int = attr(default=-1)

    infer_dtype = dtype_of("x")
    infer_shape = like("x")


@reference(InBlocks, TensorType.FLOAT32)
def round_in_blocks(op: InBlocks, x: Array) -> Array:
    """Round all blocks at once."""
    return in_blocks(x, op.elements, op.axis)


def decode_blocks(graph: Graph, sources: MutableMapping[Op, Op]) -> None:
    """Make all tensors in microscaled blocks FLOAT32, and round those that operators compute.

    ``sources`` are told which operator a rounding belongs to. A tensor that nobody computes and
    whose contents the file has stays as it is: no kernel reads it.
    """
    for value in [v for v in graph.values if v.dtype in MICROSCALED and not v.is_constant]:
        elements, axis = value.dtype, axis_of(value)
        value.dtype = TensorType.FLOAT32
        if value.producer is not None:
            _round(graph, value, elements, -1 if axis is None else axis, sources)


def _round(
    graph: Graph,
    value: Value,
    elements: TensorType,
    axis: int,
    sources: MutableMapping[Op, Op],
) -> None:
    """Put a rounding behind the operator that computes a tensor, or in the place of QUANTIZE."""
    assert value.producer is not None
    op, slot = value.producer
    value.producer = None
    if isinstance(op, Quantize):
        exact, op.results = op.input, ()
    else:
        exact = graph.add_value(value.clone())
        exact.producer = Producer(op, slot)
        op.results = (*op.results[:slot], exact, *op.results[slot + 1 :])
    rounding = InBlocks(exact, elements=elements, axis=axis)
    graph.insert_after(op, rounding, results=[value])
    sources[rounding] = sources[op]
    if isinstance(op, Quantize):
        graph.remove(op)
