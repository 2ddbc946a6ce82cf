"""Graphs stay consistent under every edit: users, producers, outputs, signatures, clones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Graph, GraphError, Model, ShapeError, Signature, TensorType, Use, Value
from luciole.ir.graph import all_ops
from luciole.ir.ops.activations import Relu, Tanh
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.elementwise_unary import Abs, Neg
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.split import Split
from luciole.ir.text.listing import show
from luciole.ir.unknown_op import UnknownOp
from luciole.ir.verify import verify
from luciole.schema.tables import QuantizationParameters
from tests.samples import floats


def chain() -> tuple[Model, Graph]:
    """in -> abs -> relu -> out, with a signature."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("in", (1, 4))
    a = graph.append(Abs(x), "abs").output
    graph.outputs = [graph.append(Relu(a), "out").output]
    model.signatures.append(Signature("serve", graph, [("x", x)], [("y", graph.outputs[0])]))
    return model, graph


Edit = Callable[[list[Value], Value], object]
EDITS: list[tuple[Edit, str]] = [
    (lambda ends, v: ends.append(v), "abv"),
    (lambda ends, v: ends.extend([v]), "abv"),
    (lambda ends, v: ends.insert(0, v), "vab"),
    (lambda ends, v: ends.__iadd__([v]), "abv"),
    (lambda ends, v: ends.__imul__(2), "abab"),
    (lambda ends, v: ends.__setitem__(0, v), "vb"),
    (lambda ends, v: ends.__delitem__(0), "b"),
    (lambda ends, v: ends.remove(ends[0]), "b"),
    (lambda ends, v: ends.pop(), "a"),
    (lambda ends, v: ends.pop(0), "b"),
    (lambda ends, v: ends.clear(), ""),
]


@pytest.mark.parametrize(("edit", "left"), EDITS)
def test_inputs_and_outputs_are_known_however_their_lists_are_changed(
    edit: Edit, left: str
) -> None:
    graph = Graph("main")
    values = [graph.add_value(loose(name)) for name in "abv"]
    graph.inputs = graph.outputs = values[:2]
    assert [v.is_input for v in values] == [v.is_output for v in values] == [True, True, False]
    edit(graph.inputs, values[2])
    edit(graph.outputs, values[2])
    assert "".join(v.name for v in graph.inputs) == "".join(v.name for v in graph.outputs) == left
    assert "".join(v.name for v in values if v.is_input) == "".join(sorted(set(left)))
    assert "".join(v.name for v in values if v.is_output) == "".join(sorted(set(left)))


def test_many_inputs_and_results_are_not_compared_with_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, count, compared = Model(), 200, 0
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (count,))
    axis = graph.add_constant("axis", np.array(0, np.int32))
    graph.append(Split(axis, x, num_splits=count), *[f"y{i}" for i in range(count)])
    for i in range(count):
        ones = graph.add_constant(f"c{i}", np.ones(1, np.float32))
        graph.append(Add(graph.add_input(f"x{i}", (1,)), ones), f"z{i}")
    graph.outputs = [value for op in graph.ops for value in op.results]
    content = to_bytes(model)

    def same(self: Value, other: object) -> bool:
        nonlocal compared
        compared += 1
        return self is other

    monkeypatch.setattr(Value, "__eq__", same)
    Interpreter(from_bytes(content)).allocate_tensors()
    assert compared < count


def named(graph: Graph, name: str) -> Value:
    (value,) = [v for v in graph.values if v.name == name]
    return value


def loose(name: str = "loose") -> Value:
    return Value(name, TensorType.FLOAT32, (1, 4))


def slots(value: Value) -> list[tuple[str, int]]:
    return [(use.op.name, use.slot) for use in value.users]


