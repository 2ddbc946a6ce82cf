"""Let a network of 8-bit integers have them with a sign, or without: the same numbers, 128 codes
apart.

Files of TFLite's first converter (toco) are UINT8 throughout, today's are INT8. Tensors between
operators are shifted, and nothing is lost by it. Weights are rounded again where kernels want
another form: those on UINT8 have one scale for all of a layer's outputs, those on INT8 a zero point
of 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.analysis.bias_steps import steps_of_bias
from luciole.ir.analysis.weights import has_weights, weights_of
from luciole.ir.graph import all_ops
from luciole.ir.ops.quantize import Dequantize, Quantize, version_of_dequantize
from luciole.ir.passes.cleaning.remove_dead import remove_dead, remove_dead_buffers
from luciole.ir.passes.fuse_quantization import raise_version
from luciole.ir.quantization import Affine, affine_of
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.network.result import Result
from luciole.lquantizer.report import Report, shown
from luciole.lquantizer.rewrite.integers import runs, slot_of, weight_codes, weight_slot

_SOURCES = {"uint8": TensorType.INT8, "int8": TensorType.UINT8}
"""Element types of tensors before, by their types afterwards."""
_MOST, _LEAST = 127, {TensorType.UINT8: -128, TensorType.INT8: -127}
"""The largest and the smallest code of a weight, counted from its zero point."""


def requantize(model: Model, to: str) -> Result:
    """Copy a network of integers with others, ``to`` "uint8" or "int8", and report the weights that
    were rounded again. Operators that have no kernel on them or call graphs keep theirs between two
    QUANTIZE, and so do graphs that are called.

    Raises QuantizeError for another type, and where no tensor between operators is of the other
    one.
    """
    if to not in _SOURCES:
        raise QuantizeError(f"requantize is {to!r}: {', '.join(_SOURCES)} are possible")
    source, target = _SOURCES[to], TensorType[to.upper()]
    work = model.clone()
    called = {graph for op in all_ops(work.graphs) for graph in op.called_graphs()}
    alone = [graph for graph in work.graphs if graph not in called]  # a call has what it gives
    changes = [_Change.of(graph, source, target) for graph in alone]
    if not any(change.moved for change in changes):
        raise QuantizeError(f"nothing to requantize: no tensor between operators is {source.name}")
    for change in changes:
        change.run()
        remove_dead(change.graph)
    remove_dead_buffers(work)
    return Result(work, Report(warnings=_warnings(target, changes)))


def _warnings(target: TensorType, changes: list[_Change]) -> list[str]:
    """Warn of weights that were rounded again, and of operators that keep their old type."""
    warnings = []
    rounded = [name for change in changes for name in change.rounded]
    if rounded:
        form = "one scale for each layer" if target == TensorType.UINT8 else "the zero point 0"
        first = shown(rounded[0])
        layers = f"weights of {len(rounded)} layers, the first {first!r}, were rounded again"
        warnings.append(f"{layers}: {target.name} wants {form}")
    stay = [op for c in changes for op, dtype in c.types.items() if dtype != target]
    warnings += [
        f"{op.kind} {shown(op.name)!r} has no kernel on {target.name}: "
        "it stays between two QUANTIZE"
        for op in stay
    ]
    return warnings


@dataclass
class _Change:
    """One graph: the type that each operator on integers has afterwards, the tensors that get it,
    and what shifts the others.
    """

    graph: Graph
    source: TensorType
    target: TensorType
    types: dict[Op, TensorType]
    moved: set[Value]
    rounded: list[str] = field(default_factory=list)
    """Layers whose weights were rounded again."""
    shifts: dict[Value, Value] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Graph, source: TensorType, target: TensorType) -> _Change:
        """Find the operators that have kernels on the other type, and their tensors."""
        moved = {v for v in graph.values if not _is_kept(v) and _holds(v, source)}
        near = [op for op in graph.ops if not moved.isdisjoint((*op.operands, *op.results))]
        types = {op: target if _could(op, source, target) else source for op in near}
        for op in (op for op in near if types[op] == source):
            moved -= set(op.results)
        return cls(graph, source, target, types, moved)

    def run(self) -> None:
        """Shift tensors and constants, round weights again, and put QUANTIZE around operators that
        keep their type.
        """
        for op in [op for op, dtype in self.types.items() if dtype == self.target]:
            self._constants(op)
        for value in self.moved:
            _relabel(value, value, self.target)
        for op, dtype in self.types.items():
            self._shift_operands(op, dtype)
            _raise(op)
        for value in [v for v in self.graph.outputs if _holds(v, self.source)]:
            self._shift_output(value)

    def _constants(self, op: Op) -> None:
        """Give an operator the constants that kernels on the other type take."""
        if has_weights(op):
            self._weights(op)
        for slot, value in enumerate(op.operands):
            if value is not None and value.is_constant and _holds(value, self.source):
                op.set_operand(slot, _shifted_constant(self.graph, value, self.target))

    def _weights(self, op: Op) -> None:
        """Give a layer weights of the new type, and its bias their steps."""
        slot, value, axis = weight_slot(op)
        weights, bias = weights_of(op), _real_bias(op)
        assert weights is not None, "layers that move have constant weights"
        assert isinstance(weights.format, Affine), "which are integers"
        centred = weights.codes.astype(np.int64) - weights.format.along(weights.codes.shape)[1]
        codes, scales = _for_kernels(centred, weights.format.scale, self.target)
        if not np.array_equal(codes * scales[:, None], centred * weights.format.scale[:, None]):
            self.rounded.append(op.name)
        rows = codes.reshape(len(codes), *weights.shape)
        stored, affine = weight_codes(np.moveaxis(rows, 0, axis), scales, axis, self.target)
        constant = self.graph.add_constant(value.name, stored)
        constant.quantization = affine.table()
        op.set_operand(slot, constant)
        if bias is not None:
            _set_bias(self.graph, op, *bias)

    def _shift_operands(self, op: Op, dtype: TensorType) -> None:
        """Shift an operator's operands to the type that it computes in."""
        for slot, value in enumerate(op.operands):
            if value is None or value.is_constant or isinstance(op, Quantize | Dequantize):
                continue
            if value.dtype != dtype and (_holds(value, self.source) or _holds(value, self.target)):
                op.set_operand(slot, self._shifted(value, dtype))

    def _shifted(self, value: Value, dtype: TensorType) -> Value:
        """Find or insert the QUANTIZE that shifts a tensor, right behind its maker."""
        if value not in self.shifts:
            quantize, name = Quantize(value), self.graph.unique_name(f"{value.name}/shifted")
            if value.producer is None:
                self.graph.insert_before(self.graph.ops[0], quantize, name)
            else:
                self.graph.insert_after(value.producer.op, quantize, name)
            _relabel(quantize.output, value, dtype)
            raise_version(quantize)
            self.shifts[value] = quantize.output
        return self.shifts[value]

    def _shift_output(self, value: Value) -> None:
        """Give an output the type of all others; it keeps its name."""
        end = self._shifted(value, self.target)
        self.graph.outputs = [end if v is value else v for v in self.graph.outputs]
        self.graph.rename_in_signatures(value, end)
        end.name, value.name = value.name, end.name


