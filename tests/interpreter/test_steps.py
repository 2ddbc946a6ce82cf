"""Building and running steps alone: what is compiled, what is joined, what references may give."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from luciole.interpreter import ExecutionError, compile_graph
from luciole.interpreter.contents import Contents, hold
from luciole.interpreter.memory import arena_layout
from luciole.interpreter.settle import settle
from luciole.interpreter.steps import OPEN, Run, Step, build, grouped, run_reference
from luciole.interpreter.texts import Texts
from luciole.ir import Graph, LucioleError, Model, Op, TensorType, Value
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.reshape import Reshape
from luciole.kernels.core import registry
from luciole.kernels.core.contract import Reference
from luciole.kernels.core.meter import Meter
from tests.networks import random

LIMIT = 1 << 20
X = random(0, 6)


def graph_of() -> Graph:
    """``a``, ``b`` and ``c`` have places, ``flat`` that of ``b``; an input says what shape ``late``
    has, and ``d`` after it.
    """
    graph = Model().add_graph(Graph("main"))
    x, wanted = graph.add_input("x", (6,)), graph.add_input("wanted", (2,), TensorType.INT32)
    b = graph.append(Tanh(graph.append(Tanh(x), "a").output), "b").output
    flat = graph.append(Reshape(b, None, new_shape=(6, 1)), "flat").output
    c = graph.append(Tanh(flat), "c").output
    late = graph.append(Reshape(c, wanted), "late").output
    graph.outputs = [graph.append(Tanh(late), "d").output]
    return graph


def built(graph: Graph, **kernels: Reference) -> tuple[list[Step], Contents]:
    """The steps, references of some operators replaced by name, and what they work on."""

    def find(op: Op) -> Reference:
        return kernels.get(op.name) or registry.find_reference(op)

    settled = settle(graph, {v: v.dims for v in graph.inputs}, LIMIT)
    layout = arena_layout(settled, LIMIT, keep=True)
    held = hold(settled, layout, Meter(LIMIT))
    return build(settled, layout, held, find, lambda op, arrays: OPEN), held


def by_name(held: Contents) -> dict[str, Any]:
    return {value.name: array for value, array in held.arrays.items()}


def test_what_has_places_is_compiled_and_what_stands_in_place_does_nothing() -> None:
    steps, held = built(graph_of())
    assert [s.op.name for s in steps if s.native is not None] == ["a", "b", "c"]
    assert [s.op.name for s in steps if s.nothing_to_do] == ["flat"]
    assert {v.name for v in held.late} == {"late", "d"}
    assert np.shares_memory(by_name(held)["flat"], by_name(held)["b"])


def test_steps_know_the_operators_of_the_graph_that_was_given() -> None:
    graph = graph_of()
    assert [step.source for step in built(graph)[0]] == graph.ops


def test_compiled_neighbours_run_as_one() -> None:
    steps, _ = built(graph_of())
    first, *others = grouped(steps, None)
    assert isinstance(first, Run)
    assert len(first.table) == 3
    assert others == steps[-2:]


def test_steps_in_order_compute_the_graph_and_late_tensors_are_forgotten() -> None:
    steps, held = built(graph_of())
    arrays, meter = by_name(held), Meter(LIMIT)
    arrays["x"][...], arrays["wanted"][...] = X, (2, 3)
    for step in steps:
        if not step.nothing_to_do:
            run_reference(step, held, meter)
    y = by_name(held)["d"]
    np.testing.assert_allclose(y, np.tanh(np.tanh(np.tanh(np.tanh(X)))).reshape(2, 3), atol=1e-6)
    held.forget()
    assert by_name(held).keys() == arrays.keys()


def test_a_placed_tensor_keeps_its_array() -> None:
    value, late = Value("v", TensorType.FLOAT32, (6,)), Value("l", TensorType.FLOAT32, (None,))
    place = np.zeros(6, np.float32)
    held = Contents({value: place}, [], Texts(Meter(LIMIT)), {})
    held.write(value, X)
    held.write(late, X)
    assert held.arrays[value] is place
    assert held.arrays[late] is X
    np.testing.assert_array_equal(place, X)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ((X, X), "Tanh 'd': 2 results were computed, it has 1"),
        (X.astype(np.float64), r"result 'd' is float64 \[6\], expected FLOAT32 \[\?,\?\]"),
        (X, r"result 'd' is float32 \[6\], expected FLOAT32 \[\?,\?\]"),
    ],
)
def test_a_step_refuses_results_other_than_declared(result: Any, message: str) -> None:
    steps, held = built(graph_of(), d=lambda op, x: result)
    held.write(steps[-2].op.results[0], X.reshape(2, 3))
    with pytest.raises(LucioleError, match=message):
        run_reference(steps[-1], held, Meter(LIMIT))


def test_a_step_refuses_a_late_result_beyond_the_limit() -> None:
    steps, held = built(graph_of())
    held.write(steps[-2].op.results[0], np.zeros((100, 3), np.float32))
    with pytest.raises(ExecutionError, match="would take 1200 bytes, 1199 are allowed where the"):
        run_reference(steps[-1], held, Meter(1199))


def test_a_plan_gives_its_memory_back_as_soon_as_nobody_has_it() -> None:
    """Also with references and late tensors: Python need not look for cycles."""
    graph = graph_of()
    gc.disable()
    try:
        plan = compile_graph(graph, {})
        array = plan.array(graph.inputs[0])
        assert array is not None
        array[...], given = X, plan.array(graph.inputs[1])
        assert given is not None
        given[...] = 3, 2
        plan.run()
        kept = weakref.ref(array)
        del plan, array
        assert kept() is None
    finally:
        gc.enable()
