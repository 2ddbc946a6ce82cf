"""Imports nodes in their order: by their rule, else by their function's body."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from luciole.importers.computing import computing
from luciole.importers.onnx.building import Budget, Building
from luciole.importers.onnx.constants import array_of, attribute_value
from luciole.importers.onnx.element_types import is_widened
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.functions import Body, Functions
from luciole.importers.onnx.hybrid_nodes import with_hybrid_layers
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.rules import STANDARD, find_rule
from luciole.ir import Graph, LucioleError, TensorType, Value
from luciole.ir.errors import SLIPS, FormatError
from luciole.schema.printable import quoted

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto

DEEPEST = 32
"""How deep functions and graphs of nodes may stand in each other."""
SINGLE = TensorType.FLOAT32
_FLOAT, _HALF = 1, 10
"""ONNX's numbers of float and float16."""
_ENDS = 250
"""Characters of a reason's beginning and end that are kept where functions make it long."""

Scope = dict[str, Value]
"""Values by the names that nodes call them."""


class Nodes:
    """The nodes of one model: what its functions are, and what could not be imported.

    ``refused`` has a sentence for each kind of node without a form here.
    """

    def __init__(self, functions: Functions, folder: Path | None, budget: Budget) -> None:
        self.functions = functions
        self.folder = folder
        self.budget = budget
        self.refused: dict[str, str] = {}
        self.scope: Scope = {}
        self.opsets: Mapping[str, int] = {}
        self.depth = 0
        self.outer = ""
        """The result of the file's own node that is being imported."""
        self.is_whole = True
        self.is_ours = False
        """Whether luciole wrote the file: what circle does not have is not in it."""
        self.widened: set[Value] = set()
        """Values whose type is wider than the file's: nothing is rounded to their type."""
        self.counters: dict[Value, Value] = {}
        """INT64 numbers of turns, and the INT32 that they are made from: none is negative."""
        self.is_half = False
        """Whether floats of 16 bits are computed as ones of 32: inputs, constants and results."""

    def note_type(self, value: Value, number: int) -> None:
        """Note a value whose type in the file has less numbers than its own."""
        if is_widened(number, value.dtype):
            self.widened.add(value)

    def refuse(self, what: str, reason: str) -> None:
        """Note a node that is not imported; nodes that depend on it are then left out."""
        self.is_whole = False
        if len(reason) > 2 * _ENDS:
            reason = f"{reason[:_ENDS]} ... {reason[-_ENDS:]}"
        self.refused.setdefault(what, reason)

    def building(self, graph: Graph) -> Building:
        """Make a builder with which rules add operators."""
        return Building(graph, computing(), self.budget, self)

    def constants(self, k: Building, tensors: Iterable[TensorProto], scope: Scope) -> None:
        """Add a graph's initializers."""
        for tensor in tensors:
            try:
                array, dtype = array_of(tensor, self.folder)
            except RefusedError as error:
                self.refuse(f"tensor {quoted(tensor.name)}", str(error))
                continue
            single = self.is_half and dtype == TensorType.FLOAT16
            array, dtype = (array.astype(np.float32), SINGLE) if single else (array, dtype)
            scope[tensor.name] = k.constant(array, k.name(tensor.name), dtype)
            self.note_type(scope[tensor.name], tensor.data_type)

    def run(
        self,
        k: Building,
        nodes: Iterable[NodeProto],
        scope: Scope,
        outputs: Iterable[str],
        taken: Iterable[str],
    ) -> None:
        """Import nodes, in an order in which each reads what is made before it, and note their
        results in the scope; ``outputs`` are read, ``taken`` are the names that the graph has
        already. Raises FormatError for a node that reads what nothing
        makes, and for two of one name; nodes behind a refused one are left out.
        """
        protos = in_order(list(nodes), scope)
        _refuse_twice([*taken, *(name for proto in protos for name in proto.output)])
        read = Counter([*outputs, *(name for proto in protos for name in names_read(proto))])
        protos = with_hybrid_layers(protos, scope, read)
        outer, self.scope = self.scope, scope
        try:
            for proto in protos:
                self._run(k, proto, scope, read)
        finally:
            self.scope = outer

    def _run(self, k: Building, proto: NodeProto, scope: Scope, read: Container[str]) -> None:
        self.budget.spend_node()
        missing = [name for name in proto.input if name and name not in scope]
        if missing and self.is_whole:
            raise FormatError(f"{proto.op_type} reads {quoted(missing[0])}, which nothing makes")
        if missing:
            return
        try:
            with self.budget.counted:
                node = self._node(proto, scope, read)
                k.prefix = self._name(next(filter(None, proto.output), proto.op_type))
                self.outer = self.outer if self.depth else k.prefix
                results = self.results(k, node)
        except (RefusedError, MemoryError) as error:
            self.refuse(_kind(proto), str(error))
            return
        self._bind(k, node, proto.output, results)

    def _name(self, name: str) -> str:
        """Name a result: those in bodies and graphs of a node after that node's own."""
        return f"{self.outer}/{name}" if self.depth else name

    def _node(self, proto: NodeProto, scope: Scope, read: Container[str]) -> Node:
        domain = "" if proto.domain in STANDARD else proto.domain
        return Node(
            proto.op_type,
            self.opsets.get(domain, 1),
            [scope[name] if name else None for name in proto.input],
            [name if name in read else "" for name in proto.output],
            self._attributes(proto),
            proto.name,
            domain,
            proto,
        )

    def _attributes(self, proto: NodeProto) -> dict[str, object]:
        """Read a node's attributes; what is cast to 16 bits gets 32 where these are computed."""
        attributes = {a.name: attribute_value(a, self.folder) for a in proto.attribute}
        if self.is_half and proto.op_type == "Cast" and attributes.get("to") == _HALF:
            attributes["to"] = _FLOAT
        return attributes

    def results(self, k: Building, node: Node) -> list[Value | None]:
        """Import one node: by its rule, where that refuses by its body. Raises the rule's
        RefusedError where it has none.
        """
        rule = find_rule(node.domain, node.kind)
        try:
            if rule is None:
                raise RefusedError("there is no rule for it")
            made = rule(k, node)
            return [made] if isinstance(made, Value) else list(made)
        except FormatError:
            raise
        except (LucioleError, *SLIPS) as error:
            body = self.functions.body(node)
            if body is None or not self.widened.isdisjoint(filter(None, node.operands)):
                raise error if isinstance(error, RefusedError) else _refused(error) from None
        return self._expanded(k, node, body)

    def _expanded(self, k: Building, node: Node, body: Body) -> list[Value | None]:
        """Import a function's body in place of its node."""
        if self.depth >= DEEPEST:
            raise RefusedError(f"its functions stand in each other more than {DEEPEST} deep")
        arguments = dict(zip(body.inputs, node.operands, strict=False))
        scope = {name: value for name, value in arguments.items() if value is not None}
        before, self.opsets = self.opsets, body.opsets
        refused, self.refused = self.refused, {}
        prefix = k.prefix
        self.depth += 1
        try:
            self.run(k, body.nodes(node, scope), scope, body.outputs, body.inputs)
            if self.refused:
                kind, reason = next(iter(self.refused.items()))
                raise RefusedError(f"its body has {kind}: {reason}")
        finally:
            self.depth -= 1
            self.opsets, self.refused, k.prefix = before, refused, prefix
        return [scope.get(name) for name in body.outputs]

    def inner(self, k: Building, graph: GraphProto, arguments: Sequence[Value]) -> list[Value]:
        """Import a graph inside of a node in its place. Raises RefusedError with the first node
        that has no form.
        """
        named = {v.name: x for v, x in zip(graph.input, arguments, strict=True)}
        return self._inner(k, graph, self.scope | named)

    def called(self, k: Building, name: str, inputs: Iterable[tuple[str, Value]]) -> Building:
        """Add a graph to the model, with inputs like some values; returns its builder."""
        assert k.graph.model is not None, "a graph that is imported is one of a model"
        inner = self.building(k.graph.model.add_graph(Graph(name)))
        for hint, value in inputs:
            inner.graph.add_input(inner.name(hint), value.shape, value.dtype)
        return inner

    def outside(self, *protos: GraphProto) -> dict[str, Value]:
        """Find the values that graphs inside of a node read from outside, by their names."""
        names = dict.fromkeys(name for proto in protos for name in names_read_outside(proto))
        return {name: self.scope[name] for name in names if name in self.scope}

    def within(
        self,
        k: Building,
        proto: GraphProto,
        arguments: Sequence[Value],
        read: Mapping[str, Value],
        own: Mapping[Value, Value],
    ) -> list[Value]:
        """Import a graph inside of a node into the one that ``k`` builds, which has ``own`` values
        for those that are read from outside, and copies of constants. Raises RefusedError with the
        first node that has no form.
        """
        scope = {name: own[v] if v in own else _copied(k, v) for name, v in read.items()}
        scope |= {v.name: x for v, x in zip(proto.input, arguments, strict=True)}
        return self._inner(k, proto, scope)

    def branches(
        self, k: Building, protos: Sequence[GraphProto]
    ) -> tuple[list[Value], list[Graph]]:
        """Import graphs inside of a node, which have no inputs in the file, as graphs of their own;
        returns the values that they read from outside, which are the inputs of each, and the
        graphs. Raises RefusedError with the first node that has no form.
        """
        read = self.outside(*protos)
        values = list(dict.fromkeys(v for v in read.values() if not v.is_constant))
        graphs = []
        for proto in protos:
            name = k.name(f"{k.prefix}/{proto.name or 'branch'}")
            inner = self.called(k, name, [(value.name, value) for value in values])
            graph = inner.graph
            own = dict(zip(values, graph.inputs, strict=True))
            results = self.within(inner, proto, [], read, own)
            fixed = (value.is_input or value.is_constant for value in results)
            graph.outputs = [
                inner.copy(value) if is_fixed else value
                for value, is_fixed in zip(results, fixed, strict=True)
            ]
            graphs.append(graph)
        return values, graphs

    def _inner(self, k: Building, graph: GraphProto, scope: Scope) -> list[Value]:
        if self.depth >= DEEPEST:
            raise RefusedError(f"its graphs stand in each other more than {DEEPEST} deep")
        self.budget.spend_node()
        refused, self.refused, prefix = self.refused, {}, k.prefix
        self.depth += 1
        try:
            self.constants(k, graph.initializer, scope)
            self.run(k, graph.node, scope, [v.name for v in graph.output], names_given(graph))
            if self.refused:
                kind, reason = next(iter(self.refused.items()))
                raise RefusedError(f"its graph has {kind}: {reason}")
        finally:
            self.depth -= 1
            self.refused, k.prefix = refused, prefix
        missing = [v.name for v in graph.output if v.name not in scope]
        if missing and not self.is_whole:
            raise RefusedError("its graph reads what is not imported")
        if missing:
            raise FormatError(f"a graph returns {quoted(missing[0])}, which nothing makes")
        return [scope[v.name] for v in graph.output]

    def _bind(
        self, k: Building, node: Node, names: Sequence[str], results: Sequence[Value | None]
    ) -> None:
        """Note the results of a node by their names, which values that it made get, too."""
        for name, value in zip(names, results, strict=False):
            if not name or value is None:
                continue
            if self.is_half and value.dtype == TensorType.FLOAT16:
                value = k.cast(value, SINGLE)
            made = value.name.startswith(f"{k.prefix}/") or value.name in k.made
            if value not in node.operands and made:
                value.name = k.name(self._name(name))
                if self.depth:
                    k.made[value.name] = self.outer
            self.scope[name] = value


