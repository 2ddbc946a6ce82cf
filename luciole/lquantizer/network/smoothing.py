"""Divide the channels of a normalization by scales, and multiply the weights of the dense layers
that read it by them: a few channels that are far larger than others then leave these their steps.

Scale and shift of a normalization are constants, so that nothing is computed in addition (Xiao et
al. 2023, "SmoothQuant: Accurate and Efficient Post-Training Quantization for Large Language
Models", section 4, equation 4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from luciole.interpreter.records import Records
from luciole.ir import Array, Graph, Model, Op, Value
from luciole.ir.analysis.floats import is_float
from luciole.ir.ops.elementwise_binary import Add, Mul, Sub
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.rms_norm import RmsNorm
from luciole.ir.ops.shape import Shape
from luciole.ir.value import Use
from luciole.lquantizer.calibration.watch import watched
from luciole.lquantizer.network.rescale import Floats, floored, multiply
from luciole.schema.enums import ActivationFunctionType

_STRENGTHS = {"peaks": (1.0,), "equal": (0.5,), "auto": (0.5, 0.75, 0.25, 1.0)}
"""Exponents of channels' peaks, those of the weights' having the rest of 1, by rule."""
_WORTH = 0.5
"""Share of the error below which rescaling is worth it: in an even encoder 0.8 gained nothing."""
_MOST = 2.0**8
"""The largest scale, and the smallest is its inverse."""
_NUMBERS, _DEPTH = 1_000_000, 6
"""Of the tensor that judges: numbers, roughly; and operators between it and its constants."""


@dataclass(frozen=True)
class Norm:
    """A tensor whose channels are multiplied by constants, alone read by dense layers: where these
    constants are read, and the tensors that are multiplied with it.
    """

    value: Value
    constants: frozenset[Use]
    multiplied: frozenset[Value]
    readers: tuple[FullyConnected, ...]

    @property
    def names(self) -> tuple[str, str]:
        """The names of the tensor and of the first layer's result."""
        return self.value.name, self.readers[0].output.name

    @property
    def channels(self) -> int:
        """The channels of the tensor."""
        return self.readers[0].weights.dims[-1]

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of all tensors that are multiplied."""
        return tuple(value.name for value in self.multiplied)

    def apply(self, graph: Graph, scales: Floats) -> None:
        """Multiply the channels by scales [channels], and divide the layers' weights by them."""
        factors = scales.astype(np.float32)
        for op, slot in self.constants:
            multiply(graph, op, slot, factors)
        for op in self.readers:
            multiply(graph, op, 1, 1 / factors)


Judge = Callable[[FullyConnected, Array, Array], Array]
"""Computes a layer's rounded products of rows [r, n] with weights [o, n]: [r, o]."""


def norms_of(graph: Graph) -> Iterator[Norm]:
    """Find the tensors whose channels can be multiplied in front of dense layers."""
    for op in graph.ops:
        if isinstance(op, Add | Sub | Mul | RmsNorm):
            norm = _norm(op.output)
            if norm is not None:
                yield norm


def smooth(
    model: Model, norms: Sequence[Norm], records: Records, batch: int, rule: str, judge: Judge
) -> list[tuple[Norm, Floats]]:
    """Rescale the channels of normalizations of a float network by a rule, or by "auto" as moves
    the layers behind them least. Returns what was done.
    """
    done = []
    met = _met(model, norms, records, batch)
    for norm, rows in zip(norms, met if norms else (), strict=True):
        scales = [_scales(norm, rows, strength) for strength in _STRENGTHS.get(rule, ())]
        tried = [np.ones(norm.channels), *scales] if rule == "auto" else scales
        if not tried:
            continue
        errors = [_error(norm, rows, one, judge) for one in tried] if len(tried) > 1 else [0.0]
        chosen = tried[int(np.argmin([_WORTH * errors[0], *errors[1:]]))]
        if (chosen != 1).any():
            norm.apply(model.graph, chosen)
            done.append((norm, chosen))
    return done


def _norm(value: Value) -> Norm | None:
    readers = _readers(value)
    if not readers or any(op.weights.dims[-1] != value.shape[-1] for op, _ in readers):
        return None
    chain = _chain(value, _DEPTH)
    if chain is None or not _is_alone(value, *chain):
        return None
    between = frozenset(v for _, reshaped in readers for v in reshaped)
    return Norm(value, chain[0], chain[1] | between, tuple(op for op, _ in readers))


