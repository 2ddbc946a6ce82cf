"""Names and places of long graphs are found without looking at everything, and stay right."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np

from luciole.ir import Graph, Value
from luciole.ir.op import Op
from luciole.ir.ops.elementwise_unary import Neg


class _Looked(list[Value]):
    """Tensors that count how often somebody looks through them all."""

    times = 0

    def __iter__(self) -> Iterator[Value]:
        self.times += 1
        return super().__iter__()


def _chain(length: int) -> Graph:
    graph = Graph("main")
    value = graph.add_input("x", (1, 4))
    for _ in range(length):
        value = graph.append(Neg(value), graph.unique_name("y")).output
    graph.outputs = [value]
    return graph


def _first_free(graph: Graph, name: str) -> str:
    taken = {value.name for value in graph.values}
    numbered = (f"{name}_{number}" for number in count(1))
    return name if name not in taken else next(one for one in numbered if one not in taken)


def test_many_names_are_made_unique_in_one_look_at_the_tensors() -> None:
    graph = _chain(3)
    graph.values = looked = _Looked(graph.values)
    for _ in range(20):
        graph.append(Neg(graph.outputs[0]), graph.unique_name("y"))
    assert [value.name for value in list(looked)[4:]] == [f"y_{n}" for n in range(3, 23)]
    assert looked.times <= 2  # the second one is the line above


def test_names_are_free_again_after_renaming_removing_and_changes_of_the_list() -> None:
    graph = _chain(5)
    values = {value.name: value for value in graph.values}
    values["y_2"].name = "z"
    assert graph.unique_name("y") == "y_2"
    values["y_1"].name = "y_3"  # two have this name now
    assert graph.unique_name("y") == "y_1"
    values["y_3"].name = "y_1"
    assert graph.unique_name("y") == "y_2"
    graph.outputs = []
    graph.remove(graph.ops[-1])
    assert graph.unique_name("y_4") == "y_4"
    graph.values.remove(values["x"])
    assert graph.unique_name("x") == "x"


def test_names_and_places_are_right_whatever_is_edited() -> None:
    rng, graph = np.random.default_rng(0), _chain(600)
    graph.outputs = []
    source = graph.inputs[0]
    for _ in range(2000):
        stem = str(rng.choice(["y", "y_1", "y_7", "z", "z_02"]))
        name = graph.unique_name(stem)
        assert name == _first_free(graph, stem)
        op = graph.ops[int(rng.integers(len(graph.ops)))]
        edit = rng.integers(4)
        if edit == 0:
            op.results[0].name = name
        elif edit == 1 and not op.results[0].users:
            graph.remove(op)
            assert op not in graph.ops
            assert op.results[0] not in graph.values
        elif edit == 2:
            new = graph.insert_after(op, Neg(source), name)
            assert graph.ops[graph.ops.index(op) + 1] is new
        else:
            new = graph.insert_before(op, Neg(source), name)
            assert graph.ops[graph.ops.index(op) - 1] is new


def test_operators_are_found_after_their_list_was_turned_round() -> None:
    graph = _chain(1000)
    graph.ops.reverse()
    first: Op = graph.ops[0]
    new = graph.insert_before(first, Neg(graph.inputs[0]), "new")
    assert graph.ops[:2] == [new, first]
