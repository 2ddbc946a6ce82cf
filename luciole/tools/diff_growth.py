"""Find the layer in which the error of a compared model grows most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from luciole.interpreter.comparison import TensorErrors
from luciole.ir import Graph, Value

_LEAST_NOISE = 0.01
_SHARE_OF_LARGEST = 0.2
"""The share of the largest error that counts as noise: any error would stand out from that of an
exact input.
"""
_LEAST_FACTOR = 2.0


@dataclass(frozen=True)
class Growth:
    """A layer, the relative error of its result, and the largest of what it reads."""

    name: str
    read: float
    error: float

    def factor(self, noise: float) -> float:
        """Divide the error by the one that is read, with noise on both."""
        return (self.error + noise) / (self.read + noise)


def largest_growth(graph: Graph, layers: Sequence[TensorErrors]) -> Growth | None:
    """Find the layer whose relative error is the largest multiple of what it reads; None where no
    error doubles. Layers are those of the first model, whose graph tells what each one reads.
    """
    growths = list(_growths(graph, layers))
    noise = max(_LEAST_NOISE, _SHARE_OF_LARGEST * max((one.error for one in growths), default=0.0))
    most = max(growths, key=lambda one: one.factor(noise), default=None)
    return most if most is not None and most.factor(noise) >= _LEAST_FACTOR else None


def _growths(graph: Graph, layers: Sequence[TensorErrors]) -> Iterator[Growth]:
    """Follow errors through the operators in their order: a result that was not compared is as
    wrong as what its operator reads.
    """
    known = {one.name: one.measures.relative for one in layers}
    errors: dict[Value, float] = {}
    for op in graph.ops:
        read = max((errors.get(value, 0.0) for value in op.operands if value), default=0.0)
        for value in op.results:
            error = known.get(value.name)
            errors[value] = read if error is None else error
            if error is not None:
                yield Growth(value.name, read, error)
