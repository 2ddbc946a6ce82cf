"""Graphs and models: what holds the values and operators together, and how they are edited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from luciole.ir.dtypes import Array
from luciole.ir.errors import GraphError, ShapeError, expect
from luciole.ir.fields import for_graphs, listed
from luciole.ir.flat import FlatGraph, flat_graph, restore_graph
from luciole.ir.members import Members
from luciole.ir.name_counts import NameCounts
from luciole.ir.op import Op
from luciole.ir.places import Places
from luciole.ir.shown import Shown, Written
from luciole.ir.value import Buffer, Producer, Shape, Value, map_blocks
from luciole.schema.enums import TensorType
from luciole.schema.printable import counted, quoted


@dataclass
class Signature:
    """A named way to call a graph: each argument and result by name."""

    key: str
    graph: Graph
    inputs: list[tuple[str, Value]] = field(default_factory=list)
    outputs: list[tuple[str, Value]] = field(default_factory=list)


_FlatSignature = tuple[str, int, list[tuple[str, int]], list[tuple[str, int]]]
"""A key, the number of its graph, and arguments and results with the numbers of their tensors."""


_CONTENTS = {"values", "_inputs", "_outputs", "ops"}
_LINKS = frozenset({"model", "_name_counts", "_value_places", "_op_places", *_CONTENTS})
"""Attributes of a graph for its contents and its surroundings."""


@dataclass(eq=False)
class Model(Shown):
    """Contents of a model file. ``graphs[0]`` is the main one; ``buffers[0]`` is empty, as files
    want it. ``use_buffer_offset`` says that constants are to lie behind a file's tables.
    """

    graphs: list[Graph] = field(default_factory=list)
    description: str | None = None
    buffers: list[Buffer] = field(default_factory=lambda: [Buffer()])
    metadata: list[tuple[str, Buffer]] = field(default_factory=list)
    metadata_buffers: list[Buffer] = field(default_factory=list)
    signatures: list[Signature] = field(default_factory=list)
    use_buffer_offset: bool = False

    def __post_init__(self) -> None:
        expect(self.graphs, list, "graphs: a list of Graphs (luciole.load reads files)")

    def __repr__(self) -> str:
        buffers = {id(v.buffer): len(v.buffer) for g in self.graphs for v in g.values if v.buffer}
        ops = sum(len(graph.ops) for graph in self.graphs)
        return (
            f"<Model: {counted(len(self.graphs), 'graph')}, {counted(ops, 'operator')}, "
            f"{sum(buffers.values()):,} bytes of constants>"
        )

    @property
    def graph(self) -> Graph:
        """The main graph. Raises GraphError where there is none."""
        if not self.graphs:
            raise GraphError("the model has no graph: add_graph adds one")
        return self.graphs[0]

    def add_graph(self, graph: Graph) -> Graph:
        """Append a graph and make it part of this model."""
        expect(graph, Graph, "a Graph to add")
        if graph.model is not None and graph in graph.model.graphs:
            raise GraphError(f"graph {graph.name!r} belongs to a model already: add its clone()")
        graph.model = self
        self.graphs.append(graph)
        return graph

    def replace_buffer(self, old: Buffer, new: Buffer) -> None:
        """Remove a buffer that no tensor and no metadata holds any more; another one gets its
        number.
        """
        held = [value.buffer for graph in self.graphs for value in graph.values]
        held += [*(buffer for _, buffer in self.metadata), *self.metadata_buffers]
        kept = any(buffer is old for buffer in held)
        for place, buffer in enumerate(self.buffers):
            if buffer is old and place > 0 and not kept:  # files want the first one empty
                self.buffers[place] = new

    def __getstate__(self) -> dict[str, Any]:
        """Pickle everything, with the graphs as flat lists."""
        graphs = {graph: number for number, graph in enumerate(self.graphs)}
        flat = [flat_graph(graph, graphs) for graph in self.graphs]
        signatures = [_flat_signature(s, graphs) for s in self.signatures]
        return vars(self) | {"graphs": flat, "signatures": signatures}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.graphs = []
        for _ in state["graphs"]:
            self.add_graph(Graph())
        for graph, flat in zip(self.graphs, state["graphs"], strict=True):
            restore_graph(graph, flat, self.graphs)
        self.signatures = [_restored_signature(s, self.graphs) for s in state["signatures"]]

    def __copy__(self) -> Model:
        return self.clone()

    def clone(self) -> Model:
        """Copy the model, so that it can be edited without touching this one. Constants' bytes are
        shared.
        """
        copy = Model(
            [],
            self.description,
            list(self.buffers),
            list(self.metadata),
            list(self.metadata_buffers),
            use_buffer_offset=self.use_buffer_offset,
        )
        maps: dict[int, dict[Value, Value]] = {}
        for graph in self.graphs:
            new, values = graph.clone()
            copy.add_graph(new)
            maps[id(graph)] = values
        copies = dict(zip(self.graphs, copy.graphs, strict=True))
        for op in all_ops(copy.graphs):
            for field_ in op.attr_fields():
                if field_.is_graph:
                    called = getattr(op, field_.name)
                    setattr(op, field_.name, for_graphs(called, lambda g: copies.get(g, g)))
        for s in self.signatures:
            values = maps[id(s.graph)]
            new = copy.graphs[self.graphs.index(s.graph)]
            inputs, outputs = ([(n, values[v]) for n, v in side] for side in (s.inputs, s.outputs))
            copy.signatures.append(Signature(s.key, new, inputs, outputs))
        return copy


class _Ends(Members[Value]):
    """The inputs or the outputs of a graph."""

    def check(self, member: object) -> None:
        """Refuse other things than tensors. Raises LucioleError."""
        expect(member, Value, "an input or output of a graph: a tensor")


class Graph(Written):
    """One function: inputs, outputs, and operators in the order in which they run.

    ``values`` are all tensors in file order, used or not; a value's place there is its tensor
    index.
    """

    def __init__(self, name: str | None = None) -> None:
        expect(name, (str, type(None)), "the name of a graph: a text")
        self.name = name
        self.model: Model | None = None
        self.values: list[Value] = []
        self._inputs, self._outputs = _Ends(), _Ends()
        self.ops: list[Op] = []
        self.debug_metadata_index = -1
        self._name_counts: NameCounts | None = None
        self._value_places: Places[Value] = Places()
        self._op_places: Places[Op] = Places()

    def __repr__(self) -> str:
        sizes = counted(len(self.ops), "operator"), counted(len(self.values), "tensor")
        return f"<Graph {quoted(self.name)}: {', '.join(sizes)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a graph of a model as its number there, with the model."""
        if self.model is not None and self in self.model.graphs:
            return _graph_of, (self.model, self.model.graphs.index(self))
        return Graph, (), flat_graph(self, {self: 0})

    def __setstate__(self, flat: FlatGraph) -> None:
        restore_graph(self, flat, [self])

    def __copy__(self) -> Graph:
        return self.clone()[0]

    def own_attributes(self) -> dict[str, Any]:
        """Gather a graph's attributes without its contents and the model around it."""
        return {name: held for name, held in vars(self).items() if name not in _LINKS}

    @property
    def inputs(self) -> list[Value]:
        """Tensors that the caller gives."""
        return self._inputs

    @inputs.setter
    def inputs(self, values: Iterable[Value]) -> None:
        self._inputs = self._ends("inputs", values)

    @property
    def outputs(self) -> list[Value]:
        """Tensors that the caller gets."""
        return self._outputs

    @outputs.setter
    def outputs(self, values: Iterable[Value]) -> None:
        self._outputs = self._ends("outputs", values)

    def _ends(self, side: str, values: Iterable[Value]) -> _Ends:
        """Make the list of the graph's inputs or outputs; ``verify`` names foreign ones."""
        ends = _Ends(listed(values, f"Graph.{side}"))
        for value in ends:
            expect(value, Value, f"Graph.{side}: a tensor in each place")
        return ends

    def add_value(self, value: Value) -> Value:
        """Append a tensor."""
        expect(value, Value, "a tensor to add")
        if value.graph is not None:
            raise GraphError(f"tensor {value.name!r} belongs to a graph already")
        value.graph = self
        self._value_places.note(value, len(self.values))
        self.values.append(value)
        if self._name_counts is not None:
            self._name_counts.add(value.name)
        return value

    def add_input(self, name: str, shape: Shape, dtype: TensorType = TensorType.FLOAT32) -> Value:
        """Append a tensor that the caller provides."""
        value = Value(name, dtype, shape)
        if any(extent < 0 for extent in value.dims):
            raise ShapeError(f"{name!r} has extents below 0, {value.dims}: None is an open one")
        self.add_value(value)
        self.inputs.append(value)
        return value

    def add_constant(self, name: str, array: Array, dtype: TensorType | None = None) -> Value:
        """Append a tensor with contents."""
        value = Value(name, TensorType.FLOAT32)
        value.make_constant(array, dtype)
        return self.add_value(value)

    def append(self, op: Op, *names: str, results: Sequence[Value] | None = None) -> Op:
        """Add an operator at the end. See ``insert_before``."""
        return self._insert(len(self.ops), op, names, results)

    def insert_before(
        self, anchor: Op, op: Op, *names: str, results: Sequence[Value] | None = None
    ) -> Op:
        """Add an operator right before another; its results get the given names, inferred shapes
        and dtypes, or are ``results``, tensors of the graph that nothing computes.

        Raises GraphError when the operator is in a graph already or an operand is of another graph.
        """
        return self._insert(self._place_of(anchor), op, names, results)

    def insert_after(
        self, anchor: Op, op: Op, *names: str, results: Sequence[Value] | None = None
    ) -> Op:
        """Add an operator right after another. See ``insert_before``."""
        return self._insert(self._place_of(anchor) + 1, op, names, results)

    def _place_of(self, op: Op) -> int:
        expect(op, Op, "an operator of the graph")
        if op.graph is not self:
            raise GraphError(f"{op} is not in this graph")
        return self._op_places.find(self.ops, op)

    def _insert(
        self, place: int, op: Op, names: Sequence[str], results: Sequence[Value] | None
    ) -> Op:
        expect(op, Op, "an operator to insert")
        if op.graph is not None:
            raise GraphError(f"{op} is in a graph already")
        for value in op.operands:
            if value is not None and value.graph is not self:
                raise GraphError(f"{op}: operand {value.name!r} is not of this graph")
        results = None if results is None else listed(results, "results")
        for value in results or ():
            expect(value, Value, "results: a tensor in each place")
            if value.producer is not None:
                raise GraphError(f"{op}: {value.producer.op} computes {value.name!r} already")
        op.results = tuple(self._new_results(op, names) if results is None else results)
        for index, value in enumerate(op.results):
            value.producer = Producer(op, index)
        op.graph = self
        self.ops.insert(place, op)
        self._op_places.note(op, place)
        return op

    def _new_results(self, op: Op, names: Sequence[str]) -> Iterator[Value]:
        shapes, types = op.result_shapes(), op.result_dtypes()
        if len(names) != len(shapes):
            raise GraphError(f"{op.kind} has {len(shapes)} results, {len(names)} names were given")
        for name, shape, dtype in zip(names, shapes, types, strict=True):
            yield self.add_value(Value(name, dtype, shape))

    def remove(self, op: Op) -> None:
        """Take an operator and its results out. Raises GraphError while a result is used."""
        place = self._place_of(op)
        for value in op.results:
            if value.users or value.is_output:
                user = "the graph's caller" if value.is_output else str(value.users[0].op)
                raise GraphError(f"{op} cannot be removed: {value.name!r} is used by {user}")
        for slot in range(len(op.operands)):
            op.set_operand(slot, None)
        for value in op.results:
            self._drop(value)
        op.graph = None
        del self.ops[place]
        self._op_places.forget(op)

    def remove_value(self, value: Value) -> None:
        """Take a tensor out that nothing uses any more. Raises GraphError for any other."""
        expect(value, Value, "a tensor of the graph")
        if value.graph is not self:
            raise GraphError(f"tensor {value.name!r} is not in this graph")
        if value.producer is not None:
            raise GraphError(f"tensor {value.name!r} is computed by {value.producer.op}: remove it")
        if value.users or value.is_input or value.is_output:
            user = str(value.users[0].op) if value.users else "the graph's caller"
            raise GraphError(f"tensor {value.name!r} is used by {user}")
        self._drop(value)

    def _drop(self, value: Value) -> None:
        value.graph = value.producer = None
        del self.values[self._value_places.find(self.values, value)]
        self._value_places.forget(value)
        if self._name_counts is not None:
            self._name_counts.drop(value.name)

    def unique_name(self, name: str) -> str:
        """Make a name unique: itself, or with the first free ``_1``, ``_2``, ... behind it."""
        counts = self._name_counts
        if counts is None or counts.total != len(self.values):  # the list was changed itself
            counts = self._name_counts = NameCounts(value.name for value in self.values)
        return counts.free(name)

    def count_renamed(self, old: str, new: str) -> None:
        """Note that a tensor of the graph changes its name: the tensor itself says so."""
        if self._name_counts is not None:
            self._name_counts.drop(old)
            self._name_counts.add(new)

    def rename_in_signatures(self, old: Value, new: Value) -> None:
        """Name another value in the model's signatures."""
        for signature in self.model.signatures if self.model else ():
            if signature.graph is self:
                signature.outputs = [(n, new if v is old else v) for n, v in signature.outputs]

    def clone(self) -> tuple[Graph, dict[Value, Value]]:
        """Copy the graph, and return the copy with the map from this graph's values to its own.
        Constants are shared.
        """
        copy = Graph(self.name)
        copy.debug_metadata_index = self.debug_metadata_index
        values = {value: copy.add_value(value.clone()) for value in self.values}
        for value, twin in values.items():
            twin.block_tensors = map_blocks(value.block_tensors, values.get)
        copy.inputs = [values[v] for v in self.inputs]
        copy.outputs = [values[v] for v in self.outputs]
        for op in self.ops:
            new = op.clone([None if v is None else values[v] for v in op.operands])
            new.intermediates = tuple(values[v] for v in op.intermediates)
            copy.append(new, results=[values[v] for v in op.results])
        return copy, values


def _graph_of(model: Model, number: int) -> Graph:
    return model.graphs[number]


def _flat_signature(signature: Signature, graphs: dict[Graph, int]) -> _FlatSignature:
    if signature.graph not in graphs:
        raise GraphError(f"signature {signature.key!r} is of a graph that is not in the model")
    values = {value: number for number, value in enumerate(signature.graph.values)}
    inputs, outputs = (
        [(name, values[value]) for name, value in side]
        for side in (signature.inputs, signature.outputs)
    )
    return signature.key, graphs[signature.graph], inputs, outputs


def _restored_signature(flat: _FlatSignature, graphs: list[Graph]) -> Signature:
    key, number, *sides = flat
    values = graphs[number].values
    inputs, outputs = ([(name, values[n]) for name, n in side] for side in sides)
    return Signature(key, graphs[number], inputs, outputs)


def all_ops(graphs: Iterable[Graph]) -> Iterator[Op]:
    """List every operator of several graphs."""
    for graph in graphs:
        yield from graph.ops
