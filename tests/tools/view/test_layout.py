"""The layered layout: nothing overlaps, edges touch no box, crossings are counted right."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations, pairwise

import pytest

from luciole.drawing import layering as module
from luciole.drawing.layering import crossings, layering
from luciole.drawing.layout import Box, Layout, layouts
from tests.tools.view.graphs import Edge, branchy, chain, tangled

GRAPHS = [chain, branchy, tangled]
Rectangle = tuple[float, float, float, float]


def boxes_for(count: int) -> list[Box]:
    chance = random.Random(count)
    return [Box(chance.randrange(50, 260), chance.randrange(26, 190), 60, 14) for _ in range(count)]


def rectangles(boxes: list[Box], layout: Layout) -> list[Rectangle]:
    return [
        (x - b.width / 2, y - b.height / 2, x + b.width / 2, y + b.height / 2)
        for b, (x, y) in zip(boxes, layout.centres, strict=True)
    ]


def overlapping(found: list[Rectangle]) -> list[tuple[Rectangle, Rectangle]]:
    """Pairs that share an inner point, by a sweep over their tops."""
    pairs: list[tuple[Rectangle, Rectangle]] = []
    active: list[Rectangle] = []
    for one in sorted(found, key=lambda r: r[1]):
        active = [r for r in active if r[3] > one[1] + 1e-6]
        pairs += [(r, one) for r in active if r[0] < one[2] - 1e-6 and one[0] < r[2] - 1e-6]
        active.append(one)
    return pairs


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("nodes", [1, 2, 60, 1000])
def test_no_box_overlaps_another(graph: Callable[[int], list[Edge]], nodes: int) -> None:
    boxes = boxes_for(nodes)
    for layout in layouts(boxes, graph(nodes)):
        found = rectangles(boxes, layout)
        assert overlapping(found) == []
        assert min(r[0] for r in found) >= -1e-6
        assert max(r[2] for r in found) <= layout.width + 1e-6
        assert max(r[3] for r in found) <= layout.height + 1e-6


def test_no_box_of_five_thousand_overlaps_another() -> None:
    boxes = boxes_for(5000)
    for layout in layouts(boxes, tangled(5000)):
        assert overlapping(rectangles(boxes, layout)) == []


def test_edges_that_skip_too_many_layers_run_straight(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor that thousands of operators use would make millions of dummies."""
    edges = chain(60) + [(0, i) for i in range(2, 60)]
    monkeypatch.setattr(module, "MOST_DUMMIES", 500)
    made = layering(60, edges)
    skipped = [b - a - 1 for a, b in edges]
    assert sum(skipped) > 500 >= sum(map(len, made.chains)) > 400
    found = [len(dummies) for dummies in made.chains]
    shortest_without = min(s for s, n in zip(skipped, found, strict=True) if n < s)
    assert max(found) <= shortest_without
    boxes = boxes_for(60)
    for layout in layouts(boxes, edges):
        assert overlapping(rectangles(boxes, layout)) == []
        assert all(len(route) >= 2 for route in layout.routes)


def test_the_sweep_finds_overlaps() -> None:
    assert len(overlapping([(0, 0, 10, 10), (9, 9, 20, 20), (10, 0, 20, 9), (0, 30, 5, 40)])) == 1


@pytest.mark.parametrize("graph", GRAPHS)
def test_edges_join_their_boxes_and_pass_through_no_other(
    graph: Callable[[int], list[Edge]],
) -> None:
    boxes, edges = boxes_for(200), graph(200)
    layout, _ = layouts(boxes, edges)
    found = rectangles(boxes, layout)
    for (a, b), route in zip(edges, layout.routes, strict=True):
        assert route[0][1] == pytest.approx(found[a][3])
        assert route[-1][1] == pytest.approx(found[b][1])
        assert found[a][0] < route[0][0] < found[a][2]
        assert found[b][0] < route[-1][0] < found[b][2]
        assert all(y0 <= y1 + 1e-6 for (_, y0), (_, y1) in pairwise(route))
        others = [r for i, r in enumerate(found) if i not in (a, b)]
        for x, y in sampled(route):
            assert not any(r[0] < x < r[2] and r[1] < y < r[3] for r in others)


def sampled(route: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points of the curves that are drawn: cubics that leave and arrive vertically."""
    points = []
    for (x0, y0), (x1, y1) in pairwise(route):
        for k in range(9):
            t = k / 8
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            xs, middle = (x0, x0, x1, x1), (y0 + y1) / 2
            ys = (y0, middle, middle, y1)
            points.append(
                tuple(sum(w * c for w, c in zip(weights, cs, strict=True)) for cs in (xs, ys))
            )
    return points  # type: ignore[return-value]  # pairs of two sums


def test_the_horizontal_drawing_goes_from_left_to_right() -> None:
    boxes, edges = boxes_for(30), chain(30)
    _, layout = layouts(boxes, edges)
    for a, b in edges:
        assert layout.centres[a][0] + boxes[a].width / 2 < layout.centres[b][0] - boxes[b].width / 2


def test_crossings_are_those_of_a_plain_count() -> None:
    made = layering(60, tangled(60))
    place = [0.0] * len(made.above)
    for layer in made.layers:
        for i, node in enumerate(layer):
            place[node] = i
    plain = 0
    for layer in made.layers:
        between = [(place[a], place[b]) for a in layer for b in made.below[a]]
        plain += sum((a - c) * (b - d) < 0 for (a, b), (c, d) in combinations(between, 2))
    assert crossings(made.layers, made.below, place) == plain == made.crossings
    assert plain > 0


def test_graphs_without_need_have_no_crossings() -> None:
    assert layering(500, chain(500)).crossings == 0
    assert layering(500, branchy(500)).crossings == 0


def test_a_chain_without_side_ways_is_a_straight_column() -> None:
    layout, _ = layouts(boxes_for(20), [(i, i + 1) for i in range(19)])
    assert len({round(x, 3) for x, _ in layout.centres}) == 1


def test_layout_refuses_a_cycle() -> None:
    with pytest.raises(ValueError, match="the graph has a cycle"):
        layouts(boxes_for(3), [(0, 1), (1, 2), (2, 1)])


def test_an_empty_graph_is_an_empty_drawing() -> None:
    layout, _ = layouts([], [])
    assert (layout.width, layout.height, layout.centres) == (0, 0, [])