def _holds(value: Value | None, dtype: TensorType) -> bool:
    return value is not None and value.dtype == dtype and affine_of(value) is not None


def _is_kept(value: Value) -> bool:
    """Check whether a tensor is none between operators: a constant, or the state of one."""
    return value.is_constant or value.is_variable


def _could(op: Op, source: TensorType, target: TensorType) -> bool:
    """Check whether an operator has a kernel on the other type."""
    if op.called_graphs() or any(v is not None and v.is_variable for v in op.operands):
        return False
    weight = op.given_operands().get(op.quant.weight or "") if op.quant is not None else None
    if weight is not None and not _could_be_rounded(op, weight):
        return False
    if any(v is not None and v.is_constant and v.data is None for v in op.operands):
        return False  # sparse constants stay as they are
    twin = op.clone([_twin(v, v is weight, source, target) for v in op.operands])
    types = tuple(target if _holds(v, source) else v.dtype for v in op.results)
    has_kernel = runs(twin) and (
        isinstance(op, Quantize | Dequantize) or twin.result_dtypes() == types
    )
    twin.set_operands([])  # so that no tensor is used by it any more
    return has_kernel


def _could_be_rounded(op: Op, weight: Value) -> bool:
    """Check whether a layer's weights and bias are constants that can get other steps."""
    weights, bias = weights_of(op), op.given_operands().get((op.quant and op.quant.bias) or "")
    whole = weights is not None and isinstance(weights.format, Affine) and weight.sparsity is None
    return whole and (bias is None or bias.data is not None)