def in_order(protos: Sequence[NodeProto], known: Container[str]) -> list[NodeProto]:
    """Sort nodes so that each stands behind those whose results it reads, as little moved as that
    allows: some converters do not. Nodes of a circle come last, as they were.
    """
    made = {name: place for place, proto in enumerate(protos) for name in proto.output if name}
    behind: dict[int, list[int]] = defaultdict(list)
    waiting = [0] * len(protos)
    for place, proto in enumerate(protos):
        sources = {made[name] for name in names_read(proto) if name in made and name not in known}
        waiting[place] = len(sources)
        for source in sources:
            behind[source].append(place)
    ready = [place for place, count in enumerate(waiting) if not count]
    order: list[int] = []
    while ready:
        place = heappop(ready)
        order.append(place)
        for reader in behind[place]:
            waiting[reader] -= 1
            if not waiting[reader]:
                heappush(ready, reader)
    return [protos[place] for place in (*order, *sorted(set(range(len(protos))) - {*order}))]


def names_given(graph: GraphProto) -> list[str]:
    """List the names of a graph's inputs and constants; an input's constant is its default."""
    constants = [tensor.name for tensor in graph.initializer]
    defaults = set(constants)
    return [*(v.name for v in graph.input if v.name not in defaults), *constants]


def _refuse_twice(names: Iterable[str]) -> None:
    """Raise FormatError where a name stands for two values."""
    seen: set[str] = set()
    for name in names:
        if name and name in seen:
            raise FormatError(f"two values have the name {quoted(name)}")
        seen.add(name)


