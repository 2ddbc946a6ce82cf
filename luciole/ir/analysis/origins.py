"""Find the nodes of another format that operators came from, by the names of tensors."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.pad import Pad
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.transpose import Transpose
from luciole.ir.value import Value

MOST_NODES = 200
"""Nodes that are looked for behind one operator."""


class SourceNode(NamedTuple):
    """A node of the file that a graph was imported from; its tensors by the names that they have in
    the graph where they are left there, without slashes around.
    """

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def origins(graph: Graph, nodes: Sequence[SourceNode]) -> dict[Op, list[int]]:
    """Find the numbers of the nodes behind each operator, in their order: those that lead to its
    results from what other operators make; of an operator on the way to a node's result that node;
    and nodes behind its result that no operator has the name of.
    """
    makers = {name: n for n, node in enumerate(nodes) for name in node.outputs if name}
    kept = {name: op for op in graph.ops for name in _names(op.results)}
    kept = {name: op for name, op in kept.items() if not _arranges(op, name, nodes, makers)}
    behind = {op: _behind(op, nodes, makers, kept) for op in graph.ops}
    _add_followers(behind, nodes)
    return {op: sorted(numbers) for op, numbers in behind.items()}


def _arranges(op: Op, name: str, nodes: Sequence[SourceNode], makers: Mapping[str, int]) -> bool:
    """Return whether an operator has the name of a node's result, but only turns or pads what the
    operator reads that computes it under another name: the node is behind both.
    """
    if not isinstance(op, Cast | Pad | Reshape | Transpose) or name not in makers:
        return False
    node = nodes[makers[name]]
    reads_its = any(read in node.outputs for read in _names(filter(None, op.operands)))
    return not reads_its and node.kind.lower() not in op.kind.lower()


def _behind(
    op: Op, nodes: Sequence[SourceNode], makers: Mapping[str, int], kept: Container[str]
) -> set[int]:
    names = _names(op.results)
    waiting = [makers[name] for name in names if name in makers]
    reached = set(waiting)
    while waiting and len(reached) < MOST_NODES:
        for name in nodes[waiting.pop()].inputs:
            if name in makers and name not in kept and makers[name] not in reached:
                reached.add(makers[name])
                waiting.append(makers[name])
    return reached or {n for name in names if (n := _on_the_way(name, makers)) is not None}


def _names(values: Iterable[Value]) -> list[str]:
    """List names as they are compared: without the slashes around some files' names."""
    return [value.name.strip("/") for value in values]


def _on_the_way(name: str, makers: Mapping[str, int]) -> int | None:
    """Find the node whose result's name begins the name of a value: ``y/transpose`` is of ``y``."""
    while "/" in name:
        name = name.rpartition("/")[0]
        if name in makers:
            return makers[name]
    return None


def _add_followers(behind: Mapping[Op, set[int]], nodes: Sequence[SourceNode]) -> None:
    """Give nodes that are behind no operator to those whose results they read."""
    owners: dict[str, Op] = {}
    for op, numbers in behind.items():
        owners |= {name: op for n in numbers for name in nodes[n].outputs}
        owners |= dict.fromkeys(_names(op.results), op)
    taken = set().union(*behind.values())
    for number, node in enumerate(nodes):
        owner = next((owners[name] for name in node.inputs if name in owners), None)
        if number not in taken and owner is not None and len(behind[owner]) < MOST_NODES:
            behind[owner].add(number)
            owners |= dict.fromkeys(node.outputs, owner)
