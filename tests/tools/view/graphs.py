"""Graphs to draw: chains, branches, tangles, and models that are made of them."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from luciole.ir import Graph, Model, Op, UnknownOp, Value
from luciole.ir.ops.activations import Relu
from luciole.ir.ops.add_n import AddN
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.schema.enums import BuiltinOperator
from luciole.schema.tables import CallOptions, QuantizationParameters

Edge = tuple[int, int]

HOSTILE = (
    "<script>window.hacked = 1</script>",
    "</script><img src=x onerror='window.hacked = 1'>",
    '"\' onmouseover="window.hacked = 1" x=\'',
    "&lt;b&gt; {{DOCUMENT}} ${window.hacked = 1} `x` \\u003c -->",
    "שלום/مرحبا\u202egnp.exe",
    "line\nbreak\0zero\udcff",
    "n" * 3000,
    "",
)
"""Names that somebody may have put into a file."""


def chain(nodes: int) -> list[Edge]:
    """One after the other, with an edge past four of five."""
    return [(i - 1, i) for i in range(1, nodes)] + [(i - 4, i) for i in range(4, nodes, 5)]


def branchy(nodes: int) -> list[Edge]:
    """Blocks of four branches of three, joined, with an edge past each block."""
    edges, last = [], 0
    while last + 13 < nodes:
        ends = []
        for first in range(last + 1, last + 13, 3):
            edges += [(last, first), (first, first + 1), (first + 1, first + 2)]
            ends.append(first + 2)
        edges += [(end, last + 13) for end in [*ends, last]]
        last += 13
    return edges + [(i, i + 1) for i in range(last, nodes - 1)]


def tangled(nodes: int, width: int = 5) -> list[Edge]:
    """Each node uses two random ones from up to three layers above."""
    chance, edges = random.Random(1), []
    for i in range(width, nodes):
        layers = (max(0, i // width - 1 - chance.randrange(3)) for _ in range(2))
        edges += [(k, i) for k in {layer * width + chance.randrange(width) for layer in layers}]
    return edges


def network(nodes: int, edges: list[Edge], name: Callable[[int], str]) -> Model:
    """A model whose operators form a graph."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 16))
    weights = graph.add_constant("w", np.eye(16, dtype=np.float32))
    sources: list[list[int]] = [[] for _ in range(nodes)]
    for a, b in edges:
        sources[b].append(a)
    made: list[Value] = []
    for i in range(nodes):
        op = _operator(i, [made[a] for a in sources[i]] or [x], weights)
        result = graph.add_value(Value(name(i), x.dtype, (1, 16)))
        graph.append(op, results=[result])
        made.append(result)
    graph.outputs = [v for v in made if not v.users]
    return model


def _operator(i: int, given: list[Value], weights: Value) -> Op:
    if len(given) == 1:
        return FullyConnected(given[0], weights, None) if i % 3 == 0 else Relu(given[0])
    return Add(given[0], given[1]) if len(given) == 2 else AddN(tuple(given))


def nested(nodes: int = 120) -> Model:
    """Stages of blocks of branches."""
    return network(nodes, branchy(nodes), lambda i: f"net/stage{i // 40}/block{i // 14}/op{i}")


def two_graphs() -> Model:
    """A model with a graph that an operator of the main one calls."""
    model = nested(20)
    inner, _ = nested(30).graph.clone()
    inner.name = "inner"
    model.add_graph(inner)
    last = model.graph.outputs[0]
    result = model.graph.add_value(Value("called", last.dtype, last.shape))
    number = BuiltinOperator.CALL.value
    op = UnknownOp(number, [last], options_table=CallOptions(subgraph=1))
    model.graph.append(op, results=[result])
    model.graph.outputs = [result]
    return model


def odd() -> Model:
    """What is hard to draw: numbers that are not finite, no values, scalars, an operator without
    results, one that reads what a later one makes.
    """
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 40))
    nan = np.full((3, 2), np.nan, np.float32)
    words = graph.add_constant("words", np.zeros((3, 2, 2), np.int32))
    scales = [graph.add_constant(f"s{i}", a) for i, a in enumerate((nan[0], nan))]
    learned = LQFullyConnected(x, scales[0], scales[1], words, hidden_size=40)
    y = graph.append(learned, "y").output
    y.quantization = QuantizationParameters(scale=nan[0], zero_point=np.array([1, 2]))
    scalar = graph.add_constant("scalar", np.array(np.inf, np.float32))
    flags = graph.add_constant("flags", np.array([[True, False]]))
    none = graph.add_constant("none", np.zeros((0, 3), np.float16))
    halves = graph.add_constant("halves", np.linspace(-2, 2, 90).astype(np.float16).reshape(2, 45))
    graph.append(
        UnknownOp(32, [y, scalar, flags, none, halves, None], custom_code="Odd"), results=[]
    )
    graph.append(Relu(y), "z")
    graph.append(Relu(graph.values[-1]), "later")
    graph.ops.reverse()
    graph.outputs = [x, graph.values[-1]]
    return model


def hostile() -> Model:
    """A chain whose tensors, graph and description have hostile names."""
    names = iter(HOSTILE)
    model = network(len(HOSTILE), [(i - 1, i) for i in range(1, len(HOSTILE))], lambda i: "")
    model.description = HOSTILE[0]
    model.graph.name = HOSTILE[1]
    for op in model.graph.ops:
        op.output.name = next(names)
    model.graph.inputs[0].name = HOSTILE[2]
    return model