def names_read(proto: NodeProto) -> Iterator[str]:
    """Yield the names that a node and the graphs inside of it read."""
    yield from proto.input
    for attribute in proto.attribute:
        for graph in (attribute.g, *attribute.graphs):
            yield from (v.name for v in graph.output)
            for node in graph.node:
                yield from names_read(node)


def names_read_outside(graph: GraphProto) -> Iterator[str]:
    """Yield the names that a graph inside of a node reads and does not make itself, in order."""
    own = {*names_given(graph), *(name for node in graph.node for name in node.output)}
    read = (name for node in graph.node for name in names_read(node))
    yield from (n for n in (*read, *(v.name for v in graph.output)) if n and n not in own)


def _copied(k: Building, constant: Value) -> Value:
    """Hold a constant of another graph in this one."""
    assert constant.data is not None, "it has contents"
    copy = k.held(constant.data, k.name(constant.name), constant.dtype)
    copy.quantization = constant.quantization
    return copy


def _kind(proto: NodeProto) -> str:
    domain = "" if proto.domain in STANDARD else f"{proto.domain}::"
    return quoted(f"{domain}{proto.op_type}").strip("'\"")


def _refused(error: Exception) -> RefusedError:
    """Return the message of kernels and rules of shapes as the refusal of a rule."""
    if isinstance(error, LucioleError):
        return RefusedError(str(error))
    text = " ".join(str(error).split())
    return RefusedError(f"its rule does not take it ({type(error).__name__}: {text})")
