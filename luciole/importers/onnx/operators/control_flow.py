"""If: where its condition is known while importing, that branch is taken. And parts of loops, whose
steps stand one behind the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.rules import rule
from luciole.ir import Value
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.comparisons import Equal
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.control_flow import If
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.pack import Pack
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.shape import Shape
from luciole.ir.ops.squeeze import Squeeze
from luciole.ir.ops.unpack import Unpack

if TYPE_CHECKING:
    from onnx import NodeProto

MOST_STEPS = 256
"""Steps of a loop that are imported one behind the other."""


@rule("If")
def if_(k: Building, node: Node) -> list[Value | None]:
    """Take the branch of a condition that is known, else let IF choose when the network runs."""
    if node[0].data is None:
        squeezed = _squeezed(k, node)
        return _chosen_later(k, node) if squeezed is None else [squeezed]
    condition = k.known(node[0])
    if condition.size != 1:
        raise RefusedError("its condition is not one truth")
    branch = node.graph("then_branch" if bool(condition.reshape(-1)[0]) else "else_branch")
    return list(k.nodes.inner(k, branch, []))


def _chosen_later(k: Building, node: Node) -> list[Value | None]:
    """Add an IF whose graphs read what the branches read from outside."""
    branches = [node.graph("then_branch"), node.graph("else_branch")]
    inputs, (then_graph, else_graph) = k.nodes.branches(k, branches)
    condition = k.reshape(node[0], ()) if node[0].shape != () else node[0]
    op = If(condition, tuple(inputs), then_graph=then_graph, else_graph=else_graph)
    hint = f"{k.prefix}/if"
    k.graph.append(op, *(k.name(hint) for _ in then_graph.outputs))
    return list(op.results)


def _squeezed(k: Building, node: Node) -> Value | None:
    """Drop axes where one branch does so if they have one element, and the other returns the value
    as it is (PyTorch's ``squeeze(axis)``): ranks do not depend on numbers here, and SQUEEZE refuses
    other extents when the network runs. None for other branches.
    """
    squeezing, keeping = node.graph("then_branch").node, node.graph("else_branch").node
    *constants, last = squeezing or [None]
    names = [inner.input[0] for inner in keeping if inner.op_type == "Identity"]
    if last is None or last.op_type != "Squeeze" or len(keeping) != 1:
        return None
    if names != [last.input[0]] or names[0] not in k.nodes.scope:
        return None
    x, axes = k.nodes.scope[names[0]], _axes_of(k, last, constants)
    if axes is None or len(axes) != 1 or not _is_one(node[0], x, k.axis(axes[0], x)):
        return None
    return k.add(Squeeze(x, squeeze_dims=(k.axis(axes[0], x),)))


def _is_one(condition: Value, x: Value, axis: int) -> bool:
    """Return whether a condition asks if an extent of a value is 1."""
    op = None if condition.producer is None else condition.producer.op
    if not isinstance(op, Equal):
        return False
    sides = (op.operands[:2], op.operands[1::-1])
    return any(
        one is not None
        and one.data is not None
        and one.data.size == 1
        and int(one.data.reshape(-1)[0]) == 1
        and _is_extent(extent, x, axis)
        for extent, one in sides
    )


def _is_extent(value: Value | None, x: Value, axis: int) -> bool:
    """Return whether a number is picked of a value's extents, at an axis."""
    op = None if value is None or value.producer is None else value.producer.op
    if isinstance(op, Cast | Reshape | Squeeze):
        return _is_extent(op.operands[0], x, axis)
    if not isinstance(op, Gather) or op.operands[1] is None or op.operands[1].data is None:
        return False
    places = op.operands[1].data.reshape(-1)
    shape = None if op.operands[0] is None else op.operands[0].producer
    whole = shape is not None and isinstance(shape.op, Shape) and shape.op.operands[0] is x
    return whole and places.size == 1 and int(places[0]) % len(x.shape) == axis


def _axes_of(k: Building, squeeze: NodeProto, constants: Sequence[NodeProto]) -> list[int] | None:
    """Read the axes of a Squeeze behind ``constants``, None where they are not known."""
    from onnx import numpy_helper

    for attribute in squeeze.attribute:
        return list(attribute.ints)
    name = squeeze.input[1] if len(squeeze.input) > 1 else ""
    if name in k.nodes.scope:
        data = k.nodes.scope[name].data
        return None if data is None else [int(n) for n in data.reshape(-1)]
    made = [a for c in constants if name in c.output for a in c.attribute if a.name == "value"]
    return [int(n) for a in made for n in numpy_helper.to_array(a.t).reshape(-1)] or None


def packed(k: Building, values: Sequence[Value], axis: int) -> Value:
    """Put the values of all steps behind each other, along a new axis."""
    if not values:
        raise RefusedError("it takes no step, and the shape of what a step gives is not known")
    if len(values) == 1:
        shape = list(values[0].shape)
        return k.reshape(values[0], (*shape[:axis], 1, *shape[axis:]))
    return k.add(Pack(tuple(values), values_count=len(values), axis=axis))


def slices(k: Building, value: Value, axis: int) -> list[Value]:
    """Cut a value along an axis into slices without it."""
    dims = k.dims(value)
    count = dims[axis]
    if not 0 < count <= MOST_STEPS:
        raise RefusedError(f"it takes {count} steps, more than {MOST_STEPS} or none")
    if count == 1:
        return [k.reshape(value, (*dims[:axis], *dims[axis + 1 :]))]
    return k.several(Unpack(value, num=count, axis=axis))


def joined(k: Building, values: Sequence[Value], axis: int) -> Value:
    """Put values behind each other along an axis."""
    return values[0] if len(values) == 1 else k.add(Concatenation(tuple(values), axis=axis))
