"""Let operators read their weights from codes of learned levels, through a LevelsDecode."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from luciole.ir import Array, Graph, Op, Value
from luciole.ir.analysis.weights import weight_constant
from luciole.ir.minifloat import pack_codes
from luciole.ir.ops.levelsdecode import LevelsDecode
from luciole.ir.value import Use
from luciole.lquantizer.formats.stored_levels import StoredLevels
from luciole.lquantizer.rewrite.integers import weight_slot
from luciole.lquantizer.rewrite.placing import insert_at, read_instead


def read_stored(
    graph: Graph, users: list[Use], weights: Value, stored: StoredLevels, axis: int
) -> Value:
    """Replace constant weights by codes and a decoder; rows of ``stored`` [o, n] are the entries of
    an axis. Returns the decoder's result, which has the weights' name.
    """
    front = np.moveaxis(np.empty(weights.dims, np.bool_), axis, 0).shape
    codes = np.moveaxis(stored.codes.reshape(front), 0, axis)
    op = LevelsDecode(
        _held(graph, "codes", pack_codes(codes, stored.basis.shape[1])),
        _dims(graph, weights),
        _held(graph, "basis", stored.basis),
        None if stored.scales is None else _held(graph, "scales", stored.scales),
        None if stored.offsets is None else _held(graph, "offsets", stored.offsets),
        axis=axis,
    )
    insert_at(graph, 0, op, f"{weights.name}/decoded")
    if weights.dtype == op.output.dtype:
        op.output.quantization = weights.quantization
    name = weights.name
    read_instead(graph, users, weights, op.output, name)
    weights.name, op.output.name = op.output.name, name
    return op.output


def _held(graph: Graph, name: str, array: Array) -> Value:
    """Keep an array under a short name."""
    return graph.add_constant(graph.unique_name(name), array)


def _dims(graph: Graph, weights: Value) -> Value:
    """Keep the extents of weights, once for all decoders that have the same."""
    decoders = (op for op in graph.ops if isinstance(op, LevelsDecode))
    extents = [op.dims for op in decoders if op.output.dims == weights.dims]
    return extents[0] if extents else _held(graph, "dims", np.array(weights.dims, np.int32))


def read_integers(graph: Graph, levels: Mapping[Op, StoredLevels]) -> None:
    """Replace layers' integer weights by codes of ``levels`` and decoders."""
    for op, stored in levels.items():
        weights = weight_constant(op)
        if weights is not None:
            read_stored(graph, list(weights.users), weights, stored, weight_slot(op)[2])
