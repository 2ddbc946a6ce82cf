"""Let networks with channels first have them last."""

from __future__ import annotations

import numpy as np

from luciole.ir.graph import Graph
from luciole.ir.ops.transpose import Transpose
from luciole.ir.passes import run_passes
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.passes.layout.sink_transposes import sink_transposes
from luciole.ir.rewriting.ends import last
from luciole.ir.rewriting.passes import graph_pass
from luciole.ir.rewriting.patterns import inverse, order_of
from luciole.ir.value import Value

_IMAGES = 4
"""Axes of images and their channels."""


@graph_pass(on_request=True, at_last=True, meanwhile=sink_transposes)
def convert_nchw_to_nhwc(graph: Graph) -> bool:
    """ABS(input with channels first) -> TRANSPOSE(ABS(TRANSPOSE(input))), channels last inside.

    Every input of 4 axes is taken for images with channels first; TRANSPOSE are left at the ends of
    the network and around operators that have no other order of axes. Inputs and outputs keep
    their shapes: ``nchw_to_nhwc_input_shape`` and ``nchw_to_nhwc_output_shape`` turn these.
    """
    twin, _ = graph.clone()
    _convert(twin)
    if _structure(twin) == _structure(graph):
        return False
    _convert(graph)
    return True


def _convert(graph: Graph) -> None:
    """Move a TRANSPOSE to channels first down from each image, and turn images before it."""
    turned = {value: _begin(graph, value) for value in graph.inputs if _is_image(value)}
    run_passes(graph, (sink_transposes,))
    for value, image in reversed(turned.items()):
        _end(graph, value, image)
    remove_dead(graph)


def _is_image(value: Value) -> bool:
    return len(value.shape) == _IMAGES and bool(value.users) and not value.is_output


def _begin(graph: Graph, value: Value) -> Value:
    """Replace an image with channels first by one with them last, and a TRANSPOSE back."""
    shape = tuple(value.shape[axis] for axis in last(_IMAGES))
    image = Value(graph.unique_name(f"{value.name}/nhwc"), value.dtype, shape)
    image.quantization = value.quantization
    graph.add_value(image)
    back = Transpose(image, _order(graph, inverse(last(_IMAGES))))
    uses = list(value.users)
    graph.insert_before(graph.ops[0], back, graph.unique_name(f"{value.name}/nchw"))
    back.output.dtype, back.output.quantization = value.dtype, value.quantization
    for op, slot in uses:
        op.set_operand(slot, back.output)
    return image


def _end(graph: Graph, value: Value, image: Value) -> None:
    """Compute the image with channels last, where something else than a TRANSPOSE back reads it."""
    for op in [use.op for use in image.users]:
        is_back = isinstance(op, Transpose) and order_of(op) == inverse(last(_IMAGES))
        if is_back and not op.output.is_output:
            op.output.replace_with(value)
            graph.remove(op)
    if image.users:
        turn = Transpose(value, _order(graph, last(_IMAGES)))
        graph.insert_before(graph.ops[0], turn, results=[image])
    else:
        graph.remove_value(image)


def _order(graph: Graph, order: tuple[int, ...]) -> Value:
    return graph.add_constant(graph.unique_name("perm"), np.array(order, np.int32))


def _structure(graph: Graph) -> list[tuple[object, ...]]:
    """List operators, orders of axes and the places of what is read, whatever names are."""
    places: dict[Value | None, int] = {value: -1 - k for k, value in enumerate(graph.inputs)}
    for place, op in enumerate(graph.ops):
        places |= dict.fromkeys(op.results, place)
    return [
        (op.kind, isinstance(op, Transpose) and order_of(op), *map(places.get, op.operands))
        for op in graph.ops
    ]
