"""Take operators out of a model: those that are chosen, or those between two tensors."""

from __future__ import annotations

from collections.abc import Iterable

from luciole.ir.errors import GraphError
from luciole.ir.graph import Model
from luciole.ir.names import main_tensor
from luciole.ir.op import Op
from luciole.ir.surgery.part import part_of
from luciole.ir.surgery.regions import (
    depending_on,
    ends_of,
    named,
    needed_for,
    numbered,
    of_kind,
    with_handles,
)
from luciole.ir.surgery.state import refuse_split_state, set_up


def extract(
    model: Model,
    *,
    numbers: Iterable[int] = (),
    names: Iterable[str] = (),
    kinds: Iterable[str] = (),
    start: str | None = None,
    end: str | None = None,
) -> Model:
    """Make a model of some operators of the main graph: those of these ``numbers``, those whose
    results are called like one of the ``names`` (shell patterns), those of these ``kinds``
    (CONV_2D), and those between the tensors ``start`` and ``end``: all that depend on the one and
    that the other needs.

    What they read and others compute becomes an input, what others read an output. Raises
    GraphError, or LucioleError for a tensor of no such name, where nothing is chosen and where a
    variable's state would be split.
    """
    graph = model.graph
    ops = numbered(graph, numbers)
    for pattern in names:
        ops |= named(graph, pattern)
    for kind in kinds:
        ops |= of_kind(graph, kind)
    if start is not None or end is not None:
        ops |= _between(model, start, end)
    if not ops:
        raise GraphError("no operator is chosen")
    ops = with_handles(ops)
    ops |= set_up(graph, ops)
    refuse_split_state(model, ops)
    return part_of(model, ops, ends_of(graph, ops))


def _between(model: Model, start: str | None, end: str | None) -> set[Op]:
    first = None if start is None else main_tensor(model.graph, start)
    last = None if end is None else main_tensor(model.graph, end)
    behind = set(model.graph.ops) if first is None else depending_on([first])
    before = set(model.graph.ops) if last is None else needed_for([last])
    if last is not None and last.producer is None:
        raise GraphError(f"tensor {end!r} is computed by no operator")
    if not behind & before:
        reason = "no operator reads it" if last is None else f"{end!r} does not depend on it"
        raise GraphError(f"there is nothing behind tensor {start!r}: {reason}")
    return behind & before
