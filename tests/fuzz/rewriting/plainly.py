"""What rounding each tensor of a network by itself would give, computed in NumPy: a floor for what
a quantizer makes of it.

What has a pole where it is read (divisors, what roots and logarithms are taken of) is not rounded,
and what is as large as a mask does not widen a tensor's range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from luciole.ir import Array, Graph, LucioleError, Model, Op, TensorType, Value
from luciole.ir.ops.elementwise_binary import Div, Pow
from luciole.ir.ops.elementwise_unary import Log, Rsqrt, Sqrt
from luciole.ir.quant import Like
from luciole.kernels.core import evaluation
from tests.fuzz.rewriting.schemes import Plain

RECORDS = 8
"""The last records, which alone are rounded plainly; all say how far tensors reach."""
MASK = 1e3
"""Numbers this large are masks."""
_WIDER = 0.1
"""The share by which grids are wider at the most, where they are moved."""
_CLIPS = (1.0, 0.85, 0.7, 0.55, 0.4)
"""Shares of the largest weight that the highest level may be."""

Arrays = dict[Value, Array]
Limits = Mapping[Value, tuple[float, float]]


class Floor:
    """The float network's tensors, and the network rounded in other ways for the last records.

    Raises LucioleError for a network with state.
    """

    def __init__(self, model: Model, records: Sequence[Mapping[str, Array]]) -> None:
        self.graph = model.graph
        if any(value.is_variable for value in self.graph.values):
            raise LucioleError("it has state")
        self.records = records[-RECORDS:]
        runs = [run(self.graph, record) for record in records]
        self.floats = _outputs(self.graph, runs[-RECORDS:])
        arrays = [a for run in runs for a in run.values() if a.dtype.kind == "f"]
        self.has_nan = any(np.isnan(a).any() for a in arrays)
        self.is_finite = all(np.isfinite(a).all() for a in arrays)
        self.limits = {
            v: _limits([run[v] for run in runs]) for v in self.graph.values if _between(v)
        }
        self._steep = {v for op in self.graph.ops for v in _steep(op)}
        self._wider: Mapping[Value, float] = {}

    def outputs(self, plain: Plain, seed: int | None = None) -> list[Array]:
        """Compute the outputs [records, ...] with every tensor rounded; with a seed every grid is a
        little wider, so that numbers fall on other sides of its steps.
        """
        rng = None if seed is None else np.random.default_rng(seed)
        layers = [op for op in self.graph.ops if op.quant and op.quant.weight]
        weights = {op: _weights(op, plain, rng) for op in layers}
        self._wider = {value: 1 + _drawn(rng) for value in self.limits}
        runs = [self._rounded(record, plain, weights) for record in self.records]
        return _outputs(self.graph, runs)

    def _rounded(
        self, record: Mapping[str, Array], plain: Plain, weights: Mapping[Op, Array | None]
    ) -> Arrays:
        arrays = _given(self.graph, record)
        for value in self.graph.inputs:
            arrays[value] = self._tensor(value, arrays[value], plain, None)
        for op in self.graph.ops:
            operands = [None if v is None else arrays[v] for v in op.operands]
            if weights.get(op) is not None:
                self._read(op, operands, weights[op], plain)
            self._share(op, operands, plain)
            results = evaluation.computed(op, operands)
            for value, array in zip(op.results, results, strict=True):
                arrays[value] = self._tensor(value, array, plain, _range(op))
        return arrays

    def _share(self, op: Op, operands: list[Array | None], plain: Plain) -> None:
        """Bring operands to the grid that they share with a result."""
        result = op.results[0]
        if plain.tensors is None or op.quant is None or not isinstance(op.quant.result, Like):
            return
        for slot, (name, value) in enumerate(op.named_operands()):
            array = operands[slot]
            if name in op.quant.result.operands and value in self.limits and array is not None:
                reach = self._reach(value if len(op.results) > 1 else result, plain)
                operands[slot] = evenly(array, reach, plain.tensors)

    def _tensor(
        self, value: Value, array: Array, plain: Plain, reach: tuple[float, float] | None
    ) -> Array:
        """Round a tensor between operators, as far as its operator reaches where that is known."""
        if value not in self.limits or value in self._steep:
            return array
        if plain.minifloat is not None:
            return minifloat(array, *plain.minifloat)
        limits = reach or self._reach(value, plain)
        return array if plain.tensors is None else evenly(array, limits, plain.tensors)

    def _reach(self, value: Value, plain: Plain) -> tuple[float, float]:
        """Return how far a tensor's integers reach, equally far on both sides of 0 if asked for."""
        low, high = self._widened(value)
        peak = max(-low, high)
        return (-peak, peak) if plain.symmetric and low < 0 < high else (low, high)

    def _widened(self, value: Value) -> tuple[float, float]:
        low, high = self.limits[value]
        return low * self._wider[value], high * self._wider[value]

    def _read(
        self, op: Op, operands: list[Array | None], weights: Array | None, plain: Plain
    ) -> None:
        """Give a layer its rounded weights, and what it reads in so many bits."""
        assert op.quant is not None, "it is a layer"
        names = [name for name, _ in op.named_operands()]
        operands[names.index(op.quant.weight or "")] = weights
        slot = names.index(op.quant.input)
        value, array = op.operands[slot], operands[slot]
        if plain.inputs is not None and value in self.limits and array is not None:
            operands[slot] = evenly(array, self._widened(value), plain.inputs)


