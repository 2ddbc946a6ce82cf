"""Where tensors live: lifetimes, places used again, and reading what made room for others."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.interpreter import Interpreter, compile_graph
from luciole.interpreter.memory import MemoryLimitError, layout_within, take
from luciole.interpreter.signature_runner import SignatureRunner
from luciole.ir import Graph, Model, Signature, TensorType, Value
from luciole.ir.analysis.lifetimes import Lifetime, lifetimes, shared_places
from luciole.ir.ops.activations import Relu, Tanh
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.squeeze import Squeeze
from tests.networks import random

BLOCK = 64 * 1024


def tensor(name: str, count: int) -> Value:
    return Value(name, TensorType.FLOAT32, (count,))


def chain(length: int, count: int = BLOCK // 4) -> Model:
    """TANH after TANH; tensor i is ``t{i}``."""
    graph = Model().add_graph(Graph("main"))
    value = graph.add_input("t0", (count,))
    for number in range(length):
        value = graph.append(Tanh(value), f"t{number + 1}").output
    graph.outputs = [value]
    assert graph.model is not None
    return graph.model


# --------------------------------------------------------------------------------- placing
@pytest.mark.usefixtures("without_guard")
def test_tensors_lie_at_multiples_of_64_bytes_and_do_not_overlap() -> None:
    values = [tensor(f"v{n}", n) for n in (1, 0, 17, 3, 64)]
    arrays = take(layout_within(10**6, dict.fromkeys(values, Lifetime(0, 1)), {}))
    assert [arrays[v].shape for v in values] == [(1,), (0,), (17,), (3,), (64,)]
    for number, value in enumerate(values):
        assert arrays[value].size == 0 or arrays[value].ctypes.data % 64 == 0
        arrays[value][...] = number
    for number, value in enumerate(values):
        assert (arrays[value] == number).all()


@pytest.mark.usefixtures("without_guard")
def test_what_lasts_for_good_lies_below_all_else() -> None:
    short, long = [tensor(f"s{n}", 16 * n) for n in (9, 8, 7)], [tensor(f"l{n}", 16) for n in "ab"]
    lives = {v: Lifetime(n, n + 1) for n, v in enumerate(short)}
    lives |= dict.fromkeys(long, Lifetime(-1, 5))
    layout = layout_within(10**6, lives, {})
    arrays = take(layout)
    lowest = min(array.ctypes.data for array in arrays.values())
    begins = {v.name: array.ctypes.data - lowest for v, array in arrays.items()}
    base = 2 * 64
    assert begins == {"la": 0, "lb": 64, "s9": base, "s8": base + 9 * 64, "s7": base}
    assert layout.size == base + 17 * 64


@pytest.mark.parametrize("seed", range(20))
def test_what_lives_together_does_not_overlap_and_what_was_overwritten_is_known(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lives = {}
    for number in range(60):
        first = int(rng.integers(-1, 40))
        lives[tensor(f"v{number}", int(rng.integers(0, 500)))] = Lifetime(
            first, first + int(rng.integers(0, 10))
        )
    layout = layout_within(10**6, lives, {})
    arrays = take(layout)
    written = set()
    for now in range(-1, 51):
        for number, (value, life) in enumerate(lives.items()):
            if life.first == now:
                arrays[value][...] = number
                written.add(value)
        for number, (value, life) in enumerate(lives.items()):
            if life.first <= now <= life.last:
                assert (arrays[value] == number).all()
    spoiled = {v for n, v in enumerate(lives) if not (arrays[v] == n).all()}
    assert spoiled <= layout.overwritten < written
    most = max(
        sum(-(-4 * v.dims[0] // 64) * 64 for v, life in lives.items() if life[0] <= t <= life[1])
        for t in range(51)
    )
    assert most <= layout.size <= 1.3 * most


def test_allocation_refuses_what_is_too_large_and_names_it() -> None:
    lives = {tensor("small", 8): Lifetime(0, 1), tensor("large", 5000): Lifetime(0, 1)}
    with pytest.raises(MemoryLimitError, match=r"'large' \[5000\] needs memory beyond the limit"):
        layout_within(10_000, lives, {})


# ------------------------------------------------------------------------------ in a model
def test_a_chain_needs_memory_for_its_input_and_two_tensors() -> None:
    interpreter = Interpreter(chain(12))
    interpreter.allocate_tensors()
    assert interpreter.arena_bytes == 3 * BLOCK
    kept = Interpreter(chain(12), keep_tensors=True)
    kept.allocate_tensors()
    assert kept.arena_bytes == 13 * BLOCK


def test_graphs_of_signatures_keep_their_tensors_where_the_interpreter_does() -> None:
    model, x = chain(12), random(0, BLOCK // 4)
    graph, other = model.graph, model.add_graph(Graph("other"))
    ends = [("x", graph.inputs[0])], [("y", graph.outputs[0])]
    model.signatures = [Signature("chain", graph, *ends)]
    assert runner(model, other, keep_tensors=False)(x=x).keys() == {"y"}
    with pytest.raises(MemoryLimitError, match="needs memory beyond the limit"):
        runner(model, other, keep_tensors=True)(x=x)


def runner(model: Model, graph: Graph, *, keep_tensors: bool) -> SignatureRunner:
    """That of the only signature, from an interpreter of another graph with room for 4 tensors."""
    interpreter = Interpreter(model, graph=graph, memory_limit=4 * BLOCK, keep_tensors=keep_tensors)
    return interpreter.get_signature_runner()


def test_every_tensor_can_be_read_all_the_same() -> None:
    interpreter = Interpreter(chain(5))
    x = random(0, BLOCK // 4)
    wanted = [x]
    for _ in range(5):
        wanted.append(np.tanh(wanted[-1]))
    interpreter.run(x)
    for number in (5, 0, 2, 1, 3, 4):
        np.testing.assert_allclose(interpreter.get_tensor(number), wanted[number], atol=1e-6)
    interpreter.run(-x)
    np.testing.assert_allclose(interpreter.tensor(2)(), -wanted[2], atol=1e-6)


def test_views_of_input_and_output_stay_those_of_the_plan() -> None:
    interpreter = Interpreter(chain(3))
    interpreter.allocate_tensors()
    x, y = interpreter.tensor(0)(), interpreter.tensor(3)()
    for seed in range(2):
        x[...] = random(seed, BLOCK // 4)
        interpreter.invoke()
        np.testing.assert_allclose(y, np.tanh(np.tanh(np.tanh(x))), atol=1e-6)


# ----------------------------------------------------------------------------- shared places
def reshapes() -> Graph:
    """RELU, then two operators that only reshape, then ADD of both ends."""
    graph = Model().add_graph(Graph("main"))
    relu = graph.append(Relu(graph.add_input("x", (2, 1, 6))), "relu").output
    flat = graph.append(Reshape(relu, None, new_shape=(12,)), "flat").output
    back = graph.append(Reshape(flat, None, new_shape=(2, 1, 6)), "back").output
    squeezed = graph.append(Squeeze(back, squeeze_dims=(1,)), "squeezed").output
    graph.append(Add(squeezed, squeezed), "sum")
    graph.outputs = [graph.values[-1], flat]
    return graph


def test_reshaped_tensors_share_their_operand_s_place() -> None:
    graph = reshapes()
    assert graph.model is not None
    assert {v.name: p.name for v, p in shared_places(graph.ops).items()} == {
        "flat": "relu",
        "back": "relu",
        "squeezed": "relu",
    }
    interpreter = Interpreter(graph.model)
    x = random(3, 2, 1, 6)
    found = interpreter.run(x)
    np.testing.assert_array_equal(found["flat"], np.maximum(x, 0).reshape(12))
    np.testing.assert_array_equal(found["sum"], 2 * np.maximum(x, 0).reshape(2, 6))
    plan = compile_graph(graph, {graph.inputs[0]: (2, 1, 6)})
    assert [s.op.name for s in plan.steps if s.nothing_to_do] == ["flat", "back", "squeezed"]


def test_a_shared_place_lives_as_long_as_all_who_use_it() -> None:
    graph = reshapes()
    found = lifetimes(graph, graph.ops, shared_places(graph.ops))
    assert {v.name: life for v, life in found.items()} == {
        "x": Lifetime(-1, 5),
        "relu": Lifetime(0, 5),
        "sum": Lifetime(4, 5),
    }


def test_an_input_that_would_be_an_output_is_copied() -> None:
    graph = Model().add_graph(Graph("main"))
    x = graph.add_input("x", (2, 6))
    graph.outputs = [graph.append(Reshape(x, None, new_shape=(12,)), "flat").output]
    assert graph.model is not None
    interpreter = Interpreter(graph.model)
    y = interpreter.run(random(1, 2, 6))["flat"]
    interpreter.set_tensor(0, random(2, 2, 6))
    np.testing.assert_array_equal(interpreter.get_tensor(1), y)


def test_a_variable_keeps_a_place_of_its_own() -> None:
    graph = Model().add_graph(Graph("main"))
    graph.append(Relu(graph.add_input("x", (4,))), "y")
    state = graph.add_value(Value("state", TensorType.FLOAT32, (4,)))
    state.is_variable = True
    graph.append(Reshape(state, None, new_shape=(2, 2)), "seen")
    graph.outputs = [graph.values[-1]]
    assert shared_places(graph.ops) == {}
    assert lifetimes(graph, graph.ops, {})[state] == Lifetime(-1, 2)


# -------------------------------------------------------------------------------- timing
def test_every_step_is_timed_and_computes_as_ever() -> None:
    graph = reshapes()
    plan = compile_graph(graph, {graph.inputs[0]: (2, 1, 6)})
    given, result = plan.array(graph.inputs[0]), plan.array(graph.outputs[0])
    assert given is not None
    assert result is not None
    given[...] = 1
    times = plan.run_timed()
    assert times.shape == (5,)
    assert list(times[1:4]) == [0, 0, 0]
    assert times[0] > 0
    assert times[4] > 0
    assert (result == 2).all()
