"""Name tensors and layers: by themselves, by signatures, and in short in tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeVar

from luciole.ir.errors import LucioleError, expect
from luciole.ir.graph import Graph, Signature
from luciole.ir.value import Value

T = TypeVar("T")

_PARTS = re.compile(r"[/;]")
"""Converters put scopes in front of each other with /, and operators that they fused with ;."""
_FUSED = ";"
_MOST_PARTS = 64
"""Parts of a name that are looked at; more are in no file seen so far."""
_PRODUCTS = ("BiasAdd", "MatMul", "Conv2D", "convolution", "depthwise")
"""TensorFlow's names of the operators of a layer with weights, within the layer's scope."""


_REFERENCE = re.compile(r"(?:T\()?(\d+):(\d+)\)?")
"""A tensor by its place, as dumps print it: the numbers of graph and tensor."""

STRIPPED = "~"
"""Beginning of the number that names a tensor whose own name was taken off."""
_NUMBER = re.compile(re.escape(STRIPPED) + "[0-9a-z]+")


def is_stripped(name: str) -> bool:
    """Return whether a name is a number of ``strip_names``, which says nothing of the tensor."""
    return _NUMBER.fullmatch(name) is not None


class Way(NamedTuple):
    """One way to call a graph: a name for every input in order, and the results that come then."""

    inputs: list[str]
    outputs: list[tuple[str, Value]]


def ways(graph: Graph) -> list[Way]:
    """List how a graph may be called: by its tensors' own names, and by those of each signature
    that has an argument for every input.
    """
    own = Way([v.name for v in graph.inputs], [(v.name, v) for v in graph.outputs])
    listed = [own] if len(set(own.inputs)) == len(own.inputs) else []
    for signature in signatures_of(graph):
        names = {value: name for name, value in signature.inputs}
        if all(value in names for value in graph.inputs):
            listed.append(Way([names[v] for v in graph.inputs], signature.outputs))
    return listed


def signatures_of(graph: Graph) -> list[Signature]:
    """List the signatures that call a graph."""
    return [s for s in graph.model.signatures if s.graph is graph] if graph.model else []


def by_own_names(graph: Graph, arguments: Mapping[str, T]) -> dict[str, T]:
    """Rename a graph's arguments, which may have signatures' names, to the tensors' own; other
    names stay.
    """
    own = [value.name for value in graph.inputs]
    for call in ways(graph):
        if set(call.inputs) <= arguments.keys():
            renamed = dict(zip(call.inputs, own, strict=True))
            return {renamed.get(name, name): it for name, it in arguments.items()}
    return dict(arguments)


def names_of(value: Value) -> list[str]:
    """List every name of an input or output: those that signatures give it, then its own."""
    signatures = signatures_of(value.graph) if value.graph else []
    pairs = [pair for s in signatures for pair in (*s.inputs, *s.outputs)]
    return list(dict.fromkeys([*(name for name, v in pairs if v is value), value.name]))


def called(value: Value) -> str:
    """Return users' name of an input or output: as the first signature has it, else its own."""
    return names_of(value)[0]


def find_tensor(graphs: Sequence[Graph], name: str) -> Value:
    """Find the tensor of a name, or of a reference as dumps print them: ``T(0:3)``.

    Raises LucioleError when there is none, or more than one.
    """
    expect(name, str, "the name of a tensor")
    matching = [v for graph in graphs for v in graph.values if v.name == name]
    place = _REFERENCE.fullmatch(name)
    if not matching and place is not None:
        graph, index = int(place[1]), int(place[2])
        if graph < len(graphs) and index < len(graphs[graph].values):
            return graphs[graph].values[index]
    if len(matching) != 1:
        count = "no tensor is" if not matching else f"{len(matching)} tensors are"
        near = get_close_matches(name, [v.name for g in graphs for v in g.values], 1)
        likely = f"did you mean {near[0]!r}? " if near else ""
        hint = f"{likely}luciole dump --tensors lists them"
        if matching:
            hint = "say which by its place, as T(0:3)"
        raise LucioleError(f"{count} called {name!r}: {hint}")
    return matching[0]


