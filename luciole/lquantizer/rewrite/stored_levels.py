"""Let operators read their weights from codes of learned levels, through a LevelsDecode."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, Graph, Value
from luciole.ir.minifloat import pack_codes
from luciole.ir.ops.levelsdecode import LevelsDecode
from luciole.ir.value import Use
from luciole.lquantizer.formats.stored_levels import StoredLevels
from luciole.lquantizer.rewrite.placing import insert_at, read_instead


def read_stored(
    graph: Graph, users: list[Use], weights: Value, stored: StoredLevels, axis: int
) -> Value:
    """Replace constant weights by codes and a decoder; rows of ``stored`` [o, n] are the entries of
    an axis. Returns the decoder's result.
    """
    name = weights.name
    front = np.moveaxis(np.empty(weights.dims, np.bool_), axis, 0).shape
    codes = np.moveaxis(stored.codes.reshape(front), 0, axis)
    dims = np.array(weights.dims, np.int32)

    def held(what: str, array: Array) -> Value:
        return graph.add_constant(graph.unique_name(f"{name}/{what}"), array)

    op = LevelsDecode(
        held("codes", pack_codes(codes, stored.basis.shape[1])),
        held("dims", dims),
        held("basis", stored.basis),
        None if stored.scales is None else held("scales", stored.scales),
        axis=axis,
    )
    insert_at(graph, 0, op, f"{name}/decoded")
    read_instead(graph, users, weights, op.output, name)
    return op.output
