"""Find the layers at the ends of a network: what lies between them and its inputs or outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from luciole.ir import Op, Value
from luciole.ir.analysis.weights import is_layer


def is_first(op: Op) -> bool:
    """Return whether a layer reads the network's inputs: an input, or what operators that are no
    layers make of inputs (a TRANSPOSE, a normalization), with no other layer on any way there.
    """
    return _is_end(op.operands, lambda value: value.is_input, _makers)


def is_last(op: Op) -> bool:
    """Return whether a layer's result is the network's answer: an output, or what operators that
    are no layers make one of (a SOFTMAX, a RESHAPE), with no other layer on any way there.
    """
    return _is_end(op.results, lambda value: value.is_output, _readers)


def _is_end(
    values: Iterable[Value | None],
    is_outermost: Callable[[Value], bool],
    beyond: Callable[[Value], Iterator[tuple[Op, Iterable[Value | None]]]],
) -> bool:
    """Return whether ways from tensors outward reach an end, and none of them a layer."""
    left = [value for value in values if value is not None]
    if any(map(is_outermost, left)):
        return True
    seen, reaches = set(left), False
    while left:
        value = left.pop()
        reaches |= is_outermost(value)
        for op, further in beyond(value):
            if is_layer(op):
                return False
            new = {one for one in further if one is not None} - seen
            seen |= new
            left += new
    return reaches


def _makers(value: Value) -> Iterator[tuple[Op, Iterable[Value | None]]]:
    """Yield the operator that makes a tensor, and its operands."""
    if value.producer is not None:
        yield value.producer.op, value.producer.op.operands


def _readers(value: Value) -> Iterator[tuple[Op, Iterable[Value | None]]]:
    """Yield the operators that read a tensor, and their results."""
    for use in value.users:
        yield use.op, use.op.results
