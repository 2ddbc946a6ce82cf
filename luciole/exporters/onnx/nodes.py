"""The ONNX graph while it is written: tensors that get their names at the end, and nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from luciole.ir import TensorType
from luciole.ir.text.common import utf8


class Term:
    """A tensor. ``name`` is what it is to be called; two that want the same name get different
    ones, and those that are ``named`` after a model's tensor choose first.
    """

    def __init__(self, name: str, named: bool = False) -> None:
        self.name = name
        self.named = named


@dataclass(eq=False)
class Node:
    """One operation: its kind in a domain ("" is ONNX's own), operands (None: left out), results
    and attributes.
    """

    kind: str
    operands: Sequence[Term | None]
    results: Sequence[Term]
    attributes: Mapping[str, object] = field(default_factory=dict)
    domain: str = ""


@dataclass(eq=False)
class Body:
    """A graph: nodes in the order in which they run, and what goes in and comes out."""

    name: str
    inputs: list[tuple[Term, TensorType, Sequence[int | None] | None]] = field(default_factory=list)
    outputs: list[tuple[Term, TensorType, Sequence[int | None] | None]] = field(
        default_factory=list
    )
    nodes: list[Node] = field(default_factory=list)

    def called(self) -> Iterator[Body]:
        """List the graphs that nodes hold."""
        for node in self.nodes:
            yield from bodies_of(node)

    def terms(self) -> Iterator[Term]:
        """List all tensors, also those of graphs that nodes hold; many come several times."""
        yield from (term for term, *_ in (*self.inputs, *self.outputs))
        for node in self.nodes:
            yield from (term for term in (*node.operands, *node.results) if term is not None)
        for body in self.called():
            yield from body.terms()


def bodies_of(node: Node) -> Iterator[Body]:
    """List the graphs that are attributes of a node."""
    return (value for value in node.attributes.values() if isinstance(value, Body))


def drop_unused(body: Body) -> None:
    """Leave out nodes whose results nobody needs, here and in the graphs that nodes hold."""
    needed = {id(term) for term, *_ in body.outputs}
    kept = []
    for node in reversed(body.nodes):
        if any(id(term) in needed for term in node.results):
            for inner in bodies_of(node):
                drop_unused(inner)
                needed |= {id(term) for term in inner.terms()}
            needed |= {id(term) for term in node.operands if term is not None}
            kept.append(node)
    body.nodes = kept[::-1]


def assign_names(terms: Sequence[Term]) -> None:
    """Give every tensor a name of its own: the first that wants a name gets it, those that are
    named after a model's tensors before all others. Bytes of names that are no UTF-8, which
    protocol buffers do not hold, are escaped.
    """
    taken: set[str] = set()
    counts: dict[str, int] = {}
    distinct = list(dict.fromkeys(terms))
    for term in sorted(distinct, key=lambda t: not t.named):
        term.name = _free(utf8(term.name or "tensor"), taken, counts)
        taken.add(term.name)


def _free(name: str, taken: set[str], counts: dict[str, int]) -> str:
    if name not in taken:
        return name
    number = counts.get(name, 0) + 1
    while f"{name}_{number}" in taken:
        number += 1
    counts[name] = number
    return f"{name}_{number}"
