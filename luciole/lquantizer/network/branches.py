"""Layers in the order in which they are learned, and the branches added to their results: of two
layers whose results are added, the later one makes up for what the earlier one loses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from luciole.ir import Array, Op, Value
from luciole.ir.analysis.weights import weight_constant
from luciole.ir.ops.activations import FUSED_AS, LIMITS
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.value import Use
from luciole.schema.enums import ActivationFunctionType


@dataclass(frozen=True)
class Aim:
    """The float network's results of a layer before its activation [r, o], and there the branch
    that is added to them, where there is one.
    """

    own: Array
    other: Array | None = None

    def beside(self, branch: Array | None) -> Array:
        """Return the target of the layer's result, given the ``branch`` that it is added to in the
        half-finished network [r, o].
        """
        return self.own if self.other is None or branch is None else self.own + self.other - branch


@dataclass(frozen=True)
class Branches:
    """Where branches are added to layers' results: in the float network, and in its twin that is
    on its way.
    """

    twins: Mapping[Op, Op]
    """The operators of the float network, by those of the other as it was."""
    uses: Mapping[Op, Use]
    """In the float network, by the layer in the other."""
    originals: Mapping[Op, Op]
    """The twins the other way around."""

    @classmethod
    def of(cls, twins: Mapping[Op, Op], layers: Iterable[Op]) -> Branches:
        """Find the branches of layers, whose activations stand alone in the float network."""
        uses = {op: _use_beside(twins[op]) for op in layers}
        originals = {twin: op for op, twin in twins.items()}
        return cls(twins, {op: use for op, use in uses.items() if use is not None}, originals)

    def in_float(self, op: Op) -> Value | None:
        """Return the tensor that is added to a layer's result in the float network."""
        use = self.uses.get(op)
        return None if use is None else use.op.operands[use.slot]

    def in_work(self, op: Op, left: Collection[Op] = ()) -> Value | None:
        """Return the tensor that is added in the half-finished network, None while it depends on
        layers that are ``left`` to be learned.
        """
        use = self.uses.get(op)
        value = None if use is None else self.originals[use.op].operands[use.slot]
        if value is None or (left and not behind(value).isdisjoint(left)):
            return None
        return value

    def seen_by(self, ops: Iterable[Op]) -> list[Value]:
        """List the inputs of layers, and the branches that are added to their results."""
        values = (value for op in ops for value in (op.operands[0], self.in_work(op)))
        return [value for value in values if value is not None]

    def order(self, groups: Sequence[Sequence[Op]]) -> list[int]:
        """List groups of layers that share their weights, which are given in execution order, in
        the order in which they are learned: execution order, but where the results of two layers
        are added the smaller goes first, for the larger can make up for more.
        """
        twins = [[self.twins[op] for op in ops] for ops in groups]
        others = [[self.in_float(op) for op in ops] for ops in groups]
        return _learning_order(twins, others, [_size(ops[0]) for ops in groups])


def _size(op: Op) -> int:
    weights = weight_constant(op)
    return 0 if weights is None else int(np.prod(weights.dims))


def _use_beside(op: Op) -> Use | None:
    """Find the operand of an ADD that is added to a result."""
    output = op.results[0]
    users = output.users
    if len(users) != 1 or not isinstance(users[0].op, Add) or output.is_output:
        return None
    use = Use(users[0].op, 1 - users[0].slot)
    other = use.op.operands[use.slot]
    if other is None or other.producer is None or other.shape != output.shape:
        return None
    return use


def floors(op: Op, outputs: Array, branch: Array | None = None) -> Array | None:
    """Find the values that each of a layer's outputs [r, o] may as well fall below, because a RELU
    follows, be it behind the ADD of a branch [r, o]; None where none does.
    """
    floor = _floor_behind(op.results[0])
    if floor is not None:
        return np.broadcast_to(np.asarray(floor, outputs.dtype), outputs.shape)
    if branch is None:
        return None
    total = op.results[0].users[0].op
    assert isinstance(total, Add), "a branch is what an ADD adds"
    floor = floor_of(total.activation)
    floor = _floor_behind(total.output) if floor is None else floor
    return None if floor is None else np.asarray(floor - branch)


def _floor_behind(value: Value) -> float | None:
    """Return the lower limit of the RELU that alone reads a tensor, None where there is none."""
    if value.is_output or len(value.users) != 1:
        return None
    return floor_of(FUSED_AS.get(type(value.users[0].op), ActivationFunctionType.NONE))


def floor_of(activation: ActivationFunctionType) -> float | None:
    """Return the lower limit of an activation, None where it has none."""
    low, _ = LIMITS.get(activation, (-np.inf, np.inf))
    return low if np.isfinite(low) else None


def behind(value: Value) -> set[Op]:
    """Find every operator that a tensor depends on."""
    makers: set[Op] = set()
    waiting = [value]
    while waiting:
        producer = waiting.pop().producer
        if producer is not None and producer.op not in makers:
            makers.add(producer.op)
            waiting.extend(v for v in producer.op.operands if v is not None)
    return makers


def _learning_order(
    groups: Sequence[Sequence[Op]], others: Sequence[Sequence[Value | None]], sizes: Sequence[int]
) -> list[int]:
    """Order groups of layers, given the branches added to their results and how many weights they
    have.
    """
    makers: dict[Op, int] = {op: n for n, ops in enumerate(groups) for op in ops}
    order: list[int] = []
    seen: set[int] = set()

    def partners(number: int) -> Iterator[int]:
        """Find groups of fewer weights whose results are added, and which do not need
        this one's.
        """
        for own, other in zip(groups[number], others[number], strict=True):
            if other is None or other.producer is None or own in behind(other):
                continue
            partner = makers.get(other.producer.op)
            if partner is not None and sizes[partner] < sizes[number]:
                yield partner

    def visit(number: int) -> None:
        if number in seen:  # layers that share weights may stand in front of each other's steps
            return
        seen.add(number)
        operand = groups[number][0].operands[0]
        needed = () if operand is None else {makers[op] for op in behind(operand) & makers.keys()}
        for before in (*sorted(needed), *partners(number)):
            visit(before)
        order.append(number)

    for number in range(len(groups)):
        visit(number)
    return order
