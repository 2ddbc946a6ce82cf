"""Loops over the elements of lists run as one compiled step, and give what LiteRT gives."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter
from luciole.ir import LucioleError, Model
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.control_flow import While
from luciole.ir.passes.canonical.fuse_list_writes import fuse_list_writes
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.passes.scans import scan_of
from tests.interpreter.loop_support import (
    BATCH,
    COMPILED,
    RNG,
    STEPS,
    UNITS,
    Loop,
    V,
    W,
    X,
    model_of,
)
from tests.support import invoked_again, litert


def loop_of(model: Model) -> While:
    (op,) = (op for op in model.graph.ops if isinstance(op, While))
    return op


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
