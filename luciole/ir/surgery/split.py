"""Split a model into parts that run one behind the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from luciole.ir.errors import GraphError
from luciole.ir.graph import Graph, Model
from luciole.ir.names import main_tensor
from luciole.ir.op import Op
from luciole.ir.surgery.part import part_of
from luciole.ir.surgery.regions import Ends, ends_of, makes_handle, needed_for, with_handles
from luciole.ir.surgery.state import refuse_split_state, set_up, writers
from luciole.ir.value import Value


def split(model: Model, at: Sequence[str]) -> list[Model]:
    """Make a model of each part of the main graph: of all that the first tensor of ``at`` needs, of
    all else that the next one needs, and so on, and of the rest. Tensors are taken in the order in
    which they are computed.

    A part's inputs are the model's own and outputs of parts before it, of the same names. Raises
    GraphError for a tensor that parts nothing, for two of one name, and where a variable's state
    would be split.
    """
    graph = model.graph
    places = {op: place for place, op in enumerate(graph.ops)}
    points = sorted((_point(model, name) for name in at), key=lambda v: places[_maker(v)])
    return parts_of(model, _regions(graph, points))


def parts_of(model: Model, regions: Sequence[set[Op]]) -> list[Model]:
    """Make a model of the operators of each region, which run one behind the other; each has what
    makes handles, and what sets states up, for itself. Raises GraphError as ``split`` does.
    """
    graph = model.graph
    regions = [_whole(graph, ops) for ops in regions]
    for ops in regions:
        refuse_split_state(model, ops)
    ends = [ends_of(graph, ops) for ops in regions]
    left = [v for v in graph.outputs if v.producer is None and not v.is_input]
    ends[-1] = Ends(ends[-1].inputs, [*ends[-1].outputs, *left])  # constants among the outputs
    _refuse_same_names(graph, ends)
    return [part_of(model, ops, e) for ops, e in zip(regions, ends, strict=True)]


def _point(model: Model, name: str) -> Value:
    value = main_tensor(model.graph, name)
    if value.producer is None:
        raise GraphError(f"nothing can be split at tensor {name!r}: no operator computes it")
    return value


def _maker(value: Value) -> Op:
    assert value.producer is not None, "points are computed"
    return value.producer.op


def _regions(graph: Graph, points: Sequence[Value]) -> list[set[Op]]:
    """List the operators of each part. What makes handles, or sets states up, is in each part that
    reads these; what writes a state is with what reads it where it comes no later.
    """
    done: set[Op] = set()
    regions = []
    for value in points:
        ops = needed_for([value]) - done
        if not ops:
            raise GraphError(f"tensor {value.name!r} parts nothing: it is computed already before")
        ready = ops | done
        ops |= {op for op in writers(graph, ops) if needed_for(_operands(op)) <= ready}
        regions.append(ops)
        done |= ops
    shared = {op for ops in regions for op in set_up(graph, ops)}
    rest = set(graph.ops) - done - shared
    if not any(op.results and not makes_handle(op) for op in rest):
        raise GraphError(f"tensor {points[-1].name!r} parts nothing: no operator comes behind it")
    return [*regions, rest]


def _operands(op: Op) -> list[Value]:
    return [value for value in op.operands if value is not None]


def _whole(graph: Graph, ops: set[Op]) -> set[Op]:
    every = with_handles(op for op in ops if not makes_handle(op))
    return every | set_up(graph, every)


def _refuse_same_names(graph: Graph, ends: Iterable[Ends]) -> None:
    """Refuse different tensors of one name where parts meet: they are connected by names."""
    values = {*graph.inputs, *graph.outputs, *(v for e in ends for v in (*e.inputs, *e.outputs))}
    for name, count in Counter(value.name for value in values).items():
        if count > 1:
            raise GraphError(
                f"{count} tensors where parts meet are called {name!r}: parts are joined by names"
            )