def _twin(
    value: Value | None, weight: bool, source: TensorType, target: TensorType
) -> Value | None:
    """Copy an operand of the old type, or a layer's weights, as it would be in the new one."""
    if value is None or not (weight or _holds(value, source)):
        return value
    twin = Value(value.name, target, value.shape)
    twin.quantization = Affine.single(1.0, 0, target).table()
    return twin


def _relabel(value: Value, like: Value, dtype: TensorType) -> None:
    """Set a tensor's type, and its affine parameters to those of ``like`` in that type."""
    affine = Affine.of(like, f"tensor {like.name!r}")
    value.quantization, value.dtype = affine.shifted(dtype).table(), dtype


def _shifted_constant(graph: Graph, value: Value, dtype: TensorType) -> Value:
    affine, data = Affine.of(value, f"tensor {value.name!r}"), value.contents
    moved = affine.shifted(dtype)
    step = moved.limits[0] - affine.limits[0]
    constant = graph.add_constant(
        value.name, (data.astype(np.int64) + step).astype(dtype.name.lower())
    )
    constant.quantization = moved.table()
    return constant


def _for_kernels(
    codes: NDArray[np.int64], scales: NDArray[np.float32], target: TensorType
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return codes [o, n] around 0, and scales [o] or [1], that kernels take: the same where they
    fit, else rounded to the nearest.
    """
    if target == TensorType.UINT8 and (scales != scales[0]).any():
        peak = (np.abs(codes).max(1) * scales.astype(np.float64)).max()
        new_scales = np.array([peak / _MOST or 1.0], np.float32)
    elif codes.max(initial=0) > _MOST or codes.min(initial=0) < _LEAST[target]:
        peaks = np.abs(codes).max(1).astype(np.float64)
        new_scales = (scales * np.maximum(peaks / _MOST, 1.0)).astype(np.float32)
    else:
        return codes, scales if (scales != scales[0]).any() else scales[:1]
    steps = codes * (scales.astype(np.float64) / new_scales)[:, None]
    return np.clip(np.rint(steps), -_MOST, _MOST).astype(np.int64), new_scales


def _real_bias(op: Op) -> tuple[Value, Array] | None:
    """Return a layer's bias and its real numbers [o], None where it has none."""
    name = None if op.quant is None else op.quant.bias
    value = None if name is None else slot_of(op, name)[1]
    steps = steps_of_bias(op, op.operands)
    if value is None or value.data is None or steps is None:
        return None
    return value, value.data.reshape(-1) * steps.astype(np.float64)


def _set_bias(graph: Graph, op: Op, old: Value, real: Array) -> None:
    """Round a bias [o] to the steps that a layer's new weights give it."""
    steps = steps_of_bias(op, op.operands)
    assert steps is not None, "the layer is one on integers"
    affine = Affine.channels(steps, np.zeros(len(steps)), 0, old.dtype)
    constant = graph.add_constant(old.name, affine.encode(real).reshape(old.dims))
    constant.quantization = affine.table()
    op.set_operand(op.operands.index(old), constant)


def _raise(op: Op) -> None:
    """Raise an operator's version to one that knows its operands' types."""
    if isinstance(op, Dequantize):
        op.version = max(op.version, version_of_dequantize(op.input.dtype, False))
    elif op.quant is not None:
        raise_version(op)
