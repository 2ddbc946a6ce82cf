"""What no output depends on goes, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Buffer, Graph, GraphError, Model, Signature, TensorType, UnknownOp, Value
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.elementwise_unary import Abs, Neg
from luciole.ir.ops.split import Split
from luciole.ir.passes import run_passes
from luciole.ir.passes.cleaning.remove_dead import remove_dead, remove_dead_buffers
from luciole.ir.text.listing import show
from tests.samples import octets


def model_with_dead_ends() -> Model:
    """y = abs(x); beside it a chain that ends nowhere, a constant and an operand of that chain."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    x, unused = graph.add_input("x", (2,)), graph.add_input("unused", (2,))
    c = graph.add_constant("c", np.ones(2, np.float32))
    graph.add_constant("loose", np.ones(3, np.float32))
    dead = graph.append(Neg(graph.append(Add(x, c), "dead 1").output), "dead 2")
    graph.append(Add(dead.output, unused), "dead 3")
    graph.outputs = [graph.append(Abs(x), "y").output]
    return model


AFTER = """\
graph 'main'(%0: float32[2] 'x', %1: float32[2] 'unused') -> (%2)
%2: float32[2] = ABS(%0) 'y'
"""


def test_dead_chains_and_constants_go_and_inputs_stay() -> None:
    model = model_with_dead_ends()
    x = {"x": np.array([-1, 2], np.float32), "unused": np.zeros(2, np.float32)}
    before = Interpreter(model.clone()).run(x)
    assert remove_dead(model.graph) is True
    assert show(model.graph) == AFTER
    np.testing.assert_array_equal(Interpreter(model).run(x)["y"], before["y"])
    assert remove_dead(model.graph) is False
    assert show(from_bytes(to_bytes(model)).graph) == AFTER


def test_an_operator_with_one_used_result_stays() -> None:
    graph = Graph()
    axis = graph.add_constant("axis", np.array(0, np.int32))
    op = graph.append(Split(axis, graph.add_input("x", (4,)), num_splits=2), "a", "b")
    graph.outputs = [op.results[1]]
    assert remove_dead(graph) is False
    assert graph.ops == [op]


def test_operators_that_may_do_more_than_compute_stay() -> None:
    graph = Graph()
    x = graph.add_input("x", (2,))
    unknown = UnknownOp(32, [x])
    graph.append(unknown, results=[graph.add_value(Value("y", TensorType.INT8))])
    state = graph.add_value(Value("state", TensorType.FLOAT32, (2,)))
    state.is_variable = True
    writer = graph.append(Add(x, state), "sum")
    graph.append(Neg(x), "dead")
    assert remove_dead(graph) is True
    assert graph.ops == [unknown, writer]
    assert state in graph.values


def test_tensors_that_signatures_and_operators_name_stay() -> None:
    model = model_with_dead_ends()
    graph = model.graph
    named = [graph.add_value(Value(name, TensorType.FLOAT32)) for name in ("s", "t", "gone")]
    graph.ops[-1].intermediates = (named[0],)
    model.signatures.append(Signature("serve", graph, [("x", named[1])], []))
    model.signatures.append(Signature("other", model.add_graph(Graph()), [], []))
    assert remove_dead(graph) is True
    assert [v.name for v in graph.values] == ["x", "unused", "y", "s", "t"]


def test_buffers_that_nothing_uses_go() -> None:
    model = model_with_dead_ends()
    model.graph.outputs.append(model.graph.values[2])
    model = from_bytes(to_bytes(model))
    kept, loose = Buffer(octets(1)), Buffer(octets(2))
    model.metadata.append(("note", kept))
    model.metadata_buffers.append(loose)
    model.buffers += [Buffer(octets(3)), kept, loose, Buffer()]
    remove_dead(model.graph)
    contents = model.graph.values[2].buffer
    assert remove_dead_buffers(model) is True
    assert model.buffers == [model.buffers[0], contents, kept, loose]
    assert len(model.buffers[0]) == 0
    assert remove_dead_buffers(model) is False
    assert [len(b) for b in from_bytes(to_bytes(model)).buffers] == [0, 8, 1, 1]


def test_passes_run_until_nothing_changes() -> None:
    graph = model_with_dead_ends().graph
    assert run_passes(graph, [remove_dead]) is True
    assert show(graph) == AFTER
    assert run_passes(graph, [remove_dead]) is False
    assert run_passes(graph, []) is False


def test_every_pass_runs_in_every_round() -> None:
    rounds: list[str] = []

    def first(_: Graph) -> bool:
        rounds.append("first")
        return rounds.count("first") < 3

    def second(_: Graph) -> bool:
        rounds.append("second")
        return False

    assert run_passes(Graph(), [first, second]) is True
    assert rounds == ["first", "second"] * 3


def test_running_refuses_passes_that_never_settle() -> None:
    with pytest.raises(GraphError, match="the passes still change it after 100 rounds"):
        run_passes(Graph("main"), [lambda graph: True])
