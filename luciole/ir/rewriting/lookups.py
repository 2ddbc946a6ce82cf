"""Spell GATHER of a constant's rows as EMBEDDING_LOOKUP, whose rows may be integers of few bits
that become real numbers as they are looked up.
"""

from __future__ import annotations

import numpy as np

from luciole.ir.graph import Graph
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.embedding_lookup import EmbeddingLookup
from luciole.ir.ops.gather import Gather, places
from luciole.ir.ops.reshape import Reshape
from luciole.ir.value import Shape, Value
from luciole.schema.enums import TensorType


def as_lookup(op: Gather) -> EmbeddingLookup | None:
    """Replace a GATHER of rows by a lookup with the same result; numbers of rows become a vector of
    INT32. None, and nothing is changed, for other axes, tables that are computed, and results with
    several unknown extents.
    """
    along, batch = places(op, len(op.params.dims), len(op.indices.shape))
    is_table = op.params.is_constant and len(op.params.dims) > 1 and not along and not batch
    if not is_table or sum(extent is None for extent in op.output.shape) > 1:
        return None
    graph, name = op.own_graph, op.name
    lookup = EmbeddingLookup(_numbers(graph, op), op.params)
    result = graph.insert_before(op, lookup, graph.unique_name(f"{name}/rows")).output
    if len(op.indices.shape) != 1:
        result = _reshaped(graph, op, result, "shaped", op.output.shape)
    op.output.replace_with(result)
    graph.remove(op)
    result.name = name
    return lookup


def _numbers(graph: Graph, op: Gather) -> Value:
    """Make a vector of INT32 of the indices."""
    numbers = op.indices
    if numbers.dtype != TensorType.INT32:
        cast = Cast(numbers, in_data_type=numbers.dtype, out_data_type=TensorType.INT32)
        numbers = graph.insert_before(op, cast, graph.unique_name(f"{op.name}/numbers")).output
    return numbers if len(numbers.shape) == 1 else _reshaped(graph, op, numbers, "flat", (None,))


def _reshaped(graph: Graph, op: Gather, value: Value, what: str, shape: Shape) -> Value:
    extents = tuple(-1 if extent is None else extent for extent in shape)
    name = graph.unique_name(f"{op.name}/{what}")
    constant = graph.add_constant(f"{name}/shape", np.array(extents, np.int32))
    return graph.insert_before(op, Reshape(value, constant, new_shape=extents), name).output
