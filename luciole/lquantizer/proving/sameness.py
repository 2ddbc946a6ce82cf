"""Compare networks by all that their results depend on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luciole.ir import Model, Op, Value
from luciole.ir.unknown_op import UnknownOp

_Slots = Sequence[Value | None]


def are_same_networks(one: Model, other: Model) -> bool:
    """Return whether two networks have the same operators, in one order, on the same tensors and
    constants, so that they compute the same. Only networks of one graph are compared.
    """
    if len(one.graphs) > 1 or len(other.graphs) > 1:
        return False
    a, b, pairs = one.graph, other.graph, _Pairs()
    return (
        len(a.ops) == len(b.ops)
        and pairs.fit(a.inputs, b.inputs)
        and all(_alike(x, y) and pairs.fit_op(x, y) for x, y in zip(a.ops, b.ops, strict=True))
        and pairs.fit(a.outputs, b.outputs)
    )


class _Pairs:
    """The tensors of one network by those of another that they stand for."""

    def __init__(self) -> None:
        self._others: dict[Value, Value] = {}

    def fit_op(self, a: Op, b: Op) -> bool:
        """Return whether two operators read and make tensors that are alike."""
        inner = self.fit(a.operands, b.operands) and self.fit(a.intermediates, b.intermediates)
        return inner and self.fit(a.results, b.results)

    def fit(self, these: _Slots, those: _Slots) -> bool:
        """Return whether tensors are alike, and pair them."""
        return len(these) == len(those) and all(map(self._fits, these, those))

    def _fits(self, a: Value | None, b: Value | None) -> bool:
        if a is None or b is None:
            return a is b
        if a not in self._others:
            if not _same_tensor(a, b):
                return False
            self._others[a] = b
        return self._others[a] is b


def _alike(a: Op, b: Op) -> bool:
    """Return whether two operators do the same with what they read."""
    same_kind = type(a) is type(b) and not isinstance(a, UnknownOp)
    return same_kind and a.version == b.version and repr(a.attributes()) == repr(b.attributes())


def _same_tensor(a: Value, b: Value) -> bool:
    """Return whether tensors hold the same numbers; those of blocks are not compared."""
    if any(a.block_tensors) or any(b.block_tensors):
        return False
    return _described(a) == _described(b) and _same_contents(a, b)


def _described(value: Value) -> tuple[object, ...]:
    shapes = value.dims, value.shape_signature
    return value.dtype, shapes, value.is_variable, value.quantization, value.sparsity


def _same_contents(a: Value, b: Value) -> bool:
    one, other = (None if v.buffer is None else v.buffer.data for v in (a, b))
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
