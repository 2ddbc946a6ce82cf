"""Replace operators whose result is known before anything runs by that result."""

from __future__ import annotations

from collections.abc import Sequence

from luciole.ir.dtypes import Array
from luciole.ir.errors import LucioleError
from luciole.ir.graph import Graph
from luciole.ir.infer import infer_op, open_ranks
from luciole.ir.op import Op
from luciole.ir.rewriting.passes import Evaluate
from luciole.ir.value import element_count

SHAPE_ARITHMETIC = 1024
"""Largest result, in elements, that folding keeps as a constant: shapes yes, unpacked weights no.
"""


def fold_constants(graph: Graph, evaluate: Evaluate) -> bool:
    """ADD(1, 2) -> 3: operators whose result is known, to results of 1,024 elements.

    Larger constants that a file unpacks or computes are small there on purpose.
    """
    return FoldConstants(evaluate)(graph)


def fold_kind(graph: Graph, evaluate: Evaluate, kind: type[Op]) -> bool:
    """Fold operators of one class whose result is known, however large that is."""
    changed = False
    for op in [op for op in graph.ops if isinstance(op, kind)]:
        results = folded(op, evaluate)
        if results is not None:
            _replace(graph, op, results)
            changed = True
    return changed


class FoldConstants:
    """The pass, with the kernels it may use and the largest result it may keep (None: any)."""

    def __init__(self, evaluate: Evaluate, most_elements: int | None = SHAPE_ARITHMETIC) -> None:
        self.evaluate = evaluate
        self.most_elements = most_elements

    def __call__(self, graph: Graph) -> bool:
        """Fold in execution order, inferring shapes on the way: one run reaches everything."""
        with open_ranks(graph):
            return self._fold(graph)

    def _fold(self, graph: Graph) -> bool:
        changed = False
        for op in list(graph.ops):
            infer_op(op, declared=True)
            results = None if op.unpacks else folded(op, self.evaluate)
            if results is not None and self._keeps(results):
                _replace(graph, op, results)
                changed = True
        return changed

    def _keeps(self, results: Sequence[Array]) -> bool:
        return self.most_elements is None or all(
            element_count(a.shape) <= self.most_elements for a in results
        )


def folded(op: Op, evaluate: Evaluate) -> Sequence[Array] | None:
    """Compute an operator's results where they are known: by shapes alone, or because every operand
    is constant.
    """
    if op.stateful:
        return None
    by_shape = op.fold()
    if by_shape is not None:
        return [by_shape]
    operands = [value for value in op.operands if value is not None]
    if not operands or any(value.data is None for value in operands):
        return None
    try:
        return evaluate(op)
    except LucioleError:
        return None


def _replace(graph: Graph, op: Op, results: Sequence[Array]) -> None:
    for value, array in zip(op.results, results, strict=True):
        constant = graph.add_constant(value.name, array)
        constant.quantization = value.quantization
        value.replace_with(constant)
    graph.remove(op)
