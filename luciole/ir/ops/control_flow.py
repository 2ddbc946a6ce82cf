"""Operators that call other graphs: IF, WHILE, CALL, CALL_ONCE, STABLEHLO_CASE, _COMPOSITE."""

from collections.abc import Iterator, Sequence

from luciole.ir.calls import merged, mismatches, result_shapes
from luciole.ir.errors import ShapeError
from luciole.ir.fields import attr, operand, operands, subgraph, subgraphs
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.rules import agree
from luciole.ir.value import UNRANKED, Shape, Value
from luciole.schema.enums import BuiltinOperator, CustomOptionsFormat, TensorType

MOST_ROUNDS = 8
"""How often a loop's body is inferred: each round that changes anything makes an extent unknown,
and what depends on it in the next one.
"""


class Calling(Op):
    """Operators that call graphs: a result for each output of a graph."""

    variadic_results = True
    stateful = True

    @property
    def passed(self) -> tuple[Value, ...]:
        """Tensors of the extents that the inputs of the called graphs have."""
        return ()

    def _graph(self, name: str) -> Graph:
        graph = getattr(self, name)
        if not isinstance(graph, Graph):
            raise ShapeError(f"{name} is not given")
        return graph


class If(Calling, code=BuiltinOperator.IF, options="IfOptions"):
    """Results of ``then_graph`` for the inputs, of ``else_graph`` where the condition is false.

    Results of both may differ in extents and ranks.
    """

    condition: Value = operand(dtype=(TensorType.BOOL,))
    inputs: tuple[Value, ...] = operands()

    then_graph: Graph = subgraph(field="then_subgraph_index", dump="then_subgraph_index")
    else_graph: Graph = subgraph(field="else_subgraph_index", dump="else_subgraph_index")

    @property
    def passed(self) -> tuple[Value, ...]:
        """The inputs."""
        return self.inputs

    def infer_shape(self, /) -> tuple[Shape, ...]:
        shapes = [value.shape for value in self.inputs]
        graphs = [self._graph(name) for name in ("then_graph", "else_graph")]
        first, second = _of_branches(graphs, shapes)
        if len(first) != len(second):
            raise ShapeError(f"one graph has {len(first)} outputs, the other {len(second)}")
        return merged(first, second)

    def infer_dtype(self, /) -> tuple[TensorType, ...]:
        return tuple(value.dtype for value in self._graph("then_graph").outputs)

    def verify(self, /) -> Iterator[str]:
        for graph in self.called_graphs():
            yield from mismatches(self.inputs, graph.inputs, "inputs", graph)
            yield from mismatches(self.results, graph.outputs, "results", graph)


def _of_branches(graphs: Sequence[Graph], shapes: Sequence[Shape]) -> list[tuple[Shape, ...]]:
    """Infer the results of two graphs. One that does not take these extents returns nothing, but is
    refused when it is chosen: in its place the other one stands twice. Raises ShapeError where
    neither takes them.
    """
    results, errors = [], []
    for graph in graphs:
        try:
            results.append(result_shapes(graph, shapes))
        except ShapeError as error:
            errors.append(error)
    if not results:
        raise errors[0]
    return [results[0], results[-1]]


class StablehloCase(Calling, code=BuiltinOperator.STABLEHLO_CASE, options="StablehloCaseOptions"):
    """Results of the branch with a number for the inputs: the last one's for numbers that none has.

    Results of the branches may differ in extents and ranks.
    """

    index: Value = operand(dtype=(TensorType.INT32,))
    inputs: tuple[Value, ...] = operands()

    branches: tuple[Graph, ...] = subgraphs(field="branch_subgraph_indices")

    @property
    def passed(self) -> tuple[Value, ...]:
        """The inputs."""
        return self.inputs

    def infer_shape(self, /) -> tuple[Shape, ...]:
        if not self.branches:
            raise ShapeError("it has no branches")
        shapes = [value.shape for value in self.inputs]
        first, *others = (result_shapes(graph, shapes) for graph in self.branches)
        for other in others:
            agree("outputs", len(other), len(first), "a branch", "the first one")
            first = merged(first, other)
        return first

    def infer_dtype(self, /) -> tuple[TensorType, ...]:
        return tuple(value.dtype for value in self.branches[0].outputs)

    def verify(self, /) -> Iterator[str]:
        for graph in self.branches:
            yield from mismatches(self.inputs, graph.inputs, "inputs", graph)
            yield from mismatches(self.results, graph.outputs, "results", graph)


