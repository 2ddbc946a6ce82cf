"""Let networks with channels first have them last."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.transpose import Transpose
from luciole.ir.passes import run_passes
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.passes.layout.sink_transposes import sink_transposes
from luciole.ir.rewriting.edits import become, reshape_to, vector
from luciole.ir.rewriting.ends import last
from luciole.ir.rewriting.passes import graph_pass
from luciole.ir.rewriting.patterns import Order, inverse, order_of
from luciole.ir.value import Value

_IMAGES = 4
"""Axes of images and their channels."""


def sink_turns(graph: Graph) -> bool:
    """Move TRANSPOSE down, and RESHAPE that turn images of one channel as TRANSPOSE do: those that
    meet no other one are RESHAPE again behind it.
    """
    before = _structure(graph)
    for op in [op for op in graph.ops if isinstance(op, Reshape)]:
        order = _turn_of(op)
        if order is not None:
            become(graph, op, Transpose(op.tensor, vector(graph, "perm", order)))
    run_passes(graph, (sink_transposes,))
    for turn in [op for op in graph.ops if isinstance(op, Transpose)]:
        if not (turn.a.is_input or turn.output.is_output) and _turn_of(turn) is not None:
            reshape_to(graph, turn, turn.a)
    return _structure(graph) != before


def _turn_of(op: Reshape | Transpose) -> Order | None:
    """Return the order of axes in which a copy of the same elements brings images of one channel,
    None where it is another one or moves elements.
    """
    image = op.operands[0]
    if image is None or len(image.shape) != _IMAGES or None in image.shape:
        return None
    said = order_of(op) if isinstance(op, Transpose) else None
    for order in (last(_IMAGES), inverse(last(_IMAGES))):
        turned = tuple(image.shape[axis] for axis in order)
        wide = [axis for axis in order if image.shape[axis] != 1]
        is_said = isinstance(op, Reshape) or order == said
        if is_said and turned == op.output.shape != image.shape and wide == sorted(wide):
            return order
    return None


@graph_pass(on_request=True, at_last=True, meanwhile=sink_turns)
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
    sink_turns(graph)
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
    back = Transpose(image, vector(graph, "perm", inverse(last(_IMAGES))))
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
        turn = Transpose(value, vector(graph, "perm", last(_IMAGES)))
        graph.insert_before(graph.ops[0], turn, results=[image])
    else:
        graph.remove_value(image)


def _structure(graph: Graph) -> list[tuple[object, ...]]:
    """List operators, orders of axes and the places of what is read, whatever names are."""
    places: dict[Value | None, int] = {value: -1 - k for k, value in enumerate(graph.inputs)}
    for place, op in enumerate(graph.ops):
        places |= dict.fromkeys(op.results, place)
    return [
        (op.kind, isinstance(op, Transpose) and order_of(op), *map(places.get, op.operands))
        for op in graph.ops
    ]
