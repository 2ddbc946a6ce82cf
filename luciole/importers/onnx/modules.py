"""Names of what a graph of torch computes, after the modules that compute it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from luciole.ir import Graph, Op
from luciole.ir.analysis.origins import SourceNode
from luciole.ir.analysis.weights import has_weights, weight_constant
from luciole.ir.errors import SLIPS

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

_SCOPES = "pkg.torch.onnx.name_scopes"
"""Where torch's exporter notes the paths of the modules around a node, and the node's own name."""


def name_by_modules(graph: GraphProto, kept: int) -> None:
    """Name values ``blocks/0/linear``: what a module computes last has its path, everything else in
    it a name behind that. The last ``kept`` outputs keep theirs.
    """
    names: dict[str, str] = {}
    last: dict[str, str] = {}
    for node in graph.node:
        scope = _scope(node)
        if scope:
            names |= {output: f"{scope}/{output}" for output in node.output if output}
            last[scope] = node.output[0]
    names |= {output: scope for scope, output in last.items()}
    for node in graph.node:
        node.name = next((names[output] for output in node.output if output in names), node.name)
    for info in graph.output[len(graph.output) - kept :]:
        names.pop(info.name, None)
    taken = {value.name for value in (*graph.input, *graph.output, *graph.initializer)}
    _rename(graph, {old: new for old, new in names.items() if new not in taken})


def name_by_weights(graph: Graph) -> dict[str, str]:
    """Call the results of layers after the modules of their weights, not after the activations and
    normalizations that became part of them; outputs keep their names. Return the old names with the
    new ones.
    """
    modules = {op: _module(op) for op in graph.ops}
    layers = Counter(modules.values())
    taken = {value.name for value in graph.values}
    names: dict[str, str] = {}
    for op, module in modules.items():
        if module and layers[module] == 1 and module not in taken and not op.output.is_output:
            names[op.output.name] = op.output.name = module
    return names


def renamed(nodes: Sequence[SourceNode], names: Mapping[str, str]) -> list[SourceNode]:
    """Write nodes with the names that their results got. A result that had one of these names has
    the old one in exchange.
    """
    made = {name for node in nodes for name in node.outputs}
    names = {old: new for old, new in names.items() if old in made}
    changed = {**{new: old for old, new in names.items()}, **names}

    def side(tensors: Sequence[str]) -> tuple[str, ...]:
        return tuple(changed.get(name, name) for name in tensors)

    return [node._replace(inputs=side(node.inputs), outputs=side(node.outputs)) for node in nodes]


def _module(op: Op) -> str:
    """Return the path of the module that the weights of a layer belong to, else nothing."""
    weights = weight_constant(op) if has_weights(op) else None
    return "" if weights is None else weights.name.rpartition(".")[0].replace(".", "/")


def _scope(node: NodeProto) -> str:
    """Return the path of the module that a node is in, an empty one for the whole network."""
    noted = [entry.value for entry in node.metadata_props if entry.key == _SCOPES]
    try:
        path = ast.literal_eval(noted[0])[-2]
    except (*SLIPS, SyntaxError, MemoryError, RecursionError):
        return ""
    return path.replace(".", "/") if isinstance(path, str) else ""


def _rename(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Rename values wherever they stand, also in graphs inside of nodes."""
    for info in (*graph.output, *graph.value_info):
        info.name = names.get(info.name, info.name)
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for attribute in node.attribute:
            for inner in (*attribute.graphs, attribute.g):
                _rename(inner, names)