# --------------------------------------------------------------------------- users and operands
def test_users_follow_construction_and_assignment() -> None:
    graph = Graph()
    x, y = graph.add_input("x", (2,)), graph.add_input("y", (2,))
    op = Add(x, x)
    graph.append(op, "sum")
    assert x.users == [Use(op, 0), Use(op, 1)]
    op.x = y
    assert x.users == [Use(op, 1)]
    assert y.users == [Use(op, 0)]
    op.set_operands([y, y])
    assert (x.users, y.users) == ([], [Use(op, 0), Use(op, 1)])
    op.x = y
    assert y.users == [Use(op, 0), Use(op, 1)], "assigning the same value changes nothing"


def test_optional_operands_come_and_go() -> None:
    graph = Graph()
    x, f, b = (
        graph.add_input(n, s) for n, s in (("x", (1, 4, 4, 1)), ("f", (2, 1, 1, 1)), ("b", (2,)))
    )
    op = Conv2D(x, f, stride_w=1, stride_h=1)
    assert (op.operands, op.bias) == ((x, f), None)
    op.bias = b
    assert (op.operands, b.users) == ((x, f, b), [Use(op, 2)])
    op.bias = None
    assert (op.operands, op.bias, b.users) == ((x, f, None), None, [])


def test_an_operand_beyond_the_end_leaves_absent_ones_between() -> None:
    graph = Graph()
    a, b = graph.add_input("a", (1,)), graph.add_input("b", (1,))
    op = UnknownOp(32, [a])
    op.set_operand(3, b)
    assert op.operands == (a, None, None, b)
    assert b.users == [Use(op, 3)]


def test_a_variadic_operand_is_assigned_as_a_whole() -> None:
    graph = Graph()
    a, b, c = (graph.add_input(n, (1, 2)) for n in "abc")
    op = Concatenation((a, b, a), axis=1)
    assert op.inputs == (a, b, a)
    assert a.users == [Use(op, 0), Use(op, 2)]
    op.inputs = (c, a)
    assert op.operands == (c, a)
    assert (a.users, b.users, c.users) == ([Use(op, 1)], [], [Use(op, 0)])


def test_construction_refuses_missing_and_unknown_arguments() -> None:
    x = loose()
    with pytest.raises(TypeError, match="FullyConnected needs operand 'weights'"):
        FullyConnected(x)  # type: ignore[call-arg]  # what this test is about
    with pytest.raises(TypeError, match=r"Relu got unknown arguments \['slope'\]"):
        Relu(x, slope=1)  # type: ignore[call-arg]  # what this test is about


def test_a_class_refuses_operands_of_a_file_that_are_too_many_or_missing() -> None:
    x = loose()
    with pytest.raises(ShapeError, match="2 operands, Relu takes at most 1"):
        Relu.from_operands([x, x], {})
    with pytest.raises(ShapeError, match="operand 'weights' is missing"):
        FullyConnected.from_operands([x, None], {})
    with pytest.raises(ShapeError, match="one of the operands 'inputs' is missing"):
        Concatenation.from_operands([x, None], {})


# --------------------------------------------------------------------------------- insertion
def test_insertion_infers_names_shapes_and_types() -> None:
    _, graph = chain()
    op = graph.ops[1]
    before = graph.insert_before(op, Neg(named(graph, "abs")), "neg")
    op.set_operand(0, before.output)
    after = graph.insert_after(op, Tanh(op.output), "tanh")
    graph.outputs = [after.output]
    assert show(graph) == (
        "graph 'main'(%0: float32[1,4] 'in') -> (%4)\n"
        "%1: float32[1,4] = ABS(%0) 'abs'\n"
        "%3: float32[1,4] = NEG(%1) 'neg'\n"
        "%2: float32[1,4] = RELU(%3) 'out'\n"
        "%4: float32[1,4] = TANH(%2) 'tanh'\n"
    )
    assert all(op.graph is graph and op.output.producer == (op, 0) for op in graph.ops)


def test_insertion_refuses_an_operator_that_is_in_a_graph() -> None:
    _, graph = chain()
    with pytest.raises(GraphError, match="Abs 'abs' is in a graph already"):
        graph.append(graph.ops[0], "again")


