"""Rewrites of a graph: one file each, every one a function ``(graph) -> whether it changed
anything``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from luciole.ir.errors import GraphError
from luciole.ir.graph import Graph

Pass = Callable[[Graph], bool]

_MOST_ROUNDS = 100


def run_passes(graph: Graph, passes: Sequence[Pass]) -> bool:
    """Run passes round after round until none changes anything."""
    changed = False
    for _ in range(_MOST_ROUNDS):
        changes = [run(graph) for run in passes]
        if not any(changes):
            return changed
        changed = True
    raise GraphError(f"{graph!r}: the passes still change it after {_MOST_ROUNDS} rounds")
