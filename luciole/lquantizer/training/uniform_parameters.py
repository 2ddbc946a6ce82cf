"""Read what can be trained of a rounded network from its operators, and write it back.

A rounded network computes with floats; a QUANTIZE and a DEQUANTIZE stand around every tensor that
becomes integers, a DEQUANTIZE behind the integer weights of layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, Graph, Op, TensorType, Value
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.passes.fuse_quantization import integers_behind
from luciole.ir.quant import Fixed, Like
from luciole.ir.quantization import Affine, affine_of
from luciole.lquantizer.errors import QuantizeError

_TIES = 1e-3
"""Share of weights that may have another code than the nearest for being between two."""


@dataclass(eq=False)
class TiedTensors:
    """Integer tensors with one scale and zero point between them, which stay the same for all."""

    codes: list[Value]
    affine: Affine
    is_free: bool = True
    """Whether they may have others: not where an operator's range calls for these, nor where a
    constant is stored in them."""
    width: int | None = None
    """Bits that they keep to, where these are fewer than their type has."""

    @property
    def bits(self) -> int:
        """How many bits they are rounded to."""
        return self.affine.bits if self.width is None else self.width


@dataclass(eq=False)
class IntegerWeights:
    """A layer's integer weights, the DEQUANTIZE behind them, and the layer's float bias."""

    op: Op
    codes: Value
    dequantize: Dequantize
    affine: Affine
    axis: int
    bias: Value | None
    width: int | None = None
    """Bits that they keep to, where these are fewer than their type has."""

    @property
    def bits(self) -> int:
        """How many bits they are rounded to."""
        return self.affine.bits if self.width is None else self.width

    @property
    def most(self) -> int:
        """The largest code, the smallest being minus that."""
        return self.affine.limits[1] if self.width is None else int(2 ** (self.width - 1) - 1)

    def rows(self, array: Array) -> Array:
        """Reshape an array in the weights' layout to rows [o, n]."""
        moved = np.moveaxis(array, self.axis, 0)
        return np.ascontiguousarray(moved.reshape(len(moved), -1))

    def layout(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the shape and the permutation that make weights of columns [n, o]."""
        shape = self.codes.dims
        rest = [n for i, n in enumerate(shape) if i != self.axis]
        order = list(range(len(rest)))
        order.insert(self.axis, len(rest))
        return (*rest, shape[self.axis]), tuple(order)


@dataclass
class _Ties:
    """Groups of tensors that grow together."""

    groups: dict[Value, TiedTensors] = field(default_factory=dict)

    def add(self, codes: Value) -> None:
        """Make a group of a tensor of integers."""
        affine = affine_of(codes)
        if affine is None or affine.scale.size != 1:
            raise QuantizeError(f"tensor {codes.name!r} has no single scale to be trained")
        self.groups[codes] = TiedTensors([codes], affine, not codes.is_constant)

    def join(self, first: Value, second: Value) -> None:
        """Join two groups if they have the same scale and zero point."""
        own, other = self.groups[first], self.groups[second]
        if own is other or not own.affine.same_numbers(other.affine):
            return
        own.codes += other.codes
        own.is_free &= other.is_free
        self.groups.update(dict.fromkeys(other.codes, own))


def tied_tensors(graph: Graph) -> list[TiedTensors]:
    """List the tensors that QUANTIZE operators round, grouped where operators tie them."""
    ties = _Ties()
    for op in graph.ops:
        if isinstance(op, Quantize):
            ties.add(op.output)
    for op in graph.ops:
        _tie(op, ties)
    groups = {id(group): group for group in ties.groups.values()}.values()
    return [group for group in groups if not all(v.is_constant for v in group.codes)]


def _tie(op: Op, ties: _Ties) -> None:
    """Join the groups of an operator's tensors, or fix them where its range does."""
    rule = None if op.quant is None or isinstance(op, Quantize) else op.quant.result
    results = list(_rounded_results(op))
    if isinstance(rule, Fixed):
        for codes in results:
            ties.groups[codes].is_free = False
    if not isinstance(rule, Like) or not results:
        return
    for codes in (*results[1:], *_shared(op, rule)):
        if codes not in ties.groups:
            ties.add(codes)
        ties.join(results[0], codes)


def _shared(op: Op, rule: Like) -> Iterator[Value]:
    """Yield the integers behind the operands that share with an operator's result."""
    for slot, value in enumerate(op.operands):
        codes = None if value is None else integers_behind(value)
        named = op.operand_field(slot).name in rule.operands
        if named and codes is not None and codes.dtype != TensorType.FLOAT16:
            yield codes


def _rounded_results(op: Op) -> Iterator[Value]:
    """Yield the integers that an operator's results are rounded to."""
    for result in op.results:
        for use in result.users:
            if isinstance(use.op, Quantize):
                yield use.op.output


def integer_weights(graph: Graph) -> list[IntegerWeights]:
    """List the integer weights of layers, in execution order."""
    layers = []
    for op in graph.ops:
        named = op.given_operands() if op.quant is not None else {}
        weights = named.get(op.quant.weight or "") if op.quant is not None else None
        codes = None if weights is None else integers_behind(weights)
        affine = None if codes is None else affine_of(codes)
        if weights is None or codes is None or affine is None or not codes.is_constant:
            continue
        quant = op.quantized_as
        dequantize = None if weights.producer is None else weights.producer.op
        assert isinstance(dequantize, Dequantize), "integers were found behind it"
        bias = named.get(quant.bias or "")
        bias = bias if bias is not None and bias.data is not None else None
        layers.append(IntegerWeights(op, codes, dequantize, affine, quant.axis, bias))
    return layers


def is_nearest(weights: IntegerWeights, target: Array) -> bool:
    """Check whether the codes are the nearest ones of float weights [o, n], but for ties."""
    nearest = np.rint(_steps(weights, target)).clip(-weights.most, weights.most)
    return bool(np.mean(nearest != _codes(weights)) < _TIES)


def _codes(weights: IntegerWeights) -> NDArray[np.float64]:
    """Read the codes as rows [o, n]."""
    data = weights.codes.contents
    return weights.rows(data).astype(np.float64)


def _steps(weights: IntegerWeights, target: Array) -> NDArray[np.float64]:
    """Count float weights [o, n] in steps. Raises QuantizeError for those of another shape."""
    shape = weights.rows(np.empty(weights.codes.dims, np.int8)).shape
    if target.shape != shape:
        raise QuantizeError(
            f"{weights.op}: its target weights are {list(target.shape)}, {list(shape)} is needed"
        )
    return np.asarray(target.astype(np.float64) / weights.affine.scale[:, None])


def latents_of(weights: IntegerWeights, target: Array | None, margin: float) -> NDArray[np.float32]:
    """Choose shadow weights [o, n] that round to the present codes, as close to ``target`` (float
    weights [o, n]) as a margin of so many steps from the edges lets them; without one, what the
    codes stand for.
    """
    codes, scales = _codes(weights), weights.affine.scale[:, None]
    if target is None:
        return np.asarray(codes * scales, np.float32)
    most, reach = weights.most, 0.5 - margin
    low = np.where(codes <= -most, -np.inf, codes - reach)
    high = np.where(codes >= most, np.inf, codes + reach)
    return np.asarray(np.clip(_steps(weights, target), low, high) * scales, np.float32)
