"""Layers in the order in which they are learned, and the branches added to their results: of two
layers whose results are added, the later one makes up for what the earlier one loses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from luciole.ir import Array, Op, Value
from luciole.ir.analysis.weights import weight_constant
from luciole.ir.value import Use
from luciole.lquantizer.network.preparation import behind, floors, learning_order, other_use


@dataclass(frozen=True)
class Aim:
    """What a layer's result should be before its activation [r, o], and the branch that is added to
    it in the float network, where there is one.
    """

    own: Array
    other: Array | None = None


@dataclass(frozen=True)
class Branches:
    """Where branches are added to layers' results: in the float network, and in its twin that is
    being rounded.
    """

    twins: Mapping[Op, Op]
    uses: Mapping[Op, Use]
    """In the float network, by the layer in the other."""
    rounded: Mapping[Op, Op]
    """The twins the other way around."""

    @classmethod
    def of(cls, twins: Mapping[Op, Op], layers: Iterable[Op]) -> Branches:
        """Find the branches of layers, whose activations stand alone in the float network."""
        found = {op: other_use(twins[op]) for op in layers}
        back = {twin: op for op, twin in twins.items()}
        return cls(twins, {op: use for op, use in found.items() if use is not None}, back)

    def in_float(self, op: Op) -> Value | None:
        """Find what is added to a layer's result in the float network."""
        use = self.uses.get(op)
        return None if use is None else use.op.operands[use.slot]

    def in_rounded(self, op: Op, left: Iterable[Op]) -> Value | None:
        """Find what is added in the network on its way; nothing where that is not yet what it will
        be, because it depends on layers that are ``left`` to be learned.
        """
        use = self.uses.get(op)
        value = None if use is None else self.rounded[use.op].operands[use.slot]
        return None if value is None or not behind(value).isdisjoint(left) else value

    def order(self, layers: Sequence[Op]) -> list[Op]:
        """Say in which order layers are learned, given in execution order."""
        sizes = [0 if (w := weight_constant(op)) is None else int(np.prod(w.dims)) for op in layers]
        groups = [[self.twins[op]] for op in layers]
        others = [[self.in_float(op)] for op in layers]
        return [layers[number] for number in learning_order(groups, others, sizes)]

    def problem(self, op: Op, aim: Aim, branch: Array | None) -> tuple[Array, Array | None]:
        """Say what a layer's result should be, given the ``branch`` that it is added to in the
        network on its way [r, o], and below what it may as well fall, because a RELU follows.
        """
        moved = aim.own if aim.other is None or branch is None else aim.own + aim.other - branch
        return moved, floors(self.twins[op], moved, branch)