def _readers(value: Value) -> list[tuple[FullyConnected, list[Value]]]:
    """Find the dense layers that alone read a tensor, each with what is reshaped in front of it;
    none where something else reads it, too.
    """
    readers: list[tuple[FullyConnected, list[Value]]] = []
    for op, slot in value.users:
        if isinstance(op, Shape):
            continue
        if isinstance(op, Reshape) and slot == 0:  # rows of as many numbers are the same rows
            behind = _readers(op.output)
            if not behind:
                return []
            readers += [(layer, [op.output, *reshaped]) for layer, reshaped in behind]
        elif isinstance(op, FullyConnected) and slot == 0 and _has_own_weights(op):
            readers.append((op, []))
        else:
            return []
    return [] if value.is_output else readers


def _has_own_weights(op: FullyConnected) -> bool:
    return op.weights.data is not None and is_float(op.weights) and len(op.weights.users) == 1


_Chain = tuple[frozenset[Use], frozenset[Value]]


def _chain(value: Value, depth: int) -> _Chain | None:
    """Find the constants which multiplied by channel multiply a tensor, and all the tensors that
    are multiplied with it; None where there are none.
    """
    op = None if value.producer is None else value.producer.op
    if op is None or not depth or not _is_plain(op):
        return None
    if isinstance(op, Add | Sub):
        parts = [_part(op, slot, depth) for slot in (0, 1)]
    elif isinstance(op, Mul):
        parts = [next((p for slot in (1, 0) if (p := _part(op, slot, depth))), None)]
    else:
        parts = [_part(op, 1, depth)] if isinstance(op, RmsNorm) else [None]
    uses, values = frozenset[Use](), frozenset([value])
    for part in parts:
        if part is None:
            return None
        uses, values = uses | part[0], values | part[1]
    return uses, values


def _is_plain(op: Op) -> bool:
    none = ActivationFunctionType.NONE
    return bool(op.attributes().get("activation", none) == none)


def _part(op: Op, slot: int, depth: int) -> _Chain | None:
    """Find the constants of one operand, which is not stretched along the channels."""
    value = op.required(slot)
    if value.data is None:
        is_whole = value.shape[-1:] == op.results[0].shape[-1:]
        return _chain(value, depth - 1) if is_whole else None
    return (frozenset([Use(op, slot)]), frozenset()) if is_float(value) else None


def _is_alone(value: Value, constants: frozenset[Use], values: frozenset[Value]) -> bool:
    """Check whether nothing else reads the multiplied tensors, and no product multiplies two."""
    ops = {v.producer.op for v in values if v.producer is not None}
    inside = all(
        not v.is_output and all(use.op in ops for use in v.users) for v in values - {value}
    )
    products = [op for op in ops if isinstance(op, Mul)]
    counts = [
        sum(v in values or Use(op, slot) in constants for slot, v in enumerate(op.operands))
        for op in products
    ]
    return inside and all(count == 1 for count in counts)


def _met(model: Model, norms: Sequence[Norm], records: Records, batch: int) -> list[Array]:
    """Collect rows [r, channels] of the tensors."""
    rows: list[list[Array]] = [[] for _ in norms]
    for _, arrays in watched(model, [norm.value for norm in norms], records, batch):
        for norm, array, kept in zip(norms, arrays, rows, strict=True):
            kept.append(array.reshape(-1, norm.channels).copy())
    joined = [np.concatenate(parts) for parts in rows]
    return [part[:: max(1, part.size // _NUMBERS)] for part in joined]


def _scales(norm: Norm, rows: Array, strength: float) -> Floats:
    """Choose factors of channels: the inverse of equation 4."""
    weights = np.max([np.abs(op.weights.contents).max(0) for op in norm.readers], 0)
    peaks = floored(np.abs(rows).max(0))
    scales = floored(weights) ** (1 - strength) / peaks**strength
    even = scales / np.exp(np.log(scales).mean())
    return np.asarray(np.clip(even, 1 / _MOST, _MOST), np.float64)


def _error(norm: Norm, rows: Array, scales: Floats, judge: Judge) -> float:
    """Measure the squared error of all layers' rounded products."""
    factors, error = scales.astype(np.float32), 0.0
    for op in norm.readers:
        weights = op.weights.contents
        off = judge(op, rows * factors, weights / factors) - rows @ weights.T
        error += float(np.square(off, dtype=np.float64).sum())
    return error
