"""Loops over the elements of lists run as one compiled step, and give what LiteRT gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, LucioleError, Model, Op, TensorType, Value
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
from luciole.ir.passes.fuse_list_writes import fuse_list_writes
from luciole.ir.passes.remove_dead import remove_dead
from luciole.ir.passes.scans import scan_of
from tests.support import invoked_again, litert

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


def loop_of(model: Model) -> While:
    (op,) = (op for op in model.graph.ops if isinstance(op, While))
    return op


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
STEPPED = [Loop(counter=True), Loop(start=2, steps=3)]


@pytest.mark.parametrize("loop", COMPILED + STEPPED, ids=str)
def test_loops_give_what_litert_gives(loop: Loop) -> None:
    model = model_of(loop)
    state = RNG.standard_normal((BATCH, UNITS)).astype(np.float32)
    wanted = litert(to_bytes(model, "tflite"), [X, state])
    for found, result in zip(invoked_again(Interpreter(model), (X, state)), wanted, strict=True):
        np.testing.assert_allclose(found, result, rtol=0, atol=1e-5)  # sums of hyperbolic tangents


def test_states_may_change_places() -> None:
    """LiteRT writes one over the other, so NumPy is asked."""
    model, state = model_of(Loop(swap=True)), np.ones((BATCH, UNITS), np.float32)
    found = invoked_again(Interpreter(model), (X, state))[2]
    states = [state if n % 2 == 0 else 0 * state for n in range(STEPS)]
    wanted = [np.tanh(x @ W.T + s @ V.T) for x, s in zip(X, states, strict=True)]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("loop", [*COMPILED, *STEPPED, Loop(swap=True)], ids=str)
def test_which_loops_are_compiled(loop: Loop) -> None:
    interpreter = Interpreter(model_of(loop))
    interpreter.allocate_tensors()
    (step,) = interpreter.plan.steps
    assert (step.native is not None) == (loop in COMPILED)


def test_a_loop_longer_than_its_lists_is_no_scan() -> None:
    assert scan_of(loop_of(model_of(Loop(steps=STEPS + 1, update="place")))) is None


def test_the_limit_of_loops_holds_for_compiled_ones() -> None:
    interpreter = Interpreter(model_of(Loop()), loop_limit=STEPS - 1)
    interpreter.allocate_tensors()
    with pytest.raises(LucioleError, match=f"the loop goes on after {STEPS - 1} steps"):
        interpreter.invoke()


def test_memory_for_the_body_counts() -> None:
    model = model_of(Loop())
    interpreter = Interpreter(model, memory_limit=900)
    interpreter.allocate_tensors()
    assert interpreter.plan.steps[0].native is None


@pytest.mark.parametrize("update", ["slices", "place"])
def test_lists_are_written_in_place(update: str) -> None:
    model = model_of(Loop(update=update))
    body_graph = loop_of(model).body_graph
    assert fuse_list_writes(body_graph) == (update == "slices")
    remove_dead(body_graph)
    kinds = [op.kind for op in body_graph.ops]
    assert kinds.count("DYNAMIC_UPDATE_SLICE") == 1
    assert "SLICE" not in kinds
    assert not fuse_list_writes(body_graph)


def test_a_list_of_other_slices_stays() -> None:
    model = model_of(Loop())
    body_graph = loop_of(model).body_graph
    (joined,) = (
        op for op in body_graph.ops if isinstance(op, Concatenation) and len(op.inputs) == 3
    )
    joined.inputs = (joined.inputs[2], joined.inputs[1], joined.inputs[0])
    assert not fuse_list_writes(body_graph)