def test_insertion_refuses_operands_of_another_graph() -> None:
    _, graph = chain()
    _, other = chain()
    with pytest.raises(GraphError, match="operand 'in' is not of this graph"):
        graph.append(Neg(other.inputs[0]), "neg")
    with pytest.raises(GraphError, match="operand 'loose' is not of this graph"):
        graph.insert_before(graph.ops[0], Neg(loose()), "neg")
    assert len(graph.ops) == 2


def test_insertion_refuses_a_result_that_is_computed_already() -> None:
    graph = Graph()
    x = graph.add_input("x", (1,))
    y = graph.append(Abs(x), "y").output
    with pytest.raises(GraphError, match="Abs '': Abs 'y' computes 'y' already"):
        graph.append(Abs(x), results=[y])
    assert len(graph.ops) == 1


def test_insertion_refuses_another_number_of_names() -> None:
    _, graph = chain()
    with pytest.raises(GraphError, match="NEG has 1 results, 2 names were given"):
        graph.append(Neg(graph.inputs[0]), "a", "b")
    assert (len(graph.ops), len(graph.values)) == (2, 3)


def test_insertion_refuses_operands_that_do_not_fit() -> None:
    _, graph = chain()
    y = graph.add_input("y", (3,))
    with pytest.raises(ShapeError, match=r"Add '': shapes \[1,4\] and \[3\] do not broadcast"):
        graph.append(Add(graph.inputs[0], y), "sum")
    assert (len(graph.ops), len(graph.values)) == (2, 4)


def test_a_graph_refuses_a_tensor_of_another_graph() -> None:
    _, graph = chain()
    with pytest.raises(GraphError, match="tensor 'in' belongs to a graph already"):
        Graph().add_value(graph.inputs[0])


# ----------------------------------------------------------------------------------- removal
def test_removal_takes_operator_results_and_uses_away() -> None:
    _, graph = chain()
    abs_, relu = graph.ops
    relu.set_operand(0, graph.inputs[0])
    result = abs_.output
    graph.remove(abs_)
    assert graph.ops == [relu]
    assert [v.name for v in graph.values] == ["in", "out"]
    assert slots(graph.inputs[0]) == [("out", 0)]
    assert (abs_.graph, result.graph, result.producer) == (None, None, None)
    graph.append(Abs(relu.output), "again")
    assert [op.name for op in graph.ops] == ["out", "again"]


def test_removal_refuses_while_a_result_is_used() -> None:
    _, graph = chain()
    with pytest.raises(GraphError, match="'abs' is used by Relu 'out'"):
        graph.remove(graph.ops[0])
    with pytest.raises(GraphError, match="'out' is used by the graph's caller"):
        graph.remove(graph.ops[1])
    assert (len(graph.ops), len(graph.values), slots(graph.inputs[0])) == (2, 3, [("abs", 0)])


# ------------------------------------------------------------------------------- replacement
def test_replacement_reaches_users_outputs_and_signatures() -> None:
    model, graph = chain()
    out = named(graph, "out")
    extra = graph.append(Neg(out), "neg")
    graph.outputs = [extra.output, out, out]
    new = graph.append(Tanh(graph.inputs[0]), "new").output
    out.replace_with(new)
    assert [v.name for v in graph.outputs] == ["neg", "new", "new"]
    assert (out.users, slots(new)) == ([], [("neg", 0)])
    assert (out.is_output, new.is_output) == (False, True)
    (signature,) = model.signatures
    assert signature.outputs == [("y", new)]
    assert signature.inputs == [("x", graph.inputs[0])]


def test_replacement_leaves_signatures_of_other_graphs_alone() -> None:
    model, graph = chain()
    second = model.add_graph(Graph("second"))
    model.signatures.append(Signature("other", second, [], [("y", second.add_input("y", ()))]))
    out = graph.outputs[0]
    out.replace_with(named(graph, "abs"))
    assert [s.outputs[0][1].name for s in model.signatures] == ["abs", "y"]


