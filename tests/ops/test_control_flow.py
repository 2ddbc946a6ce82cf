"""Operators that call other graphs, against LiteRT: values, shapes, state, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes, import_model
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, GraphError, LucioleError, Model, Op, TensorType, Value, calls
from luciole.ir.calls import DEEPEST, MOST_OPERATORS, reachable
from luciole.ir.infer import infer_op
from luciole.ir.ops.comparisons import Less
from luciole.ir.ops.control_flow import MOST_ROUNDS, Call, If, While
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.elementwise_unary import Neg
from luciole.ir.ops.expand_dims import ExpandDims
from luciole.ir.ops.reduce import Mean
from luciole.ir.ops.split import Split
from luciole.ir.ops.variables import ReadVariable, VarHandle
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.value import UNRANKED
from luciole.ir.verify import Severity, verify
from tests.ops.control_flow_support import X, Y, add_graph, branches, counter, f32, finish, growing
from tests.support import invoked_again, litert


def run(model: Model, *arrays: Array, **settings: Any) -> list[Array]:
    return invoked_again(Interpreter(model, **settings), arrays)


def same(ours: Sequence[Array], theirs: Sequence[Array]) -> None:
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("condition", [True, False])
def test_if_gives_what_litert_gives(condition: bool) -> None:
    model, arrays = branches(), (np.array(condition), X, Y)
    same(run(model, *arrays), litert(to_bytes(model, "tflite"), arrays))
    same(run(model, *arrays), [X + Y if condition else X * Y])


@pytest.mark.parametrize("start", [1, 3, 100])
def test_while_gives_what_litert_gives_when_shapes_grow(start: float) -> None:
    model, arrays = growing(20), (f32([start]), X)
    assert model.graph.outputs[1].shape == (None, 3)
    ours = run(model, *arrays)
    same(ours, litert(to_bytes(model, "tflite"), arrays))
    steps = int(np.ceil(np.log2(max(20 / start, 1))))
    same(ours, [f32([start * 2**steps]), np.repeat(X, 2**steps, axis=0)])


@pytest.mark.parametrize("start", [1, 3, 100])
def test_what_a_loop_of_growing_shapes_leaves_is_read_by_what_is_compiled(start: float) -> None:
    """One result of the loop has a place for good, the other one has other extents in each run."""
    model, arrays = growing(20), (f32([start]), X)
    main = model.graph
    last = [main.append(Neg(value), f"less {value.name}").output for value in main.outputs]
    main.outputs = [*main.outputs, *last]
    interpreter = Interpreter(model)
    for given in (arrays, (f32([7]), -X), arrays):
        ours = invoked_again(interpreter, given)
        same(ours, litert(to_bytes(model, "tflite"), given))
    assert interpreter.plan.has_tail


def test_a_step_of_while_may_swap_its_inputs() -> None:
    model = Model()
    main = model.add_graph(Graph("main"))
    inputs = [main.add_input(name, (1,)) for name in "nxy"]
    condition, body = (add_graph(model, name, (1,), (1,), (1,)) for name in ("condition", "body"))
    finish(condition, Less, condition.inputs[0], condition.add_constant("end", f32([3])))
    body.append(Add(body.inputs[0], body.add_constant("one", f32([1]))), "next")
    body.outputs = [body.ops[0].output, body.inputs[2], body.inputs[1]]
    finish(main, While, *inputs, condition_graph=condition, body_graph=body)
    arrays = [f32([n]) for n in (0, 5, 7)]
    same(run(model, *arrays), [f32([n]) for n in (3, 7, 5)])
    # LiteRT copies one over the other before it is read: 3, 7, 7


def test_call_returns_what_the_graph_does() -> None:
    model = Model()
    main = model.add_graph(Graph("main"))
    called = add_graph(model, "called", X.shape, Y.shape)
    finish(called, Add, *called.inputs)
    x, y = main.add_input("x", X.shape), main.add_input("y", Y.shape)
    finish(main, Call, x, y, graph_=called)
    same(run(model, X, Y), [X + Y])


def test_variables_outlive_a_run_as_in_litert() -> None:
    from ai_edge_litert.interpreter import Interpreter as LiteRT

    model = counter()
    ours, theirs = Interpreter(model), LiteRT(model_content=to_bytes(model, "tflite"))
    for interpreter in (ours, theirs):
        interpreter.allocate_tensors()
        number, out = (
            d[0]["index"]
            for d in (interpreter.get_input_details(), interpreter.get_output_details())
        )
        found = []
        for x in (1, 2, 10):
            interpreter.set_tensor(number, f32([x]))
            interpreter.invoke()
            found.append(float(interpreter.get_tensor(out)[0]))
        interpreter.reset_all_variables()
        interpreter.invoke()
        found.append(float(interpreter.get_tensor(out)[0]))
        assert found == [6, 8, 18, 28]


def test_signatures_of_several_graphs_share_variables() -> None:
    model = counter()
    reader = model.add_graph(Graph("reader"))
    reader.append(VarHandle(container="", shared_name="total"), "reader/handle")
    held = reader.add_value(Value("now", TensorType.FLOAT32, (1,)))
    reader.append(ReadVariable(reader.ops[0].output), results=[held])
    reader.outputs = [held]
    main = model.graph
    model.signatures = [
        luciole.ir.Signature("add", main, [("x", main.inputs[0])], [("total", main.outputs[0])]),
        luciole.ir.Signature("read", reader, [], [("now", held)]),
    ]
    from ai_edge_litert.interpreter import Interpreter as LiteRT

    for interpreter in (Interpreter(model), LiteRT(model_content=to_bytes(model, "tflite"))):
        assert interpreter.get_signature_list().keys() == {"add", "read"}
        add, read = (interpreter.get_signature_runner(key) for key in ("add", "read"))
        for x, total in ((1, 6), (2, 8)):
            assert add(x=f32([x]))["total"] == [total]
            assert read()["now"] == [total]


def test_graphs_stay_who_they_are_in_files_and_copies() -> None:
    model = branches()
    again, findings = import_model(to_bytes(model))
    copy = model.clone()
    assert not findings
    for other in (again, copy):
        op = other.graph.ops[0]
        assert isinstance(op, If)
        assert (op.then_graph, op.else_graph) == tuple(other.graphs[1:])
    assert to_bytes(again) == to_bytes(model) == to_bytes(copy)
    same(run(again, np.array(True), X, Y), [X + Y])


def test_operators_with_effects_are_never_removed() -> None:
    model = counter()
    remove_dead(model.graph)
    assert [op.kind for op in model.graph.ops] == [
        "VAR_HANDLE", "CALL_ONCE", "READ_VARIABLE", "ADD", "ASSIGN_VARIABLE",
    ]  # fmt: skip


def test_shapes_of_called_graphs_follow_the_operands() -> None:
    model = branches()
    interpreter = Interpreter(model)
    wide = f32([[1, 2, 3, 4, 5]])
    for _ in range(3):
        ours = interpreter.run({"condition": np.array(True), "x": wide, "y": Y})
        same(list(ours.values()), [wide + Y])


def test_while_refuses_to_go_on_for_ever() -> None:
    interpreter = Interpreter(growing(np.inf), loop_limit=20)
    with pytest.raises(LucioleError, match=r"goes on after 20 steps in all: raise loop_limit"):
        interpreter.run({"x": f32([0]), "y": X[:, :0]})


def test_while_refuses_memory_beyond_the_limit() -> None:
    with pytest.raises(LucioleError, match="beyond the limit"):
        run(growing(np.inf), f32([0]), X, memory_limit=100_000)


def test_verify_refuses_graphs_that_call_themselves() -> None:
    model = branches()
    op = model.graph.ops[0]
    assert isinstance(op, If)
    op.then_graph = model.graph
    assert [f.code for f in verify(model)] == ["CALLS"]
    with pytest.raises(GraphError, match="graph 'main' calls itself"):
        Interpreter(model)


def test_verify_refuses_calls_that_unfold_without_end() -> None:
    model = Model()
    graphs = [model.add_graph(Graph(str(i))) for i in range(20)]
    for caller, called in pairwise(graphs):
        for _ in range(2):
            caller.append(Call.from_operands([], {"graph_": called}), results=[])
    assert MOST_OPERATORS < 2**20
    assert "CALLS" in {f.code for f in verify(model)}
    with pytest.raises(GraphError, match="unfolds to"):
        Interpreter(model)


def chain(length: int) -> Model:
    """So many graphs, each of which calls the next; the last one returns its input."""
    model = Model()
    graphs = [add_graph(model, str(i), (2,)) for i in range(length)]
    graphs[-1].outputs = list(graphs[-1].inputs)
    for caller, called in reversed(list(pairwise(graphs))):
        caller.outputs = [caller.add_value(Value("y", TensorType.FLOAT32, (2,)))]
        op = Call.from_operands(caller.inputs, {"graph_": called})
        caller.append(op, results=caller.outputs)
    return model


def test_as_many_graphs_as_may_be_call_each_other_in_a_row() -> None:
    model = from_bytes(to_bytes(chain(DEEPEST)))
    assert invoked_again(Interpreter(model), [f32([1, 2])])[0].tolist() == [1, 2]


@pytest.mark.parametrize("length", [DEEPEST + 1, 2000])
@pytest.mark.parametrize("backwards", [False, True])
def test_verify_refuses_graphs_that_call_each_other_too_deeply(
    length: int, backwards: bool
) -> None:
    """Also where the graphs deep below were looked at before."""
    model = chain(length)
    first = model.graphs[0]
    if backwards:
        model.graphs.reverse()
    found = [f for f in verify(model) if f.code == "CALLS"]
    assert len(found) == length - DEEPEST
    assert any(f.sentence == "graph '0' calls more than 31 others in a row" for f in found)
    with pytest.raises(GraphError, match="calls more than 31 others in a row"):
        reachable(first)


def test_a_depth_below_graphs_that_are_called_directly_too_counts() -> None:
    """Each graph but the last calls all behind it, the last one first."""
    model = Model()
    graphs = [model.add_graph(Graph(str(i))) for i in range(DEEPEST + 1)]
    for place, caller in enumerate(graphs[:-1]):
        for called in (graphs[-1], graphs[place + 1]):
            caller.append(Call.from_operands([], {"graph_": called}), results=[])
    main = model.add_graph(Graph("main"))
    for called in reversed(graphs):
        main.append(Call.from_operands([], {"graph_": called}), results=[])
    with pytest.raises(GraphError, match="graph '0' calls more than 31 others in a row"):
        reachable(main)


def shifting(count: int, depth: int) -> Model:
    """Loops in loops, whose bodies shift ``count`` vectors by one and put one of another length
    first: round after round one more extent is unknown.
    """
    model = Model()
    main = add_graph(model, "main", *[(2,)] * count)
    condition = add_graph(model, "condition", *[(2,)] * count)
    condition.outputs = [condition.add_constant("no", np.array(False))]
    bodies = [add_graph(model, f"body{i}", *[(2,)] * count) for i in range(depth)]
    for body in bodies:
        body.outputs = [body.add_constant("three", f32([0, 0, 0])), *body.inputs[:-1]]
    for caller, body in pairwise([main, *bodies]):
        graphs = {"condition_graph": condition, "body_graph": body}
        results = [Value(f"y{i}", TensorType.FLOAT32, (2,)) for i in range(count)]
        caller.append(
            While.from_operands(caller.inputs, graphs), results=list(map(caller.add_value, results))
        )
    main.outputs = list(main.ops[0].results)
    return model


def test_loops_in_loops_are_inferred_once_for_the_same_shapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, count = shifting(30, 6), 0

    def counted(op: Op, *, declared: bool) -> bool:
        nonlocal count
        count += 1
        return infer_op(op, declared=declared)

    monkeypatch.setattr(calls, "infer_op", counted)
    assert not [f for f in verify(model) if f.severity is Severity.ERROR]
    assert count < 200
    Interpreter(model).allocate_tensors()
    assert count < 400


def test_a_loop_whose_extents_change_one_after_the_other_for_long_leaves_all_open() -> None:
    count = MOST_ROUNDS + 4
    model = shifting(count, 1)
    assert model.graph.ops[0].result_shapes() == ((None,),) * count
    assert shifting(3, 1).graph.ops[0].result_shapes() == ((None,),) * 3
    found = run(model, *(f32([i, i]) for i in range(count)))
    assert found[3].tolist() == [3, 3]


def test_verify_refuses_loops_in_loops_that_try_too_many_shapes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "MOST_INFERRED", 1000)
    assert "SHAPE" not in {f.code for f in verify(shifting(10, 2))}
    found = [f.sentence for f in verify(shifting(10, 4)) if f.code == "SHAPE"]
    assert any("is called with too many different shapes, by loops in loops" in s for s in found)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda op: op.set_operands(op.operands[:2]), "1 inputs, graph 'sum' has 2"),
        (lambda op: setattr(op.results[0], "dtype", TensorType.INT32), "is INT32, 'sum/y0' of"),
        (lambda op: setattr(op.operands[1], "dtype", TensorType.INT8), "is INT8, 'sum/0' of"),
        (lambda op: op.then_graph.outputs.clear(), "1 results, graph 'sum' has 0"),
    ],
)
def test_verify_refuses_calls_that_do_not_fit(change: Any, sentence: str) -> None:
    model = branches()
    change(model.graph.ops[0])
    assert any(sentence in f.sentence for f in verify(model)), verify(model)


def test_while_refuses_a_condition_that_is_no_bool() -> None:
    model = growing(3)
    model.graphs[1].outputs = list(model.graphs[1].inputs)
    found = [f.sentence for f in verify(model)]
    assert any("graph 'condition' must return one BOOL" in sentence for sentence in found)


def negated(graph: Graph) -> None:
    """Negate the last output of a graph, whatever its rank is."""
    last = graph.outputs[-1]
    graph.outputs = [*graph.outputs[:-1], graph.append(Neg(last), f"-{last.name}").output]


@pytest.mark.parametrize("condition", [True, False])
def test_if_gives_what_litert_gives_when_ranks_differ(condition: bool) -> None:
    model = branches()
    op = model.graph.ops[0]
    assert isinstance(op, If)
    mean = Mean(op.else_graph.inputs[0], axes(op))
    op.else_graph.outputs = [op.else_graph.append(mean, "mean").output]
    op.output.shape = ()
    negated(model.graph)
    assert op.result_shapes() == (UNRANKED,)
    arrays = (np.array(condition), X, Y)
    content = to_bytes(model, "tflite")
    ours = run(from_bytes(content), *arrays)
    same(ours, litert(content, arrays))
    same(ours, [-(X + Y) if condition else f32(-2)])


def axes(op: If) -> Value:
    """All axes of the inputs."""
    return op.else_graph.add_constant("axes", np.array([0, 1], "i4"))


@pytest.mark.parametrize("start", [1, 15, 100])
def test_while_gives_what_litert_gives_when_a_step_changes_a_rank(start: float) -> None:
    model = growing(20)
    op = model.graph.ops[0]
    assert isinstance(op, While)
    x, y = op.body_graph.outputs
    op.body_graph.append(ExpandDims(y, op.body_graph.add_constant("axis", np.array(0, "i4"))), "up")
    for value in (op.body_graph.inputs[1], y, op.condition_graph.inputs[1], op.results[1]):
        value.shape = ()
    op.body_graph.outputs = [x, op.body_graph.ops[-1].output]
    negated(model.graph)
    assert op.result_shapes() == ((1,), UNRANKED)
    content, arrays = to_bytes(model, "tflite"), (f32([start]), X)
    ours = run(from_bytes(content), *arrays)
    same(ours, litert(content, arrays))
    assert ours[1].ndim == 2 + int(np.ceil(np.log2(max(20 / start, 1))))


def test_a_number_that_names_no_graph_is_kept_and_refused_when_run() -> None:
    model = branches()
    content = bytearray(to_bytes(model))
    again, _ = import_model(bytes(content))
    again.graphs.pop()
    with pytest.raises(LucioleError, match="If 'main/y0' calls what is no graph of the model"):
        to_bytes(again)


def test_verify_refuses_a_call_of_a_graph_whose_operator_has_other_results() -> None:
    model = Model()
    main = model.add_graph(Graph("main"))
    called = add_graph(model, "called", (2,))
    axis = called.add_constant("axis", np.array(0, np.int32))
    finish(called, Split, axis, *called.inputs, num_splits=2)
    finish(main, Call, main.add_input("x", (2,)), graph_=called)
    split = called.ops[0]
    assert isinstance(split, Split)
    split.num_splits = 1
    found = {f.code: f.sentence for f in verify(model) if f.severity is Severity.ERROR}
    assert found.keys() == {"SHAPE", "RESULTS"}
    assert "Split 'called/y0': 1 results are computed, it has 2" in found["SHAPE"]
