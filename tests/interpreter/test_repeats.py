"""Loops that go on while a condition holds run as one compiled step, and give what LiteRT gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, LucioleError, Model, TensorType, Value
from luciole.ir.ops.comparisons import Less
from luciole.ir.ops.control_flow import While
from luciole.ir.ops.elementwise_binary import Add, Mul, Pow, Sub
from luciole.ir.ops.elementwise_unary import Neg
from luciole.ir.ops.embedding_lookup import EmbeddingLookup
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.reshape import Reshape
from tests.interpreter.small_graphs import add, constant, i32, with_inputs
from tests.support import Affine, invoked_again, litert

X = np.array([[1, -2, 3]], np.float32)


def f32(*numbers: float) -> Array:
    return np.array(numbers, np.float32)


def looping(model: Model, condition: Graph, body: Graph, arrays: Sequence[Array]) -> Model:
    """Let the main graph be a loop whose operands are its inputs, and the negative of its last
    result.
    """
    main = with_inputs(model, "main", arrays)
    graphs = {"condition_graph": condition, "body_graph": body}
    op = While.from_operands(tuple(main.inputs), graphs)
    main.append(op, *(f"result/{n}" for n in range(len(arrays))))
    main.outputs = [*op.results, add(main, Neg(op.results[-1]))]
    model.graphs.insert(0, model.graphs.pop())
    return model


def counting() -> tuple[Model, list[Array]]:
    """Counts up by a step to the number that is handed on, and doubles and shifts a state."""
    arrays = [i32(0), i32(1), i32(7), X]
    model = Model()
    condition, body = (with_inputs(model, name, arrays) for name in ("condition", "body"))
    condition.outputs = [add(condition, Less(condition.inputs[0], condition.inputs[2]))]
    count, step, last, state = body.inputs
    shift = constant(body, f32(0.5))
    new = add(body, Add(add(body, Mul(state, constant(body, f32(-1.25)))), shift))
    body.outputs = [add(body, Add(count, step)), step, last, new]
    return looping(model, condition, body, arrays), arrays


def swapping() -> tuple[Model, list[Array]]:
    """Exchanges two states in each of three turns."""
    arrays = [f32(0), f32(1, 2), f32(3, 4)]
    model = Model()
    condition, body = (with_inputs(model, name, arrays) for name in ("condition", "body"))
    end = constant(condition, f32(3))
    condition.outputs = [add(condition, Less(condition.inputs[0], end))]
    count, x, y = body.inputs
    body.outputs = [add(body, Add(count, constant(body, f32(1)))), y, x]
    return looping(model, condition, body, arrays), arrays


def endless() -> tuple[Model, list[Array]]:
    """Goes on while x < 5, and subtracts a step from it: for ever where that is not negative."""
    arrays = [f32(1), f32(-1)]
    model = Model()
    condition, body = (with_inputs(model, name, arrays) for name in ("condition", "body"))
    end = constant(condition, f32(5))
    condition.outputs = [add(condition, Less(condition.inputs[0], end))]
    x, step = body.inputs
    body.outputs = [add(body, Sub(x, step)), step]
    return looping(model, condition, body, arrays), arrays


def ready(model: Model, loop_limit: int = 100) -> Interpreter:
    interpreter = Interpreter(model, loop_limit=loop_limit)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Interpreter, arrays: Sequence[Array]) -> list[Array]:
    return invoked_again(interpreter, arrays)


def outputs(interpreter: Interpreter) -> list[Array]:
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def same(ours: Sequence[Array], theirs: Sequence[Array]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def is_compiled(interpreter: Interpreter) -> bool:
    return interpreter.plan.steps[0].native is not None


@pytest.mark.parametrize("start", [7, 6, 0, -30])
def test_loops_give_what_litert_gives(start: int) -> None:
    model, (_, *others) = counting()
    content, interpreter = to_bytes(model, "tflite"), ready(model)
    assert is_compiled(interpreter)
    for step, first in ((1, start), (3, start), (2, 100)):
        arrays = [i32(first), i32(step), *others[1:]]
        same(run(interpreter, arrays), litert(content, arrays))


def test_states_may_change_places() -> None:
    """LiteRT writes one over the other, so what is right is written down here."""
    model, arrays = swapping()
    interpreter = ready(model)
    assert is_compiled(interpreter)
    same(run(interpreter, arrays), [f32(3), f32(3, 4), f32(1, 2), f32(-1, -2)])


def test_a_loop_that_goes_on_is_refused_and_nothing_behind_it_runs() -> None:
    model, arrays = endless()
    interpreter = ready(model, loop_limit=5)
    assert is_compiled(interpreter)
    wanted = [f32(5), f32(-1), f32(1)]
    same(run(interpreter, arrays), wanted)
    refused = "While 'result/0': the loop goes on after 5 steps in all: raise loop_limit"
    for start, step in ((-1, -1), (1, 0)):
        with pytest.raises(LucioleError, match=refused):
            run(interpreter, [f32(start), f32(step)])
        same(outputs(interpreter), wanted)
    with pytest.raises(LucioleError, match=refused):
        interpreter.plan.run_timed()
    same(run(interpreter, arrays), wanted)


def test_a_body_with_variables_is_called_step_by_step() -> None:
    model, _ = endless()
    body = next(graph for graph in model.graphs if graph.name == "body")
    kept = body.add_value(Value("kept", TensorType.FLOAT32, (1,)))
    kept.is_variable = True
    body.outputs = [add(body, Sub(add(body, Add(body.inputs[0], kept)), body.inputs[1])), kept]
    assert ready(model).plan.steps[0].reason == "graph 'body' has variables"


def test_a_loop_around_one_is_compiled_with_it() -> None:
    model, arrays = endless()
    inner = model.graphs[0]
    inner.name, inner.outputs = "turn", inner.outputs[:2]
    outer = with_inputs(model, "while", arrays)
    end = constant(outer, f32(2))
    outer.outputs = [add(outer, Less(outer.inputs[0], end))]
    looping(model, outer, inner, arrays)
    interpreter = ready(model, loop_limit=10)
    assert is_compiled(interpreter)
    same(run(interpreter, arrays), litert(to_bytes(model, "tflite"), arrays))
    with pytest.raises(LucioleError, match="goes on after 10 steps in all"):
        run(interpreter, [f32(1), f32(0)])


def test_a_body_that_is_not_compiled_throughout_is_called_step_by_step() -> None:
    model, arrays = counting()
    body = next(graph for graph in model.graphs if graph.name == "body")
    state = add(body, Pow(body.outputs[3], constant(body, f32(2))))
    body.outputs = [*body.outputs[:3], state]
    interpreter = ready(model)
    assert interpreter.plan.steps[0].reason.startswith("POW in its body is not compiled")
    arrays[2] = i32(3)
    for ours, theirs in zip(
        run(interpreter, arrays), litert(to_bytes(model, "tflite"), arrays), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


Pick = Callable[[Graph, Value, Value], Value]


def gathered(body: Graph, numbers: Value, place: Value) -> Value:
    return add(body, Gather(numbers, place, axis=0))


def decoded(body: Graph, numbers: Value, place: Value) -> Value:
    """The element of a table of integers, whose halves are the numbers."""
    table = constant(body, np.array([[2], [4], [8], [16]], np.int8))
    Affine(0.5).give(table)
    lookup = EmbeddingLookup(add(body, Reshape(place, new_shape=(1,))), table)
    rows = body.append(lookup, "rows").output
    rows.dtype = TensorType.FLOAT32
    return add(body, Reshape(rows, new_shape=()))


def gathering(pick: Pick = gathered) -> tuple[Model, list[Array]]:
    """Adds up the elements of a list at the places that another list has, from one place on."""
    arrays = [i32(0), f32(1, 2, 4, 8), np.array([3, 0, 2], np.int32), f32(0)]
    model = Model()
    condition, body = (with_inputs(model, name, arrays) for name in ("condition", "body"))
    condition.outputs = [add(condition, Less(condition.inputs[0], constant(condition, i32(3))))]
    count, numbers, places, total = body.inputs
    element = pick(body, numbers, add(body, Gather(places, count, axis=0)))
    new = add(body, Add(total, element))
    body.outputs = [add(body, Add(count, constant(body, i32(1)))), numbers, places, new]
    return looping(model, condition, body, arrays), arrays


@pytest.mark.parametrize("pick", [gathered, decoded])
def test_a_wrong_index_in_any_turn_is_refused_and_then_forgotten(pick: Pick) -> None:
    model, arrays = gathering(pick)
    interpreter = ready(model)
    assert is_compiled(interpreter)
    for start, total in ((0, 13), (1, 5), (0, 13)):
        found = run(interpreter, [i32(start), *arrays[1:]])
        same(found[3:], [f32(total), f32(-total)])
        for places in ((9, 0, 2), (3, -1, 2), (3, 0, 4)):
            wrong = [i32(0), arrays[1], np.array(places, np.int32), arrays[3]]
            with pytest.raises(LucioleError, match=r"While 'result/0': "):
                run(interpreter, wrong)


def test_a_wrong_index_of_a_loop_that_took_too_long_is_forgotten() -> None:
    model, arrays = gathering()
    interpreter = ready(model, loop_limit=2)
    assert is_compiled(interpreter)
    with pytest.raises(LucioleError, match="goes on after 2 steps in all"):
        run(interpreter, [i32(0), arrays[1], np.array([9, 9, 2], np.int32), arrays[3]])
    same(run(interpreter, [i32(1), *arrays[1:]])[3:], [f32(5), f32(-5)])
