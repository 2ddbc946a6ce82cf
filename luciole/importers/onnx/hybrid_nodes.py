"""Find layers whose inputs are quantized when they run, as ``quantize_dynamic`` of onnxruntime
writes them, and put one node in the place of their nodes: DynamicQuantizeLinear, MatMulInteger or
ConvInteger, Cast and Mul.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from luciole.ir import Value

if TYPE_CHECKING:
    from onnx import NodeProto

MICROSOFT, OURS = "com.microsoft", "luciole"
_FLOAT = 1
"""ONNX's number of float."""
_LAYERS = {
    "MatMulInteger": ("DynamicQuantizeMatMul", MICROSOFT),
    "ConvInteger": ("DynamicQuantizeConv", OURS),
}
"""Nodes that become one, and the name and domain of that."""


class _Whole(NamedTuple):
    """A node that scales its sums itself: where it has the quantized input, what becomes of it, and
    which of its operands that has behind the input; constant ones among them.
    """

    quantized: tuple[int, int, int]
    kind: str
    domain: str
    kept: tuple[int, ...]
    fixed: tuple[int, ...]


_WHOLE = {
    "QAttention": _Whole((0, 3, 6), "DynamicQuantizeAttention", OURS, (1, 2, 4, 5, 7), (1, 4, 7)),
    "MatMulIntegerToFloat": _Whole(
        (0, 2, 4), "DynamicQuantizeMatMul", MICROSOFT, (1, 3, 5, 6), (1, 3, 5)
    ),
}


def with_hybrid_layers(
    protos: Sequence[NodeProto], scope: Mapping[str, Value], read: Mapping[str, int]
) -> list[NodeProto]:
    """Put one node in the place of those that quantize an input when they run, multiply it by
    constant integers and scale the result. ``read`` counts the readers of each name.
    """
    makers = {name: proto for proto in protos for name in proto.output if name}
    fixed = {name for name, value in scope.items() if value.is_constant}
    joined = [_joined(proto, makers, fixed, read) or proto for proto in protos]
    return joined if joined == list(protos) else _still_read(protos, joined, read)


def _still_read(
    before: Sequence[NodeProto], after: Sequence[NodeProto], read: Mapping[str, int]
) -> list[NodeProto]:
    """List nodes without those that were read and are no more, also by ones that are left out."""
    counts = Counter(read)
    counts.subtract(name for proto in before for name in proto.input)
    counts.update(name for proto in after for name in proto.input)
    kept = []
    for proto in reversed(after):
        names = [name for name in proto.output if name]
        if any(read[name] for name in names) and all(counts[name] < 1 for name in names):
            counts.subtract(proto.input)
        else:
            kept.append(proto)
    return kept[::-1]


def _joined(
    proto: NodeProto,
    makers: Mapping[str, NodeProto],
    fixed: Container[str],
    read: Mapping[str, int],
) -> NodeProto | None:
    """Make the node of a whole layer from the last of its nodes, None where it is none."""
    if proto.domain == MICROSOFT:
        return _of_whole(proto, makers, fixed)
    if proto.op_type != "Mul" or proto.domain or len(proto.input) != 2:
        return None
    for product, scale in (proto.input, reversed(proto.input)):
        layer = _layer(product, makers, read)
        if layer is None:
            continue
        steps = makers.get(layer.input[0])
        scales = _other_factor(scale, makers, steps)
        point = layer.input[3] if len(layer.input) > 3 else ""
        constants = [layer.input[1], scales, *([point] if point else [])]
        if steps is not None and scales and all(name in fixed for name in constants):
            return _node(layer, [steps.input[0], layer.input[1], scales, point], proto)
    return None


def _of_whole(
    proto: NodeProto, makers: Mapping[str, NodeProto], fixed: Container[str]
) -> NodeProto | None:
    """Make the node of a layer that scales its sums itself, None where its input is not quantized
    when it runs.
    """
    whole, names = _WHOLE.get(proto.op_type), [*proto.input, *[""] * 8]
    steps = makers.get(names[0])
    if whole is None or steps is None or steps.op_type != "DynamicQuantizeLinear":
        return None
    known = all(not names[slot] or names[slot] in fixed for slot in whole.fixed)
    if not known or [names[slot] for slot in whole.quantized] != list(steps.output):
        return None
    inputs = [steps.input[0], *(names[slot] for slot in whole.kept)]
    return _renamed(proto, whole.kind, whole.domain, inputs, proto)


def _layer(name: str, makers: Mapping[str, NodeProto], read: Mapping[str, int]) -> NodeProto | None:
    """Find the layer of integers whose sums a Cast turns to floats, both for one reader."""
    cast = makers.get(name)
    if cast is None or cast.op_type != "Cast" or read[name] != 1:
        return None
    to = next((a.i for a in cast.attribute if a.name == "to"), 0)
    layer = makers.get(cast.input[0])
    if layer is None or to != _FLOAT or read[cast.input[0]] != 1:
        return None
    steps = makers.get(layer.input[0])
    dynamic = steps is not None and steps.op_type == "DynamicQuantizeLinear"
    if layer.op_type not in _LAYERS or layer.domain or not dynamic or len(layer.input) < 3:
        return None
    assert steps is not None, "it is dynamic"
    fits = list(steps.output[:1]) + list(steps.output[2:]) == [layer.input[0], layer.input[2]]
    return layer if fits else None


def _other_factor(name: str, makers: Mapping[str, NodeProto], steps: NodeProto | None) -> str:
    """Return the scale of the weights in a product with that of the quantized input, nothing where
    a value is no such product.
    """
    product = makers.get(name)
    if product is None or steps is None or product.op_type != "Mul" or len(product.input) != 2:
        return ""
    first, second = map(str, product.input)
    if steps.output[1] not in (first, second):
        return ""
    return second if first == steps.output[1] else first


def _node(layer: NodeProto, inputs: Sequence[str], last: NodeProto) -> NodeProto:
    return _renamed(layer, *_LAYERS[layer.op_type], inputs, last)


def _renamed(
    layer: NodeProto, kind: str, domain: str, inputs: Sequence[str], last: NodeProto
) -> NodeProto:
    """Make a node with a layer's attributes in the place of the ``last`` of several."""
    from onnx import helper

    node = helper.make_node(kind, inputs, list(last.output), last.name, domain=domain)
    node.attribute.extend(layer.attribute)
    return node
