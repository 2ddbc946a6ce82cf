"""The first half of a layered drawing: which layer each node is in, and in which order there.

Longest-path layers, a chain of dummies for each edge that skips layers, and barycentre sweeps that
keep the order with the fewest crossings (Sugiyama, Tagawa and Toda 1981).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass

Edge = tuple[int, int]
SWEEPS = 6

MOST_DUMMIES = 100_000
"""Dummies of a drawing. Where edges skip more layers together, the longest run straight, over
whatever lies there: thousands of operators that all use one tensor must not take a day.
"""


@dataclass
class Layering:
    """Nodes 0 to n - 1 and, behind them, dummies; ``layers`` hold them from left to right.

    ``above`` and ``below`` are each one's neighbours in the layers next to it; ``chains`` are the
    dummies of each edge, in the order of the edges.
    """

    nodes: int
    layers: list[list[int]]
    above: list[list[int]]
    below: list[list[int]]
    chains: list[list[int]]
    crossings: int = 0


def layering(nodes: int, edges: Sequence[Edge]) -> Layering:
    """Find layers and orders for an acyclic graph; an edge goes from its first node down to its
    second.

    Raises ValueError for a cycle.
    """
    ranks = _ranks(nodes, edges)
    made = _with_dummies(nodes, edges, ranks)
    _reduce_crossings(made)
    return made


def _ranks(nodes: int, edges: Sequence[Edge]) -> list[int]:
    """Return the longest path to each node; one without predecessors lies right above its first
    user.
    """
    below: list[list[int]] = [[] for _ in range(nodes)]
    waiting = [0] * nodes
    for a, b in edges:
        below[a].append(b)
        waiting[b] += 1
    sources = {i for i in range(nodes) if not waiting[i]}
    queue = sorted(sources)
    ranks = [0] * nodes
    for node in queue:
        for user in below[node]:
            ranks[user] = max(ranks[user], ranks[node] + 1)
            waiting[user] -= 1
            if not waiting[user]:
                queue.append(user)
    if len(queue) < nodes:
        raise ValueError("the graph has a cycle: it has no layers")
    for node in sources:
        if below[node]:
            ranks[node] = min(ranks[user] for user in below[node]) - 1
    return ranks


def _with_dummies(nodes: int, edges: Sequence[Edge], ranks: list[int]) -> Layering:
    layers: list[list[int]] = [[] for _ in range(max(ranks, default=-1) + 1)]
    for node, rank in enumerate(ranks):
        layers[rank].append(node)
    made = Layering(nodes, layers, [[] for _ in range(nodes)], [[] for _ in range(nodes)], [])
    for (a, b), is_short in zip(edges, _short(edges, ranks), strict=True):
        made.chains.append(_linked(made, a, b, ranks) if is_short else [])
    return made


def _linked(made: Layering, a: int, b: int, ranks: list[int]) -> list[int]:
    """Link two nodes by a dummy in each layer between them; the dummies."""
    chain: list[int] = []
    last = a
    for rank in range(ranks[a] + 1, ranks[b]):
        dummy = len(made.above)
        made.above.append([last])
        made.below.append([])
        made.below[last].append(dummy)
        made.layers[rank].append(dummy)
        chain.append(dummy)
        last = dummy
    made.below[last].append(b)
    made.above[b].append(last)
    return chain


def _short(edges: Sequence[Edge], ranks: list[int]) -> list[bool]:
    """Return whether each edge gets dummies: all do unless they are too many together."""
    skipped = [ranks[b] - ranks[a] - 1 for a, b in edges]
    short, total = [True] * len(edges), sum(skipped)
    for i in sorted(range(len(edges)), key=lambda i: -skipped[i]):
        if total <= MOST_DUMMIES:
            break
        short[i] = False
        total -= skipped[i]
    return short


def _reduce_crossings(made: Layering) -> None:
    """Order every layer by the middle of its neighbours, down and up in turn, and keep the best."""
    place = [0.0] * len(made.above)
    for layer in made.layers:
        _number(layer, place)
    best, order = -1, made.layers
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        neighbours = made.above if down else made.below
        for layer in made.layers if down else reversed(made.layers):
            _sort(layer, neighbours, place)
        count = crossings(made.layers, made.below, place)
        if best < 0 or count < best:
            best, order = count, [list(layer) for layer in made.layers]
        if count == 0:
            break
    made.layers, made.crossings = order, max(best, 0)


def _number(layer: list[int], place: list[float]) -> None:
    for i, node in enumerate(layer):
        place[node] = i


def _sort(layer: list[int], neighbours: list[list[int]], place: list[float]) -> None:
    if len(layer) < 2:
        return
    middle = {}
    for node in layer:
        near = neighbours[node]
        middle[node] = sum([place[v] for v in near]) / len(near) if near else place[node]
    layer.sort(key=lambda node: (middle[node], place[node]))
    _number(layer, place)


def crossings(layers: list[list[int]], below: list[list[int]], place: list[float]) -> int:
    """Count the pairs of edges between neighbouring layers that cross."""
    count = 0
    for layer in layers:
        if len(layer) < 2:
            continue
        seen: list[float] = []
        for node in layer:
            ends = [place[v] for v in below[node]]
            count += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return count
