"""Guarded arrays lie at an end of pages of their own, without a gap."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir import Graph, Model
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.elementwise_binary import Add
from luciole.kernels.core.allocation import Allocator, chosen, placed, use
from luciole.kernels.core.memory import Memory
from tests.guard.memory import ENDS, PAGE, Guard

SIZES = (0, 1, 63, 64, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE)


@pytest.fixture(params=ENDS)
def guard(request: pytest.FixtureRequest) -> Iterator[Guard]:
    """What memory is taken from meanwhile."""
    guard = Guard(request.param)
    before = use(guard)
    yield guard
    use(before)


def edge(guard: Guard, address: int, size: int) -> int:
    """Where the page begins, or the one before ends, that nobody may touch."""
    return address + size if guard.is_behind else address


def test_nothing_lies_between_an_array_and_its_guard(guard: Guard) -> None:
    for size in SIZES:
        array = guard.zeros(size)
        assert array.size == size
        assert not array.any()
        array[...] = 1
        assert edge(guard, array.ctypes.data, size) % PAGE == 0


def test_everything_that_kernels_touch_is_guarded(guard: Guard) -> None:
    assert chosen() is guard
    for array in (placed(np.arange(7)), guard.given(np.arange(7)), *guard.block(99, [(0, 56)] * 2)):
        assert edge(guard, array.ctypes.data, 56) % PAGE == 0
    memory = Memory()
    places = memory.keep(np.ones(7), 7), memory.keep(np.arange(7), 7), memory.scratch(14)
    assert [edge(guard, place, 56) % PAGE for place in places] == [0, 0, 0]
    record = memory.step(0, np.arange(7)).record
    assert edge(guard, record.ctypes.data, 56) % PAGE == 0


def test_every_tensor_has_memory_of_its_own(guard: Guard) -> None:
    graph = Model().add_graph(Graph("main"))
    x, c = graph.add_input("x", (7,)), graph.add_constant("c", np.ones(7, np.float32))
    y = graph.append(Tanh(graph.append(Add(x, c), "sum").output), "y").output
    graph.outputs = [graph.append(Add(y, c), "z").output]
    assert graph.model is not None
    interpreter = Interpreter(graph.model)
    interpreter.allocate_tensors()
    assert [step.native is not None for step in interpreter.plan.steps] == [True] * 3
    found = [interpreter.plan.array(value) for value in (x, c, graph.outputs[0])]
    assert [edge(guard, a.ctypes.data, 28) % PAGE for a in found if a is not None] == [0, 0, 0]


def test_a_guard_refuses_to_stand_elsewhere() -> None:
    with pytest.raises(ValueError, match="a guard stands before or behind arrays, not 'beside'"):
        Guard("beside")


def test_without_a_guard_constants_stay_where_they_are() -> None:
    array = np.arange(7)
    assert Allocator().given(array) is array
    one, other = Allocator().block(192, [(0, 56), (128, 184)])
    assert other.ctypes.data - one.ctypes.data == 128
    assert one.ctypes.data % 64 == 0
