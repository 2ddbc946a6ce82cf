"""Find recurrent cells that stand step by step, and give them 16 bits between operators.

A state that gates carry on, a c + b with computed a and b, is rounded again in each step, and what
gates are computed of decides how much of it stays: TFLite's own LSTM of integers has 16 bits there.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import replace

from luciole.ir import Graph, Op, TensorType
from luciole.ir.analysis.floats import is_between
from luciole.ir.analysis.weights import is_layer
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.quant import Like
from luciole.lquantizer.assignment.schemes import Scheme
from luciole.lquantizer.network.places import fitting


def with_finer_cells(
    graph: Graph, schemes: Mapping[Op, Scheme], asked: Container[str] = ()
) -> dict[Op, Scheme]:
    """Return the schemes of operators, with 16 bits between those of recurrent cells that have 8,
    but for those without kernels for it, those that give outputs, and those of which somebody
    ``asked`` for bytes by its name.
    """
    finer = dict(schemes)
    for op in cells(graph):
        types = schemes.get(op)
        if types is None or types.activations != TensorType.INT8 or op.name in asked:
            continue
        wide = fitting(op, replace(types, activations=TensorType.INT16, bias=TensorType.INT64))
        if wide is not None and not any(value.is_output for value in op.results):
            finer[op] = wide
    return finer


def cells(graph: Graph) -> set[Op]:
    """Find the operators of recurrent cells: from the layers in front of gates to the states, and
    to what moves these alone.
    """
    sums = [op for op in graph.ops if any(map(_is_sum, _carried(op)))]
    states = {*sums, *(before for op in sums for before in _carried(op))}
    states |= {before for op in states for before in _carried(op)}  # the first is no sum
    inside = _closure(states, _makers) & _closure(states, _readers)
    inside = _closure(inside, lambda op: filter(_computes, _readers(op)))
    for op in graph.ops:
        before = set(_makers(op))
        if _moves(op) and before and before <= inside:
            inside.add(op)
    return _closure(inside, lambda op: filter(_moves, _makers(op)) if is_layer(op) else _makers(op))


def _carried(op: Op) -> Iterator[Op]:
    """Yield the sums and products of computed tensors that gates multiply in an operator's sum."""
    for product in _products(op):
        yield from (one for one in _makers(product) if _is_sum(one) or _is_product(one))


def _is_sum(op: Op) -> bool:
    return any(_products(op))


def _products(op: Op) -> Iterator[Op]:
    return filter(_is_product, _makers(op) if isinstance(op, Add) else ())


def _is_product(op: Op) -> bool:
    """Return whether an operator multiplies two computed tensors."""
    return isinstance(op, Mul) and is_between(op.x) and is_between(op.y) and op.x is not op.y


def _moves(op: Op) -> bool:
    return op.quant is not None and isinstance(op.quant.result, Like)


def _computes(op: Op) -> bool:
    return not is_layer(op) and not _moves(op)


def _makers(op: Op) -> Iterator[Op]:
    """Yield the operators that compute an operator's operands."""
    read = (value.producer for value in op.operands if value is not None)
    return (producer.op for producer in read if producer is not None)


def _readers(op: Op) -> Iterator[Op]:
    return (use.op for value in op.results for use in value.users)


def _closure(begin: set[Op], near: Callable[[Op], Iterable[Op]]) -> set[Op]:
    """Add all operators that lie near, from one to the next."""
    closed, left = set(begin), list(begin)
    while left:
        new = [op for op in dict.fromkeys(near(left.pop())) if op not in closed]
        closed.update(new)
        left += new
    return closed