def main_tensor(graph: Graph, name: str) -> Value:
    """Find a tensor of a model's main graph by its name, by one that a signature gives an input or
    output, by the short name that tables print of a computed one, or by its place. Raises
    LucioleError where there is none, and for one that is inside of a graph that an operator calls.
    """
    own = [value for value in graph.values if value.name == name]
    value = own[0] if len(own) == 1 else _otherwise_called(graph, name) if not own else None
    graphs = [graph] if graph.model is None else graph.model.graphs
    value = find_tensor(graphs, name) if value is None else value
    if value.graph is not graph:
        inside = "" if value.graph is None else f" {value.graph.name!r}"
        raise LucioleError(
            f"tensor {name!r} is inside of graph{inside}, which an operator calls: "
            "tensors of the main graph can be asked for"
        )
    return value


def _otherwise_called(graph: Graph, name: str) -> Value | None:
    """Find the end that signatures call so, or else the one computed tensor of this short name."""
    for value in (*graph.inputs, *graph.outputs):
        if name in names_of(value):
            return value
    computed = [value for op in graph.ops for value in op.results]
    short = short_names(value.name for value in computed)
    matching = [value for value in computed if short[value.name] == name]
    return matching[0] if len(matching) == 1 else None


def fragments(name: str) -> Iterator[str]:
    """Yield all that stands between two separators of a name, single parts first, then the name."""
    ends = [m.start() for m in _PARTS.finditer(name)][:_MOST_PARTS]
    begins, ends = [0, *(end + 1 for end in ends)], [*ends, len(name)]
    for count in range(len(begins) - 1):
        for first in range(len(begins) - count):
            fragment = name[begins[first] : ends[first + count]]
            if fragment:
                yield fragment
    yield name


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Shorten names to parts that tell them apart: to the fewest neighbouring parts that no other
    of them has. Of several such parts it is the layer's own, the one whose product or bias
    TensorFlow names behind it, else the first; a name without others beside it has only its own
    part.
    """
    known = {name: list(dict.fromkeys(fragments(name))) for name in names}
    owners = Counter(fragment for parts in known.values() for fragment in parts)
    short = {}
    for name, parts in known.items():
        unique = [f for f in parts if owners[f] == 1]
        counts = list(map(_count, unique))
        fewest = [f for f, count in zip(unique, counts, strict=True) if count == min(counts)]
        first = fewest[0] if fewest and len(known) > 1 else name
        short[name] = next(_own_parts(name, fewest), first)
    return short


def _count(fragment: str) -> int:
    return len(_PARTS.findall(fragment))


def _own_parts(name: str, parts: Sequence[str]) -> Iterator[str]:
    """Yield the parts of a name that stand right before the operator that computes a layer."""
    anchored = "/" + name.replace(_FUSED, f"{_FUSED}/")
    return (p for product in _PRODUCTS for p in parts if f"/{p}/{product}" in anchored)


def parts_of(name: str) -> list[str]:
    """Split a name at its separators."""
    return _PARTS.split(name)


def layer_first(name: str) -> str:
    """Put the part of a name that belongs to a layer's product or bias in front of those of the
    operators that were fused with it.
    """
    own = [f"/{product}" for product in _PRODUCTS]
    return _FUSED.join(
        sorted(name.split(_FUSED), key=lambda part: not any(product in part for product in own))
    )


def meant(text: str, names: Collection[str]) -> list[str]:
    """Find which names a text stands for: the one that it is, else all that it is a part of."""
    return [text] if text in names else [name for name in names if text in fragments(name)]


def is_like(name: str, pattern: str) -> bool:
    """Return whether a shell pattern is for a name, or for neighbouring parts of it."""
    return any(fnmatchcase(fragment, pattern) for fragment in fragments(name))
