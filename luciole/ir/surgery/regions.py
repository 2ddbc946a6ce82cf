"""Find the operators of a part of a graph, and the tensors that it takes and gives."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from luciole.ir.errors import GraphError
from luciole.ir.graph import Graph
from luciole.ir.names import is_like
from luciole.ir.op import Op
from luciole.ir.value import Value
from luciole.schema.enums import TensorType
from luciole.schema.printable import listed

_HANDLES = (TensorType.RESOURCE, TensorType.VARIANT)
"""Element types that stand for something that a runtime keeps: no caller gives such a tensor."""


class Ends(NamedTuple):
    """Tensors that a part takes, and those that it gives."""

    inputs: list[Value]
    outputs: list[Value]


def needed_for(values: Iterable[Value], stop: Collection[Value] = ()) -> set[Op]:
    """List the operators that tensors are computed by, up to those at which to ``stop``."""
    ops: set[Op] = set()
    waiting = [value for value in values if value not in stop]
    while waiting:
        maker = waiting.pop().producer
        if maker is None or maker.op in ops:
            continue
        ops.add(maker.op)
        waiting += [v for v in maker.op.operands if v is not None and v not in stop]
    return ops


def depending_on(values: Iterable[Value]) -> set[Op]:
    """List the operators whose results depend on tensors."""
    ops: set[Op] = set()
    waiting = list(values)
    while waiting:
        for use in waiting.pop().users:
            if use.op not in ops:
                ops.add(use.op)
                waiting += use.op.results
    return ops


def numbered(graph: Graph, numbers: Iterable[int]) -> set[Op]:
    """List operators by their numbers in a graph. Raises GraphError for numbers of none."""
    count = len(graph.ops)
    ops = set()
    for number in numbers:
        if not 0 <= number < count:
            raise GraphError(f"there is no operator {number}, they are numbered 0 to {count - 1}")
        ops.add(graph.ops[number])
    return ops


def named(graph: Graph, pattern: str) -> set[Op]:
    """List the operators of which a result's name, or neighbouring parts of it, are like a shell
    pattern. Raises GraphError where there is none.
    """
    ops = {op for op in graph.ops if any(is_like(v.name, pattern) for v in op.results)}
    if not ops:
        raise GraphError(f"no operator's result is called like {pattern!r}")
    return ops


def of_kind(graph: Graph, kind: str) -> set[Op]:
    """List the operators of a kind (CONV_2D). Raises GraphError where there is none."""
    ops = {op for op in graph.ops if op.kind.lower() == kind.lower()}
    if not ops:
        kinds = listed(sorted({op.kind for op in graph.ops}), "and")
        raise GraphError(f"there is no {kind}, the graph has {kinds}")
    return ops


def makes_handle(op: Op) -> bool:
    """Return whether an operator does nothing but make a handle, as VAR_HANDLE does."""
    return not op.operands and bool(op.results) and all(v.dtype in _HANDLES for v in op.results)


def with_handles(ops: Iterable[Op]) -> set[Op]:
    """Add the operators that make the handles (of variables, of tables) that some read: they are
    like constants, and every part may have its own.
    """
    every = set(ops)
    waiting = list(every)
    while waiting:
        for value in waiting.pop().operands:
            maker = None if value is None or value.dtype not in _HANDLES else value.producer
            if maker is not None and maker.op not in every:
                every.add(maker.op)
                waiting.append(maker.op)
    return every


def ends_of(graph: Graph, ops: Collection[Op]) -> Ends:
    """Find the tensors that operators take from elsewhere and give to others: a graph's own ends
    first, in their order. What nobody reads is given, too, where it is all that an operator does.

    Raises GraphError for what no caller can give.
    """
    taken = list(dict.fromkeys(v for op in _in_order(graph, ops) for v in _read(op, ops)))
    outputs = list(dict.fromkeys(v for op in _in_order(graph, ops) for v in _told(op, ops)))
    for value in taken:
        if value.dtype in _HANDLES:
            raise GraphError(
                f"tensor {value.name!r} is {value.dtype.name}, which no caller gives: it takes "
                "the operator that makes it, too"
            )
    return Ends(_sorted(taken, graph.inputs), _sorted(outputs, graph.outputs))


def _in_order(graph: Graph, ops: Collection[Op]) -> Iterator[Op]:
    return (op for op in graph.ops if op in ops)


def _read(op: Op, ops: Collection[Op]) -> Iterator[Value]:
    """List the operands that neither the model holds nor one of the operators computes."""
    for value in op.operands:
        if value is None or value.is_constant or value.is_variable:
            continue
        if value.producer is None or value.producer.op not in ops:
            yield value


def _told(op: Op, ops: Collection[Op]) -> Iterator[Value]:
    """List the results that others than the operators read; all where nobody reads any."""
    for value in op.results:
        if value.is_output or any(use.op not in ops for use in value.users):
            yield value
    if not any(value.is_output or value.users for value in op.results):
        yield from (value for value in op.results if value.dtype not in _HANDLES)


def _sorted(values: Sequence[Value], first: Sequence[Value]) -> list[Value]:
    """Put values that are of the ``first`` in front, in their order."""
    return [
        *(v for v in dict.fromkeys(first) if v in values),
        *(v for v in values if v not in first),
    ]
