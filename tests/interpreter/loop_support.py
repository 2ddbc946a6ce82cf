"""Loops written down shortly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.comparisons import Less, NotEqual
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.control_flow import While
from luciole.ir.ops.dynamic_update_slice import DynamicUpdateSlice
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.logical import LogicalAnd
from luciole.ir.ops.reduce import ReduceAny
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.select import SelectV2
from luciole.ir.ops.slice import Slice

RNG = np.random.default_rng(5)
STEPS, BATCH, INPUTS, UNITS = 5, 2, 3, 4
INT32 = TensorType.INT32
X = RNG.standard_normal((STEPS, BATCH, INPUTS)).astype(np.float32)
X[3] = X[1, 1] = 0
W = RNG.standard_normal((UNITS, INPUTS)).astype(np.float32)
V = RNG.standard_normal((UNITS, UNITS)).astype(np.float32)


@dataclass(frozen=True)
class Loop:
    """What a recurrent layer in a WHILE is like."""

    steps: int = STEPS
    length: int = STEPS
    """Of the list that it writes."""
    update: str = "slices"
    """How: by "slices", by DYNAMIC_UPDATE_SLICE, or the "last" only."""
    start: int = 0
    counter: bool = False
    """Whether the state depends on the counter itself."""
    swap: bool = False
    """Whether two states change places in every step."""
    masked: bool = False
    """Whether a state stays as it is where the input is 0."""


def constant(graph: Graph, array: Array) -> Value:
    return graph.add_constant(graph.unique_name("c"), array)


def i32(*numbers: int) -> Array:
    return np.array(numbers, np.int32)


def add(graph: Graph, op: Op) -> Value:
    return graph.append(op, graph.unique_name(f"{graph.name}/{op.kind}")).output


def graph_of_loop(model: Model, name: str, loop: Loop) -> Graph:
    """A graph with the loop's arguments: counters of steps and of time, list, states, input."""
    graph = model.add_graph(Graph(name))
    for what in ("step", "time"):
        graph.add_input(f"{name}/{what}", (), INT32)
    graph.add_input(f"{name}/list", (loop.length, BATCH, UNITS))
    for what in ("state", "other"):
        graph.add_input(f"{name}/{what}", (BATCH, UNITS))
    graph.add_input(f"{name}/x", X.shape)
    return graph


def condition(model: Model, loop: Loop) -> Graph:
    graph = graph_of_loop(model, "condition", loop)
    step, time = graph.inputs[:2]
    most = constant(graph, np.array(loop.steps + loop.start, np.int32))
    both = LogicalAnd(add(graph, Less(step, most)), add(graph, Less(time, most)))
    graph.outputs = [add(graph, both)]
    return graph


def written(
    graph: Graph, loop: Loop, items: Value, item: Value, time: Value, later: Value
) -> Value:
    """The list with one element replaced, as TensorFlow's converter does it, or in its place."""
    one, rest = constant(graph, i32(1)), constant(graph, i32(-1, -1))
    here, zeros = add(graph, Reshape(time, one)), constant(graph, i32(0, 0))
    if loop.update == "place":
        start = add(graph, Concatenation((here, zeros)))
        return add(graph, DynamicUpdateSlice(items, item, start))
    size = add(graph, Concatenation((here, rest)))
    before = add(graph, Slice(items, constant(graph, i32(0, 0, 0)), size))
    next_ = add(graph, Concatenation((add(graph, Reshape(later, one)), zeros)))
    behind = add(graph, Slice(items, next_, constant(graph, i32(-1, -1, -1))))
    return add(graph, Concatenation((before, item, behind)))


def body(model: Model, loop: Loop) -> Graph:
    graph = graph_of_loop(model, "body", loop)
    step, time, items, state, other, x = graph.inputs
    one = constant(graph, np.array(1, np.int32))
    next_step, later = add(graph, Add(step, one)), add(graph, Add(one, time))
    now = add(graph, Gather(x, time))
    sum_ = add(graph, Add(fully(graph, now, W), fully(graph, state, V)))
    if loop.counter:
        cell = add(graph, Reshape(add(graph, Gather(x, step)), constant(graph, i32(1, -1))))
        sum_ = add(graph, Mul(sum_, add(graph, Slice(cell, *firsts(graph, step)))))
    new = add(graph, Tanh(sum_))
    item = add(graph, Reshape(new, constant(graph, i32(1, BATCH, UNITS))))
    list_ = item if loop.update == "last" else written(graph, loop, items, item, time, later)
    new = masked(graph, now, new, state) if loop.masked else new
    states = (other, state) if loop.swap else (new, add(graph, Add(other, new)))
    graph.outputs = [next_step, later, list_, *states, x]
    return graph


def masked(graph: Graph, now: Value, new: Value, state: Value) -> Value:
    """The new state where one of the inputs is not 0, as Keras' Masking layer has it."""
    given = add(graph, NotEqual(now, constant(graph, np.array(0, np.float32))))
    some = add(graph, ReduceAny(given, constant(graph, i32(1)), keep_dims=True))
    return add(graph, SelectV2(some, new, state))


def firsts(graph: Graph, step: Value) -> tuple[Value, Value]:
    """A box of one element that depends on the step."""
    zero, one = constant(graph, i32(0)), constant(graph, i32(1))
    begin = add(graph, Concatenation((zero, add(graph, Reshape(step, one)))))
    return begin, constant(graph, i32(1, 1))


def fully(graph: Graph, x: Value, weights: Array) -> Value:
    return add(graph, FullyConnected(x, constant(graph, weights)))


def model_of(loop: Loop) -> Model:
    model = Model()
    main = model.add_graph(Graph("main"))
    x = main.add_input("x", X.shape)
    start = constant(main, np.array(loop.start, np.int32))
    zeros = constant(main, np.zeros((BATCH, UNITS), np.float32))
    state = main.add_input("state", (BATCH, UNITS))
    items = constant(main, np.full((loop.length, BATCH, UNITS), 7, np.float32))
    graphs = {"condition_graph": condition(model, loop), "body_graph": body(model, loop)}
    op = While.from_operands((start, start, items, state, zeros, x), graphs)
    main.append(op, *(f"result/{n}" for n in range(6)))
    main.outputs = list(op.results)
    return model


COMPILED = [
    Loop(),
    Loop(update="place"),
    Loop(update="last", length=1),
    Loop(length=STEPS + 2),
    Loop(steps=3),
    Loop(steps=0),
    Loop(steps=1),
    Loop(masked=True),
]
