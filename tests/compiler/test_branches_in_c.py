"""IF and WHILE in C: calls between braces, beside the interpreter and LiteRT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from luciole.compiler.self_test import random_records, self_test
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, Model, Op, TensorType, UnsupportedError, Value
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.comparisons import Less
from luciole.ir.ops.control_flow import If, While
from luciole.ir.ops.elementwise_binary import Add, Mul, Sub
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.reduce import Sum
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.svdf import SVDF
from tests.compiler_support import built, needs_compiler, program_of, run_sound
from tests.recurrent_support import outputs_in_litert

pytestmark = needs_compiler

ROW = (1, 6)


def one(graph: Graph, op: Op) -> Value:
    return graph.append(op, f"{graph.name}_{len(graph.ops)}").results[0]


def floats(graph: Graph, *numbers: float) -> Value:
    return graph.add_constant(f"c{len(graph.values)}", np.array(numbers, np.float32))


def inputs(graph: Graph, *shapes: tuple[int, ...]) -> list[Value]:
    return [graph.add_input(f"{graph.name}_x{k}", shape) for k, shape in enumerate(shapes)]


def branches() -> Model:
    """A dense layer or a shift of a row, and the row itself or another, by whether it sums to less
    than 0.
    """
    model = Model()
    graph, dense, plain = (model.add_graph(Graph(name)) for name in ("main", "dense", "plain"))
    weights = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    (x,) = inputs(dense, ROW)
    layer = one(dense, FullyConnected(x, dense.add_constant("w", weights), None))
    dense.outputs = [one(dense, Tanh(layer)), x]
    (x,) = inputs(plain, ROW)
    whole = one(plain, Reshape(x, plain.add_constant("to", np.array(ROW, np.int32))))
    plain.outputs = [one(plain, Add(x, floats(plain, 2))), one(plain, Mul(whole, whole))]
    (x,) = inputs(graph, ROW)
    over = graph.add_constant("over", np.array([0, 1], np.int32))
    truth = one(graph, Less(one(graph, Sum(x, over)), floats(graph, 0)))
    chosen = graph.append(If(truth, (x,), then_graph=dense, else_graph=plain), "y", "z")
    late = one(graph, Sub(chosen.results[0], x))
    graph.outputs = [late, chosen.results[1]]
    return model


def loop(*, nested: bool = False) -> Model:
    """Powers of a row: two rows that change places as long as a number is below that of the input;
    ``nested`` calls a branch at each step.
    """
    model = Model()
    graph, again, step = (model.add_graph(Graph(name)) for name in ("main", "again", "step"))
    count, limit, *_ = inputs(again, (1,), (1,), ROW, ROW)
    again.outputs = [one(again, Less(count, limit))]
    count, limit, left, right = inputs(step, (1,), (1,), ROW, ROW)
    more = one(step, Add(count, floats(step, 1)))
    scaled = one(step, Add(one(step, Mul(left, floats(step, 0.5))), right))
    if nested:
        same, other = (model.add_graph(Graph(name)) for name in ("same", "other"))
        same.outputs = inputs(same, ROW)
        (x,) = inputs(other, ROW)
        other.outputs = [one(other, Tanh(x))]
        truth = one(step, Less(count, floats(step, 2)))
        choice = If(truth, (scaled,), then_graph=same, else_graph=other)
        scaled = step.append(choice, "chosen").results[0]
    step.outputs = [more, limit, right, scaled]
    limit, x = inputs(graph, (1,), ROW)
    factor = one(graph, Mul(x, floats(graph, 3)))
    start = [floats(graph, 0), limit, x, one(graph, Tanh(x))]
    whiles = While(tuple(start), condition_graph=again, body_graph=step)
    ended = graph.append(whiles, "n", "limit", "left", "right")
    graph.outputs = [one(graph, Add(ended.results[2], factor)), ended.results[3], ended.results[0]]
    return model


def check(model: Model, folder: Path, runs: list[dict[str, Array]]) -> None:
    """Compare with the interpreter and LiteRT, then run under sanitizers."""
    program = program_of(model)
    compiled = built(program, folder)
    in_litert = outputs_in_litert(model, [list(given.values()) for given in runs])
    for given, expected in zip(runs, in_litert, strict=True):
        found, wanted = compiled.run(given), Interpreter(model).run(given).values()
        for result, other, theirs in zip(found, wanted, expected, strict=True):
            np.testing.assert_allclose(result, other, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(result, theirs, rtol=1e-6, atol=1e-6)
    test = self_test(program, compiled, random_records(program))
    assert run_sound(program, folder, test) == 0


def test_one_of_two_graphs(tmp_path: Path) -> None:
    row = np.arange(6, dtype=np.float32).reshape(ROW)
    check(branches(), tmp_path, [{"main_x0": sign * row} for sign in (1, -1)])


@pytest.mark.parametrize("nested", [False, True])
def test_steps_of_a_loop(nested: bool, tmp_path: Path) -> None:
    row = np.linspace(-2, 1, 6, dtype=np.float32).reshape(ROW)
    limits = (np.array([n], np.float32) for n in (0, 1, 5))
    check(loop(nested=nested), tmp_path, [{"main_x0": n, "main_x1": row} for n in limits])


def test_states_in_a_branch_are_refused() -> None:
    model = Model()
    graph, plain, held = (model.add_graph(Graph(name)) for name in ("main", "plain", "held"))
    plain.outputs = inputs(plain, ROW)
    (x,) = inputs(held, ROW)
    state = held.add_value(Value("state", TensorType.FLOAT32, (1, 12)))
    state.is_variable = True
    weights = [
        held.add_constant(f"w{k}", np.ones((6, n), np.float32)) for k, n in enumerate((6, 2))
    ]
    held.outputs = [one(held, SVDF(x, weights[0], weights[1], None, state, rank_=1))]
    (x,) = inputs(graph, ROW)
    truth = one(
        graph,
        Less(
            one(graph, Sum(x, graph.add_constant("a", np.array([0, 1], np.int32)))),
            floats(graph, 0),
        ),
    )
    chosen = graph.append(If(truth, (x,), then_graph=plain, else_graph=held), "y")
    graph.outputs = list(chosen.results)
    with pytest.raises(UnsupportedError, match="has a state, which C forms have in the main graph"):
        program_of(model)
