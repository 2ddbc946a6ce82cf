"""Groups by name, and the drawings of their insides."""

from __future__ import annotations

from typing import Any

from luciole.drawing.blobs import Blobs
from luciole.drawing.document import Subject, document
from luciole.drawing.flow import Flow, flat, nested
from luciole.drawing.groups import DEEPEST, Group, grouped
from tests.tools.view.graphs import chain, network
from tests.tools.view.graphs import nested as nested_model

Json = dict[str, Any]


def shape(group: Group) -> list[Any]:
    return [[m.title, shape(m)] if isinstance(m, Group) else m for m in group.members]


def test_operators_with_a_common_beginning_form_a_group() -> None:
    names = ["in", "a/x/1", "a/x/2", "a/y", "b/1", "b/2", "b/3"]
    assert shape(grouped(names)) == [0, ["a", [["x", [1, 2]], 3]], ["b", [4, 5, 6]]]


def test_a_group_is_a_run_of_operators_that_follow_each_other() -> None:
    names = ["a/1", "a/2", "b/1", "b/2", "a/3", "a/4"]
    assert shape(grouped(names)) == [["a", [0, 1]], ["b", [2, 3]], ["a", [4, 5]]]


def test_a_group_around_nearly_all_is_left_out_and_a_lonely_one_is_no_group() -> None:
    assert shape(grouped(["net/a", "net/b", "net/c", "out"])) == [0, 1, 2, 3]
    assert shape(grouped(["a/1", "b/1", "c"])) == [0, 1, 2]


def test_of_fused_names_the_first_counts_and_slashes_alone_are_no_folders() -> None:
    assert shape(grouped(["a/1;z/1", "a/2;z/2", "b", "//", "/"])) == [["a", [0, 1]], 2, 3, 4]


def test_folders_in_folders_without_end_are_groups_up_to_a_depth() -> None:
    tree = grouped([f"{letter * 5000}{i}" for letter in ("a/", "b/") for i in range(30)])
    first, second = (member for member in tree.members if isinstance(member, Group))
    assert (first.title, second.title) == ("/".join("a" * DEEPEST), "/".join("b" * DEEPEST))
    assert list(tree.operators()) == list(range(60))


def test_edges_go_out_of_groups_over_and_into_groups() -> None:
    one, two = Group("one", [1, 2]), Group("two", [3, 4])
    tree = Group("", [one, two])
    flows = [Flow(0, 1, 10), Flow(1, 2, 11), Flow(2, 3, 12), Flow(2, 4, 12), Flow(3, 4, 13)]
    levels = nested(tree, [0], flows)
    assert levels[tree].items == [one, two, 0]
    assert levels[tree].edges == {(2, 0): [10], (0, 1): [12]}
    assert levels[one].items == [1, 2, "in", "out"]
    assert levels[one].edges == {(2, 0): [10], (0, 1): [11], (1, 3): [12]}
    assert levels[two].items == [3, 4, "in"]
    assert levels[two].edges == {(2, 0): [12], (2, 1): [12], (0, 1): [13]}
    assert flat(5, flows).edges == {(f.source, f.target): [f.tensor] for f in flows}


def graph_of(nodes: int, model: Any = None) -> Json:
    model = network(nodes, chain(nodes), lambda i: f"s{i // 9}/n{i}") if model is None else model
    found: Json = document([Subject(model, "m")], Blobs())["models"][0]["graphs"][0]
    return found


def test_groups_are_closed_at_first_above_four_hundred_operators() -> None:
    assert graph_of(60)["closed"] is False
    assert graph_of(401)["closed"] is True
    assert graph_of(0, network(401, chain(401), lambda i: f"n{i}"))["closed"] is False


def test_every_operator_is_drawn_once_in_the_groups() -> None:
    graph = graph_of(0, nested_model())
    drawn = [
        reference
        for group in graph["groups"].values()
        for reference, _, _ in group["vertical"]["items"]
        if isinstance(reference, int)
    ]
    assert sorted(drawn) == list(range(len(graph["nodes"])))
    titles = {g.get("title") for g in graph["groups"].values()}
    assert {"stage0", "stage1", "stage2", "block0", None} <= titles