def evenly(array: Array, limits: tuple[float, float], bits: int) -> Array:
    """Round to 2^bits even steps from one limit to the other, 0 among them."""
    low, high = limits
    step = (high - low) / (2**bits - 1) or 1.0
    zero = round(-low / step)
    with np.errstate(invalid="ignore"):
        codes = np.clip(np.rint(array / step) + zero, 0, 2**bits - 1)
    return np.asarray((codes - zero) * step, np.float32)


def minifloat(array: Array, exponent: int, mantissa: int) -> Array:
    """Round to floats of so many bits."""
    top = 2 ** (exponent - 1) - 1
    with np.errstate(divide="ignore"):
        power = np.clip(np.floor(np.log2(np.abs(array, dtype=np.float64))), 1 - top, top)
    step = np.exp2(power - mantissa)
    largest = (2 - 2.0**-mantissa) * 2.0**top
    nearest = np.rint(array / step) * step
    return np.asarray(np.clip(nearest, -largest, largest), np.float32)


def _drawn(rng: np.random.Generator | None) -> float:
    """Draw by which share a grid is wider."""
    return 0.0 if rng is None else float(rng.uniform(0, _WIDER))


def _weights(op: Op, plain: Plain, rng: np.random.Generator | None) -> Array | None:
    """Round a layer's weights, by output channel unless they have one scale."""
    assert op.quant is not None, "it is a layer"
    value = op.given_operands().get(op.quant.weight or "")
    if value is None or value.data is None or value.dtype != TensorType.FLOAT32:
        return None
    data = value.data
    if plain.minifloat is not None:
        return minifloat(data, *plain.minifloat)
    if plain.weights == 0:
        return data.astype(np.float16).astype(np.float32)
    others = tuple(a for a in range(data.ndim) if plain.by_tensor or a != op.quant.axis)
    peaks = np.maximum(np.abs(data).max(others, keepdims=True), np.float32(1e-30))
    return _levels(data, peaks * np.float32(1 + _drawn(rng)), others, plain.weights)


def _levels(data: Array, peaks: Array, others: tuple[int, ...], bits: int) -> Array:
    """Round to 2^bits - 1 steps about 0, or to two levels, by the best of some clippings."""
    best = np.zeros_like(data)
    least = np.full(peaks.shape, np.inf)
    for share in _CLIPS if bits < 8 else (1.0,):
        most = max(2 ** (bits - 1) - 1, 1)
        step = share * peaks / most
        codes = np.clip(np.rint(data / step), -most, most)
        codes = np.where(data < 0, -1, 1) if bits == 1 else codes
        made = (codes * step).astype(np.float32)
        error = np.square(made - data).sum(others, keepdims=True)
        best = np.where(error < least, made, best)
        least = np.minimum(error, least)
    return best


def _range(op: Op) -> tuple[float, float] | None:
    """Find the range that an operator's integers always have."""
    fixed = None if op.quant is None else op.quant.fixed(TensorType.INT8)
    if fixed is None:
        return None
    scale, zero_point = fixed
    return scale * (-128 - zero_point), scale * (127 - zero_point)


def _steep(op: Op) -> list[Value]:
    """List what an operator reads near a pole."""
    if isinstance(op, Div):
        return [op.operands[1]] if op.operands[1] is not None else []
    if isinstance(op, Rsqrt | Log | Sqrt | Pow):
        return [op.operands[0]] if op.operands[0] is not None else []
    return []


def _between(value: Value) -> bool:
    return value.dtype == TensorType.FLOAT32 and not value.is_constant


def _limits(arrays: Sequence[Array]) -> tuple[float, float]:
    every = np.concatenate([a.ravel() for a in arrays])
    usual = every[np.abs(every) < MASK]
    return float(usual.min(initial=0)), float(usual.max(initial=0))


def _given(graph: Graph, record: Mapping[str, Array]) -> Arrays:
    arrays = {v: v.data for v in graph.values if v.is_constant and v.data is not None}
    return arrays | {v: record[v.name] for v in graph.inputs}


def run(graph: Graph, record: Mapping[str, Array]) -> Arrays:
    """Compute all tensors by NumPy kernels."""
    arrays = _given(graph, record)
    for op in graph.ops:
        results = evaluation.computed(op, [None if v is None else arrays[v] for v in op.operands])
        arrays |= dict(zip(op.results, results, strict=True))
    return arrays


def _outputs(graph: Graph, runs: Sequence[Arrays]) -> list[Array]:
    return [np.stack([run[v] for run in runs]) for v in graph.outputs]
