"""A layered drawing of a graph: where every box lies and which way every edge goes.

One drawing serves the page and the SVG file: the page moves finished drawings apart when a group is
opened (page/compose.js) and never lays out anything itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from luciole.drawing.layering import Edge, Layering, layering

Point = tuple[float, float]

NODE_GAP, DUMMY_GAP = 30.0, 14.0
"""Pixels between neighbours of a layer: two boxes, or where one of them is an edge passing by."""

PORT_GAP = 22.0
"""Most pixels between the ends of edges at one side of a box."""

PASSES = 14
"""Rounds of moving boxes towards the middle of their neighbours."""

LAYER_GAP = 32.0
"""Pixels between layers, besides the labels."""


@dataclass
class Layout:
    """Box centres and edges' points (both ends included), in pixels from the top left corner."""

    width: float
    height: float
    centres: list[Point]
    routes: list[list[Point]]


@dataclass(frozen=True)
class Box:
    """An item of the layout: its size, and how much room its label needs behind it."""

    width: float
    height: float
    label_width: float = 0.0
    label_height: float = 0.0


def layouts(boxes: Sequence[Box], edges: Sequence[Edge]) -> tuple[Layout, Layout]:
    """Return the drawing from top to bottom and the one from left to right.

    Raises ValueError for a graph with a cycle.
    """
    made = layering(len(boxes), edges)
    across = [Box(b.height, b.width, b.label_height, b.label_width) for b in boxes]
    return _place(made, boxes, edges), _turned(_place(made, across, edges))


def _turned(layout: Layout) -> Layout:
    return Layout(
        layout.height,
        layout.width,
        [(y, x) for x, y in layout.centres],
        [[(y, x) for x, y in route] for route in layout.routes],
    )


def _place(made: Layering, boxes: Sequence[Box], edges: Sequence[Edge]) -> Layout:
    """Compute coordinates for layers that lie below each other."""
    xs = _columns(made, boxes)
    left = min(
        (x - (boxes[i].width / 2 if i < made.nodes else 0) for i, x in enumerate(xs)), default=0
    )
    xs = [x - left for x in xs]
    bands = _bands(made, boxes)
    width = max(
        (x + (boxes[i].width / 2 if i < made.nodes else 0) for i, x in enumerate(xs)), default=0
    )
    ranks = {i: r for r, layer in enumerate(made.layers) for i in layer}
    centres = [(xs[i], sum(bands[ranks[i]]) / 2) for i in range(made.nodes)]
    ends = [bands[ranks[i]] for i in range(len(xs))]
    height = bands[-1][1] if bands else 0.0
    return Layout(width, height, centres, _routes(made, boxes, edges, xs, ends))


def _bands(made: Layering, boxes: Sequence[Box]) -> list[tuple[float, float]]:
    """Find where each layer begins and ends: as thick as its thickest box, with room for labels."""
    bands, top = [], 0.0
    for layer in made.layers:
        real = [boxes[i] for i in layer if i < made.nodes]
        bottom = top + max((box.height for box in real), default=0.0)
        bands.append((top, bottom))
        top = bottom + LAYER_GAP + max((box.label_height for box in real), default=0.0)
    return bands


def _columns(made: Layering, boxes: Sequence[Box]) -> list[float]:
    """Find where each node and dummy lies in its layer: as close as order and gaps allow to the
    middle of its neighbours, above and below in turn (isotonic regression by pooling adjacent
    violators).
    """
    count, nodes = len(made.above), made.nodes
    half = [max(b.width, b.label_width) / 2 for b in boxes] + [0.0] * (count - nodes)
    steps = [_steps(layer, half, nodes) for layer in made.layers]
    xs = [0.0] * count
    for layer, step in zip(made.layers, steps, strict=True):
        for node, offset in zip(layer, step, strict=True):
            xs[node] = offset - step[-1] / 2
    both = [a + b for a, b in zip(made.above, made.below, strict=True)]
    for turn in range(PASSES):
        order = range(len(steps)) if turn % 2 == 0 else range(len(steps) - 1, -1, -1)
        for r in order:
            _settle(made.layers[r], steps[r], both, xs)
    return xs


def _steps(layer: list[int], half: list[float], nodes: int) -> list[float]:
    """Return the smallest distance of each one of a layer from the first one."""
    steps, at = [0.0], 0.0
    for a, b in pairwise(layer):
        at += half[a] + half[b] + (NODE_GAP if a < nodes and b < nodes else DUMMY_GAP)
        steps.append(at)
    return steps


def _settle(layer: list[int], steps: list[float], both: list[list[int]], xs: list[float]) -> None:
    """Move one layer: neighbours that would come too close form a block with one place."""
    blocks: list[tuple[float, int]] = []
    for node, step in zip(layer, steps, strict=True):
        near = both[node]
        total, count = (_middle([xs[v] for v in near]) if near else xs[node]) - step, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            before, members = blocks.pop()
            total, count = total + before, count + members
        blocks.append((total, count))
    at = 0
    for total, count in blocks:
        for k in range(at, at + count):
            xs[layer[k]] = total / count + steps[k]
        at += count


def _middle(values: list[float]) -> float:
    """Return the median; ``statistics.median`` takes three times as long for two values."""
    values.sort()
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def _routes(
    made: Layering,
    boxes: Sequence[Box],
    edges: Sequence[Edge],
    xs: list[float],
    ends: list[tuple[float, float]],
) -> list[list[Point]]:
    """Draw edges from the bottom of one box to the top of another; what arrives at one box is
    spread over its top in the order in which it comes. ``ends`` are where everyone's layer begins
    and ends: an edge runs straight through layers, so that it touches no box on its way.
    """
    routes = [
        [*_leaving(a, boxes, xs, ends), *((xs[d], y) for d in chain for y in ends[d])]
        for (a, _), chain in zip(edges, made.chains, strict=True)
    ]
    arriving: dict[int, list[int]] = {}
    for index, (_, b) in enumerate(edges):
        arriving.setdefault(b, []).append(index)
    for b, indices in arriving.items():
        indices.sort(key=lambda i: routes[i][-1][0])
        top = sum(ends[b]) / 2 - boxes[b].height / 2
        for at, index in zip(_ports(xs[b], boxes[b], len(indices)), indices, strict=True):
            routes[index] += [(at, ends[b][0]), (at, top)] if top > ends[b][0] else [(at, top)]
    return routes


def _ports(middle: float, box: Box, count: int) -> list[float]:
    """Spread ``count`` ends of edges over the top of a box."""
    gap = min(PORT_GAP, 0.6 * box.width / max(count - 1, 1))
    return [middle + gap * (k - (count - 1) / 2) for k in range(count)]


def _leaving(
    a: int, boxes: Sequence[Box], xs: list[float], ends: list[tuple[float, float]]
) -> list[Point]:
    """Return the beginning of an edge: the bottom of its box and, below it, the end of the
    layer.
    """
    bottom = sum(ends[a]) / 2 + boxes[a].height / 2
    points = [(xs[a], bottom)]
    return [*points, (xs[a], ends[a][1])] if bottom < ends[a][1] else points
