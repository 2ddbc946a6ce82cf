"""Graphs as protocol buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from luciole.exporters.onnx.building import Building, dtype_of
from luciole.exporters.onnx.elements import onnx_type, tensor
from luciole.exporters.onnx.nodes import Body, Node, Term
from luciole.ir import TensorType
from luciole.ir.text.common import utf8
from luciole.ir.value import UNRANKED

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto


def graph_proto(k: Building) -> GraphProto:
    """Make the main graph, with the constants that are used anywhere, in the order of their use."""
    held = k.shared.constants
    used = [term for term in dict.fromkeys(k.body.terms()) if term in held]
    return _graph(k.body, [tensor(*held[term], term.name) for term in used])


def _graph(body: Body, constants: Sequence[TensorProto] = ()) -> GraphProto:
    from onnx import helper

    return helper.make_graph(
        [_node(node) for node in body.nodes],
        utf8(body.name),
        [_info(*entry) for entry in body.inputs],
        [_info(*entry) for entry in body.outputs],
        constants,
    )


def _info(term: Term, dtype: TensorType, shape: Sequence[int | None] | None) -> ValueInfoProto:
    from onnx import helper

    extents = None if shape is None or shape is UNRANKED else list(shape)
    return helper.make_tensor_value_info(term.name, onnx_type(dtype), extents)


def _node(node: Node) -> NodeProto:
    from onnx import helper

    proto = helper.make_node(
        node.kind,
        ["" if term is None else term.name for term in node.operands],
        [term.name for term in node.results],
        domain=node.domain or None,
    )
    for name, value in sorted(node.attributes.items()):
        proto.attribute.append(helper.make_attribute(name, _attribute(value)))
    return proto


def _attribute(value: object) -> object:
    if isinstance(value, Body):
        return _graph(value)
    if isinstance(value, np.ndarray):
        return tensor(value, dtype_of(value), "")
    return value
