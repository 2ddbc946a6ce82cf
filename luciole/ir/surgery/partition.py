"""Split a model into parts whose operators belong to one group each, as to one backend."""

from __future__ import annotations

from collections.abc import Mapping

from luciole.ir.graph import Graph, Model
from luciole.ir.op import Op
from luciole.ir.surgery.regions import makes_handle
from luciole.ir.surgery.split import parts_of


def partition(model: Model, groups: Mapping[Op, str]) -> list[tuple[str, Model]]:
    """Make a model of each part of the main graph, with the group of its operators: of as many as
    can run one behind the other before one of another group has to.

    Raises GraphError where a variable's state would be split, and for two tensors of one name where
    parts meet.
    """
    regions = list(_regions(model.graph, groups))
    models = parts_of(model, [ops for _, ops in regions])
    return [(group, part) for (group, _), part in zip(regions, models, strict=True)]


def _regions(graph: Graph, groups: Mapping[Op, str]) -> list[tuple[str, set[Op]]]:
    """Gather, time and again, the operators of the first one's group that need none of others."""
    left = [op for op in graph.ops if not makes_handle(op)]
    regions = []
    while left:
        group, ops = groups[left[0]], set[Op]()
        waiting = set(left)
        for op in left:
            makers = {v.producer.op for v in op.operands if v is not None and v.producer}
            if groups[op] == group and not makers & waiting - ops:
                ops.add(op)
        regions.append((group, ops))
        left = [op for op in left if op not in ops]
    return regions
