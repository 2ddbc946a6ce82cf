"""IF, STABLEHLO_CASE and CALL run as one compiled step, and give what LiteRT gives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, LucioleError, Model, TensorType, Value
from luciole.ir.ops.comparisons import Less
from luciole.ir.ops.control_flow import Call, If, StablehloCase, While
from luciole.ir.ops.elementwise_binary import Add, Mul, Pow, Sub
from luciole.ir.ops.gather import Gather
from tests.interpreter.small_graphs import add, constant, i32, with_inputs
from tests.interpreter.test_budget import counted, hurried
from tests.ops.control_flow_support import branches
from tests.support import invoked_again, litert

RNG = np.random.default_rng(8)
X, Y = (RNG.standard_normal((2, 3)).astype(np.float32) for _ in range(2))
TRUE, FALSE = np.array(True), np.array(False)


def choosing(arrays: Sequence[Array]) -> tuple[Model, Graph, list[Graph]]:
    """A model with inputs ``condition`` and those like arrays, and two branches without steps."""
    model = Model()
    main = with_inputs(model, "main", arrays)
    sides = [with_inputs(model, name, arrays) for name in ("then", "else")]
    condition = main.add_input("condition", (), TensorType.BOOL)
    main.inputs = [condition, *main.inputs[:-1]]
    return model, main, sides


def chosen(main: Graph, then: Graph, other: Graph) -> None:
    condition, *inputs = main.inputs
    op = If(condition, tuple(inputs), then_graph=then, else_graph=other)
    main.append(op, *(f"y{n}" for n in range(len(then.outputs))))
    main.outputs = [*op.results, add(main, Add(op.results[-1], op.results[-1]))]


def is_compiled(interpreter: Interpreter) -> bool:
    return all(step.native is not None for step in interpreter.plan.steps)


def same(ours: Sequence[Array], theirs: Sequence[Array]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def test_a_branch_is_chosen_in_each_run_as_in_litert() -> None:
    model = branches()
    content, interpreter = to_bytes(model, "tflite"), Interpreter(model)
    x, y = np.array([[1, 2, 3]], np.float32), np.array([[10], [20]], np.float32)
    for condition in (TRUE, FALSE, FALSE, TRUE):
        same(invoked_again(interpreter, [condition, x, y]), litert(content, [condition, x, y]))
    assert is_compiled(interpreter)


def test_branches_may_exchange_what_they_read_or_read_nothing() -> None:
    model, main, (then, other) = choosing([X, Y])
    then.outputs = [then.inputs[1], then.inputs[0]]
    fixed = constant(other, X + 1)
    other.outputs = [fixed, add(other, Mul(other.inputs[1], fixed))]
    chosen(main, then, other)
    interpreter = Interpreter(model)
    for _ in range(2):
        same(invoked_again(interpreter, [TRUE, X, Y]), [Y, X, X + X])
        product = Y * (X + 1)
        same(invoked_again(interpreter, [FALSE, X, Y]), [X + 1, product, product + product])
    assert is_compiled(interpreter)


def test_a_wrong_index_is_refused_where_the_branch_that_reads_it_is_chosen() -> None:
    model, main, (then, other) = choosing([X, i32(0)])
    then.outputs = [add(then, Gather(then.inputs[0], then.inputs[1], axis=0))]
    other.outputs = [add(other, Gather(other.inputs[0], constant(other, i32(1)), axis=0))]
    chosen(main, then, other)
    interpreter = Interpreter(model)
    same(invoked_again(interpreter, [TRUE, X, i32(0)])[:1], [X[0]])
    assert is_compiled(interpreter)
    same(invoked_again(interpreter, [FALSE, X, i32(7)])[:1], [X[1]])
    for _ in range(2):
        with pytest.raises(LucioleError, match=r"If 'y0': .*7"):
            invoked_again(interpreter, [TRUE, X, i32(7)])
        same(invoked_again(interpreter, [FALSE, X, i32(7)])[:1], [X[1]])
    same(invoked_again(interpreter, [TRUE, X, i32(1)])[:1], [X[1]])


def counting_to(model: Model, graph: Graph, end: float, start: Value) -> Value:
    """Add a loop that counts up to a number."""
    zero = np.zeros((), np.float32)
    condition, body = (with_inputs(model, f"{graph.name}/{n}", [zero]) for n in ("c", "b"))
    last = constant(condition, np.array(end, np.float32))
    condition.outputs = [add(condition, Less(condition.inputs[0], last))]
    one = constant(body, np.ones((), np.float32))
    body.outputs = [add(body, Add(body.inputs[0], one))]
    return add(graph, While((start,), condition_graph=condition, body_graph=body))


def test_loops_in_branches_pause_and_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    told, zero = counted(monkeypatch), np.zeros((), np.float32)
    model, main, (then, other) = choosing([zero])
    first = counting_to(model, then, 40, then.inputs[0])
    then.outputs = [add(then, Add(first, constant(then, np.array(0.5, np.float32))))]
    other.outputs = [counting_to(model, other, 7, other.inputs[0])]
    chosen(main, then, other)
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    assert is_compiled(interpreter)
    hurried(interpreter)
    for condition, start, end in ((TRUE, 0, 40.5), (FALSE, 0, 7), (TRUE, 39, 40.5), (FALSE, 9, 9)):
        found = invoked_again(interpreter, [condition, np.array(start, np.float32)])
        same(found, [np.array(end, np.float32), np.array(2 * end, np.float32)])
    assert sum(told) > 10  # pauses


def test_a_loop_may_choose_in_each_turn() -> None:
    """Adds x as long as the count is less than 3, and then subtracts y."""
    arrays = [i32(0), X, Y]
    model = Model()
    main, condition, body, then, other = (
        with_inputs(model, name, arrays) for name in ("main", "condition", "body", "then", "else")
    )
    condition.outputs = [add(condition, Less(condition.inputs[0], constant(condition, i32(5))))]
    count, x, y = body.inputs
    asked = add(body, Less(count, constant(body, i32(3))))
    then.outputs = [add(then, Add(then.inputs[1], then.inputs[2]))]
    other.outputs = [add(other, Sub(other.inputs[1], other.inputs[2]))]
    new = add(body, If(asked, (count, x, y), then_graph=then, else_graph=other))
    body.outputs = [add(body, Add(count, constant(body, i32(1)))), new, y]
    loop = While(tuple(main.inputs), condition_graph=condition, body_graph=body)
    main.append(loop, "n", "x", "y")
    main.outputs = list(loop.results)
    interpreter, content = Interpreter(model), to_bytes(model, "tflite")
    for start in (0, 2, 4, 9):
        given = [i32(start), X, Y]
        same(invoked_again(interpreter, given), litert(content, given))
    assert is_compiled(interpreter)


def test_cases_and_calls_are_compiled() -> None:
    model = Model()
    main = with_inputs(model, "main", [i32(0), X, Y])
    sides = [with_inputs(model, f"side {n}", [X, Y]) for n in range(3)]
    for side, cls in zip(sides, (Add, Mul, Sub), strict=True):
        side.outputs = [add(side, cls(*side.inputs))]
    number, *inputs = main.inputs
    case = add(main, StablehloCase(number, tuple(inputs), branches=tuple(sides)))
    main.outputs = [add(main, Call((case, inputs[1]), graph_=sides[1]))]
    interpreter = Interpreter(model)
    results = [(X + Y) * Y, (X * Y) * Y, (X - Y) * Y]
    for n in (0, 1, 2, 3, -1, 1 << 30, 0):
        wanted = results[n if 0 <= n < 3 else 2]
        same(invoked_again(interpreter, [i32(n), X, Y]), [wanted])
    assert is_compiled(interpreter)


def test_a_choice_says_why_it_is_not_compiled() -> None:
    model, main, (then, other) = choosing([X, Y])
    then.outputs = [add(then, Add(then.inputs[0], then.inputs[1]))]
    other.outputs = [add(other, Pow(other.inputs[0], other.inputs[1]))]
    chosen(main, then, other)
    interpreter = Interpreter(model)
    with np.errstate(invalid="ignore"):
        same(invoked_again(interpreter, [FALSE, abs(X), Y])[:1], [np.power(abs(X), Y)])
    step = interpreter.plan.steps[0]
    assert step.reason.startswith("POW in its body is not compiled")
