"""Drawings of a graph: one with all operators, and one for each group with its own members.

A group that is closed is a box of its parent's drawing. Everything that enters or leaves a group
passes one point at its edge, ``in`` or ``out``, where the parent's edges meet the group's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from luciole.drawing.groups import Group
from luciole.drawing.layout import Box, Layout, layouts
from luciole.drawing.nodes import HEADER, ROW
from luciole.drawing.text import fitted, width_of

Json = dict[str, Any]
Item = int | Group | str
"""A node by number, a closed group, or the point ``in`` or ``out`` of the group that is drawn."""

POINT = Box(0.0, 0.0)


class Flow(NamedTuple):
    """A tensor on its way from one node to another, all by number."""

    source: int
    target: int
    tensor: int


@dataclass
class Level:
    """Items that are drawn together, and tensors by the items that they connect."""

    items: list[Item]
    edges: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    points: dict[str, int] = field(default_factory=dict)
    known: set[Flow] = field(default_factory=set)

    def point(self, name: str) -> int:
        """Return the position of a point of the group, which is added when it is first used."""
        if name not in self.points:
            self.points[name] = len(self.items)
            self.items.append(name)
        return self.points[name]

    def add(self, a: int, b: int, tensor: int) -> None:
        """Add a tensor that goes from one item to another."""
        if Flow(a, b, tensor) not in self.known:
            self.known.add(Flow(a, b, tensor))
            self.edges.setdefault((a, b), []).append(tensor)


def flat(nodes: int, flows: Sequence[Flow]) -> Level:
    """Draw a drawing of all nodes without groups."""
    level = Level(list(range(nodes)))
    for flow in flows:
        level.add(*flow)
    return level


def nested(tree: Group, ends: Sequence[int], flows: Sequence[Flow]) -> dict[Group, Level]:
    """Draw a drawing for the root and for each group; ``ends`` are nodes that belong to the root.

    The tree's numbers are numbers of nodes.
    """
    groups = [tree, *tree.groups()]
    levels = {g: Level([*g.members, *(ends if g is tree else ())]) for g in groups}
    places = {g: {item: i for i, item in enumerate(levels[g].items)} for g in groups}
    paths = _paths(tree)
    for end in ends:
        paths[end] = [tree]
    for flow in flows:
        _route(levels, places, [*paths[flow.source]], [*paths[flow.target]], flow)
    return levels


def _paths(tree: Group) -> dict[int, list[Group]]:
    """Return the groups around each node, outermost first."""
    paths: dict[int, list[Group]] = {}
    pending: list[list[Group]] = [[tree]]
    while pending:
        path = pending.pop()
        for member in path[-1].members:
            if isinstance(member, Group):
                pending.append([*path, member])
            else:
                paths[member] = path
    return paths


def _route(
    levels: dict[Group, Level],
    places: dict[Group, dict[Item, int]],
    above: list[Group],
    below: list[Group],
    flow: Flow,
) -> None:
    """Put an edge into every drawing that a tensor crosses: out of groups, over, into groups."""
    common = 0
    while common < min(len(above), len(below)) and above[common] is below[common]:
        common += 1
    source: list[Item] = [*above[common:], flow.source]
    target: list[Item] = [*below[common:], flow.target]
    here = above[common - 1]
    levels[here].add(places[here][source[0]], places[here][target[0]], flow.tensor)
    for group, item in zip(above[common:], source[1:], strict=True):
        level = levels[group]
        level.add(places[group][item], level.point("out"), flow.tensor)
    for group, item in zip(below[common:], target[1:], strict=True):
        level = levels[group]
        level.add(level.point("in"), places[group][item], flow.tensor)


def group_box(group: Group) -> tuple[Box, str, str]:
    """Return a closed group's size, title and second line."""
    count = sum(1 for _ in group.operators())
    title, line = fitted(group.title, 220), f"{count} operators"
    width = max(width_of(title, bold=True) + 34, width_of(line) + 20, 110.0)
    return Box(round(width), round(HEADER + ROW + 10)), title, line


def drawn(level: Level, boxes: Sequence[Box], names: dict[Group, str]) -> tuple[Json, Json]:
    """Return a level's drawing from top to bottom and from left to right, as the page takes it."""
    sizes = [_box(item, boxes) for item in level.items]
    down, across = layouts(sizes, list(level.edges))
    return _json(level, down, names), _json(level, across, names)


def _box(item: Item, boxes: Sequence[Box]) -> Box:
    if isinstance(item, str):
        return POINT
    return group_box(item)[0] if isinstance(item, Group) else boxes[item]


def _json(level: Level, layout: Layout, names: dict[Group, str]) -> Json:
    """Describe a level: ``items``: reference, x, y of the middle. ``edges``: from and to as
    positions in ``items``, tensors, points as x, y, x, y, ...
    """
    references = [names[item] if isinstance(item, Group) else item for item in level.items]
    return {
        "size": [round(layout.width), round(layout.height)],
        "items": [
            [reference, round(x, 1), round(y, 1)]
            for reference, (x, y) in zip(references, layout.centres, strict=True)
        ],
        "edges": [
            [a, b, tensors, [round(c, 1) for point in route for c in point]]
            for ((a, b), tensors), route in zip(level.edges.items(), layout.routes, strict=True)
        ],
    }