class While(Calling, code=BuiltinOperator.WHILE, options="WhileOptions"):
    """Call ``body_graph`` on its own outputs as long as a condition holds.

    It starts on the inputs, and goes on while ``condition_graph`` returns true for what is next.
    A step may change extents and ranks.
    """

    inputs: tuple[Value, ...] = operands()

    condition_graph: Graph = subgraph(field="cond_subgraph_index", dump="cond_subgraph_index")
    body_graph: Graph = subgraph(field="body_subgraph_index", dump="body_subgraph_index")

    @property
    def passed(self) -> tuple[Value, ...]:
        """The results, whose extents are what no step changes."""
        return self.results

    def infer_shape(self, /) -> tuple[Shape, ...]:
        """Leave open the extents and ranks that a step changes, and all of them where that does not
        end soon.
        """
        body = self._graph("body_graph")
        if len(self.inputs) != len(body.outputs):
            raise ShapeError(f"{len(self.inputs)} inputs, the body has {len(body.outputs)} outputs")
        shapes = tuple(value.shape for value in self.inputs)
        for _ in range(MOST_ROUNDS):
            before, shapes = shapes, merged(shapes, result_shapes(body, shapes))
            if shapes == before:
                return shapes
        unknown: tuple[Shape, ...] = tuple(map(_open, shapes))
        same_ranks = merged(unknown, result_shapes(body, unknown)) == unknown
        return unknown if same_ranks else (UNRANKED,) * len(shapes)

    def infer_dtype(self, /) -> tuple[TensorType, ...]:
        return tuple(value.dtype for value in self._graph("body_graph").outputs)

    def verify(self, /) -> Iterator[str]:
        for graph in self.called_graphs():
            yield from mismatches(self.inputs, graph.inputs, "inputs", graph)
        body, condition = self.body_graph, self.condition_graph
        if body is not None:
            yield from mismatches(self.inputs, body.outputs, "inputs", body)
        if condition is not None and [v.dtype for v in condition.outputs] != [TensorType.BOOL]:
            yield f"graph {condition.name!r} must return one BOOL that says whether to go on"


def _open(shape: Shape) -> Shape:
    return shape if shape is UNRANKED else (None,) * len(shape)


class Delegating(Calling):
    """An operator whose results are one graph's for its operands."""

    @property
    def whole(self) -> Graph:
        """The graph. Raises ShapeError where it is not given."""
        (name,) = (field.name for field in self.attr_fields() if field.is_graph)
        return self._graph(name)

    @property
    def passed(self) -> tuple[Value, ...]:
        """The operands."""
        return tuple(self.given_operands().values())

    def infer_shape(self, /) -> tuple[Shape, ...]:
        return result_shapes(self.whole, [value.shape for value in self.given_operands().values()])

    def infer_dtype(self, /) -> tuple[TensorType, ...]:
        return tuple(value.dtype for value in self.whole.outputs)

    def verify(self, /) -> Iterator[str]:
        for graph in self.called_graphs():
            yield from mismatches(self.operands, graph.inputs, "inputs", graph)
            yield from mismatches(self.results, graph.outputs, "results", graph)


class Call(Delegating, code=BuiltinOperator.CALL, options="CallOptions"):
    """Results of another graph for the inputs."""

    inputs: tuple[Value, ...] = operands()

    graph_: Graph = subgraph(field="subgraph")


class StablehloComposite(
    Delegating, code=BuiltinOperator.STABLEHLO_COMPOSITE, options="StableHLOCompositeOptions"
):
    """An operator with a name that a runtime may know, computed by its decomposition.

    The decomposition is another graph; ``composite_attributes`` are the bytes of a FlexBuffer.
    """

    inputs: tuple[Value, ...] = operands()

    decomposition: Graph = subgraph(
        field="decomposition_subgraph_index", dump="decomposition_subgraph_index"
    )
    composite: str | None = attr(default=None, field="name", dump="name")
    composite_attributes: tuple[int, ...] = attr(default=())
    composite_attributes_format: CustomOptionsFormat = attr(default=CustomOptionsFormat.FLEXBUFFERS)
    composite_version: int = attr(default=0, field="version", dump="version")


class CallOnce(Calling, code=BuiltinOperator.CALL_ONCE, options="CallOnceOptions"):
    """Call a graph without inputs and outputs, only in the first run: it sets variables up."""

    result_names = ()

    init_graph: Graph = subgraph(field="init_subgraph_index", dump="init_subgraph_index")

    def infer_shape(self, /) -> tuple[Shape, ...]:
        return ()

    def infer_dtype(self, /) -> tuple[TensorType, ...]:
        return ()

    def verify(self, /) -> Iterator[str]:
        for graph in self.called_graphs():
            yield from mismatches((), graph.inputs, "operands", graph)
            yield from mismatches((), graph.outputs, "results", graph)
