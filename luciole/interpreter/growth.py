"""Find the layer in which the error of a compared model grows most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from luciole.ir import Graph, Op, Value
from luciole.ir.ops.activations import Clamp
from luciole.ir.quant import Like
from luciole.ir.text.common import one_line
from luciole.ir.text.table import percent_text

_LEAST_NOISE = 0.01
_SHARE_OF_LARGEST = 0.2
"""The share of the largest error that counts as noise: any error would stand out from that of an
exact input.
"""
_LEAST_FACTOR = 2.0


@dataclass(frozen=True)
class Growth:
    """A layer, the largest relative error of what it reads, and the one of its result. Where only
    activations that are flat for some numbers read the result, the error is theirs: it stands
    ``behind`` the layer, in a tensor of this name, and what they flatten does not count.
    """

    name: str
    read: float
    error: float
    behind: str | None = None

    def factor(self, noise: float) -> float:
        """Divide the error by the one that is read, with noise on both."""
        return (self.error + noise) / (self.read + noise)

    def to_json(self) -> dict[str, Any]:
        """Turn the growth into plain JSON values."""
        return asdict(self)

    def line(self, short: Mapping[str, str]) -> str:
        """Write the growth as a sentence, with the short names of layers."""
        ends = f"from {percent_text(self.read)} in what it reads to {percent_text(self.error)}"
        place = "" if self.behind is None else f" in {one_line(short[self.behind])} behind it"
        return f"the relative error grows most in {one_line(short[self.name])}: {ends}{place}"


def largest_growth(graph: Graph, relative: Mapping[str, float]) -> Growth | None:
    """Find the layer whose relative error is the largest multiple of what it reads; None where no
    error doubles. The relative errors are those of the tensors that were compared, by their names
    in the first model, whose graph tells what each layer reads.
    """
    growths = list(_growths(graph, relative))
    noise = max(_LEAST_NOISE, _SHARE_OF_LARGEST * max((one.error for one in growths), default=0.0))
    most = max(growths, key=lambda one: one.factor(noise), default=None)
    return most if most is not None and most.factor(noise) >= _LEAST_FACTOR else None


def _growths(graph: Graph, relative: Mapping[str, float]) -> Iterator[Growth]:
    """Follow errors through the operators in their order: a result that was not compared is as
    wrong as what its operator reads.
    """
    errors: dict[Value, float] = {}
    for op in graph.ops:
        read = max((errors.get(value, 0.0) for value in op.operands if value), default=0.0)
        for value in op.results:
            errors[value] = read
            if value.name in relative:
                growth = _growth(value, read, relative)
                errors[value] = growth.error
                yield growth


def _growth(value: Value, read: float, relative: Mapping[str, float]) -> Growth:
    """Return the growth in a result, or in the worst of the flat activations that alone read it."""
    flat = list(_flattened(value))
    known = [result.name for result in flat if result is not None and result.name in relative]
    if not flat or len(known) < len(flat):
        return Growth(value.name, read, relative[value.name])
    worst = max(known, key=relative.__getitem__)
    return Growth(value.name, read, relative[worst], worst)


def _flattened(value: Value) -> Iterator[Value | None]:
    """Yield the results of the flat activations that read a tensor, as it is or moved, and None
    where something else does.
    """
    waiting = [value]
    while waiting:
        moved = waiting.pop()
        if moved.is_output:
            yield None
        for op in dict.fromkeys(use.op for use in moved.users):
            if _moves(op):
                waiting += op.results
            else:
                yield op.output if _is_flat(op) else None


def _is_flat(op: Op) -> bool:
    """Return whether an operator has one result for all numbers below or above a limit."""
    return isinstance(op, Clamp) or (op.quant is not None and op.quant.saturation is not None)


def _moves(op: Op) -> bool:
    """Return whether an operator only moves or picks numbers of its one computed operand."""
    moved = [value for value in op.operands if value is not None and not value.is_constant]
    bound = None if op.quant is None else op.quant.result
    return isinstance(bound, Like) and not bound.computed and len(moved) == 1