def test_replacement_by_itself_changes_nothing() -> None:
    _, graph = chain()
    before = show(graph)
    named(graph, "abs").replace_with(named(graph, "abs"))
    assert show(graph) == before
    assert slots(named(graph, "abs")) == [("out", 0)]


def test_replacement_refuses_a_tensor_of_another_graph() -> None:
    _, graph = chain()
    _, other = chain()
    with pytest.raises(GraphError, match="tensor 'in' is of another graph than 'abs'"):
        named(graph, "abs").replace_with(other.inputs[0])
    with pytest.raises(GraphError, match="tensor 'loose' is of another graph"):
        named(graph, "abs").replace_with(loose())


# ------------------------------------------------------------------------------------ the rest
def test_unique_names_skip_those_that_are_taken() -> None:
    graph = Graph()
    assert graph.unique_name("x") == "x"
    for name in ("x", "x_1", "x_3"):
        graph.add_input(name, ())
    assert graph.unique_name("x") == "x_2"
    assert graph.unique_name("y") == "y"


def test_a_clone_is_independent() -> None:
    model, graph = chain()
    scale = floats(0.5)
    graph.inputs[0].quantization = QuantizationParameters(scale=scale)
    graph.ops[0].intermediates = (graph.values[2],)
    before = show(graph)
    copy = model.clone()
    assert show(copy.graph) == before
    twin = copy.graph
    assert all(v.graph is twin for v in twin.values)
    assert all(op.graph is twin for op in twin.ops)
    assert twin.ops[0].intermediates == (twin.values[2],)
    assert copy.signatures[0].outputs == [("y", twin.outputs[0])]
    twin.outputs[0].replace_with(named(twin, "abs"))
    twin.remove(twin.ops[1])
    twin.inputs[0].name, twin.inputs[0].shape = "renamed", (None, 8)
    assert twin.inputs[0].quantization is not None
    twin.inputs[0].quantization.scale = floats(2)
    copy.description, copy.buffers[:] = "changed", []
    assert show(graph) == before
    assert (model.description, len(model.buffers)) == (None, 1)
    assert graph.inputs[0].quantization.scale is scale
    assert model.signatures[0].outputs == [("y", graph.outputs[0])]
    assert verify(model) == []


def test_all_operators_of_several_graphs() -> None:
    (_, a), (_, b) = chain(), chain()
    assert list(all_ops([a, b])) == [*a.ops, *b.ops]


def test_the_first_graph_is_the_main_one() -> None:
    model, graph = chain()
    second = model.add_graph(Graph("second"))
    assert model.graph is graph
    assert (second.model, model.graphs) == (model, [graph, second])
    assert repr(graph) == "<Graph 'main': 2 operators, 3 tensors>"


def test_a_custom_code_stays_on_one_line() -> None:
    op = UnknownOp(32, [Graph().add_input("x", (1,))], custom_code="A\nB\x1b")
    assert op.kind == r"CUSTOM(A\nB\x1b)"
    assert str(op) == r"CUSTOM(A\nB\x1b) ''"


def test_an_operator_gives_the_parts_that_it_has_and_refuses_others() -> None:
    x = Value("x", TensorType.FLOAT32, (1, 4))
    layer = FullyConnected(x, Value("weights", TensorType.FLOAT32, (2, 4)))
    assert layer.required(0) is x
    assert layer.quantized_as.weight == "weights"
    with pytest.raises(GraphError, match=r"operand 2 is absent$"):
        layer.required(2)
    with pytest.raises(GraphError, match=r"is in no graph$"):
        _ = layer.own_graph
    with pytest.raises(GraphError, match=r"is never quantized$"):
        _ = UnknownOp(1).quantized_as
    _, graph = chain()
    assert graph.ops[0].own_graph is graph
