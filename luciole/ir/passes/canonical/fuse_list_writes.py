"""Write an element of a list in its place: what TensorFlow's converter makes three copies of."""

from __future__ import annotations

import numpy as np

from luciole.ir.graph import Graph
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.dynamic_update_slice import DynamicUpdateSlice
from luciole.ir.ops.slice import Slice
from luciole.ir.rewriting.passes import graph_pass
from luciole.ir.rewriting.patterns import first_of, follows, is_filled, made_by
from luciole.ir.value import Value
from luciole.schema.enums import ActivationFunctionType


@graph_pass(on_request=True)
def fuse_list_writes(graph: Graph) -> bool:
    """CONCATENATION(list[:i], item, list[i + 1:]) -> DYNAMIC_UPDATE_SLICE(list, item, i).

    Its shape is known: in the body of a WHILE, so are those of all that depends on the list.

    Where i is no place in the list, SLICE fails and DYNAMIC_UPDATE_SLICE writes at the nearest one.
    """
    changed = False
    for op in list(graph.ops):
        if isinstance(op, Concatenation):
            changed |= _fuse(graph, op)
    return changed


def _fuse(graph: Graph, op: Concatenation) -> bool:
    if op.axis != 0 or len(op.inputs) != 3 or op.activation != ActivationFunctionType.NONE:
        return False
    item = op.inputs[1]
    before, behind = made_by(op.inputs[0], Slice), made_by(op.inputs[2], Slice)
    if before is None or behind is None or before.input is not behind.input:
        return False
    index, following = first_of(before.size, -1), first_of(behind.begin, 0)
    if index is None or following is None or not follows(following, index):
        return False
    whole = is_filled(before.begin, 0) and is_filled(behind.size, -1)
    if not whole or item.shape[:1] != (1,):
        return False
    _replace(graph, op, before, item)
    return True


def _replace(graph: Graph, op: Concatenation, before: Slice, item: Value) -> None:
    name, size = op.name, made_by(before.size, Concatenation)
    assert size is not None
    rest = size.inputs[1]
    zeros = np.zeros(rest.dims, np.int32 if rest.data is None else rest.data.dtype)
    others = graph.add_constant(graph.unique_name(f"{name}/others"), zeros)
    start = graph.insert_before(
        op, Concatenation((size.inputs[0], others)), graph.unique_name(f"{name}/start")
    )
    update = DynamicUpdateSlice(before.input, item, start.output)
    written = graph.insert_before(op, update, graph.unique_name(f"{name}/written")).output
    op.output.replace_with(written)
    graph.remove(op)
    written.name = name
