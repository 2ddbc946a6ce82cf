"""Keep integers from infinities of constants that no integer stands for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from luciole.ir import Op, Value
from luciole.ir.analysis.endless import Signs, endless_tensors
from luciole.lquantizer.network.told_apart import takes_infinity


def beside_infinity(integers: Collection[Op]) -> set[Op]:
    """Find the operators among those on ``integers`` that must compute with floats: they read
    infinities that matter, or give some to an operator or an output to which they matter.
    """
    kept: set[Op] = set()
    for graph in {op.graph for op in integers if op.graph is not None}:
        endless = endless_tensors(graph)
        while new := set(_exposed(endless, {op for op in integers if op not in kept})):
            kept |= new
    return kept


def _exposed(endless: Mapping[Value, Signs], integers: Collection[Op]) -> Iterator[Op]:
    for value, signs in endless.items():
        readers = [use.op for use in value.users]
        exact = [op for op in readers if op not in integers or 0 in signs or not takes_infinity(op)]
        yield from (op for op in exact if op in integers)
        maker = None if value.producer is None else value.producer.op
        if maker is not None and maker in integers and (exact or value.is_output):
            yield maker
