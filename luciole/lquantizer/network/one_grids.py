"""Scales and zero points of all tensors as Samsung ONE's circle-quantizer chooses them.

The order is that of ONE's QuantizeWithMinMaxPass.cpp: ranges become scales, QUANTIZE goes where
element types meet, results give theirs to operands (PropagateQParamBackwardPass.cpp), results whose
range is known get theirs, operands give theirs to results (PropagateQParamForwardPass.cpp).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from luciole.ir import Graph, Op, TensorType, Value
from luciole.ir.analysis.floats import is_float
from luciole.ir.op import Op as AnyOp
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.one_hot import OneHot
from luciole.ir.ops.pack import Pack
from luciole.ir.ops.pad import PadV2
from luciole.ir.ops.quantize import Quantize
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.split import Split
from luciole.ir.ops.split_v import SplitV
from luciole.ir.ops.strided_slice import StridedSlice
from luciole.ir.ops.transpose import Transpose
from luciole.ir.ops.unpack import Unpack
from luciole.ir.quantization import Affine
from luciole.ir.value import Use
from luciole.lquantizer.assignment.one_config import Kind
from luciole.lquantizer.formats.affine import Range
from luciole.lquantizer.formats.one_numbers import PREDEFINED, WHOLE, of_limits, predefined, whole
from luciole.lquantizer.network.grids import floats_of
from luciole.schema.enums import ActivationFunctionType

Limits = Callable[[Value], Range]

_FORWARD: dict[type[AnyOp], str] = {
    Gather: "params",
    Reshape: "tensor",
    Transpose: "a",
    StridedSlice: "input",
    Split: "input",
    SplitV: "input",
    Unpack: "value",
}
"""Operators whose results have the scale of an operand, and of which."""
_BACKWARD: tuple[type[AnyOp], ...] = (Concatenation, Pack, PadV2, OneHot)
"""Operators whose operands have the scale of the result."""
_LOWEST = float(np.finfo(np.float32).min)
"""The padding of a PADV2 in front of a MAX_POOL: its scale is then that of the tensor."""


class OneGrids:
    """Scales and zero points of a graph's tensors, and of constants that share them."""

    def __init__(
        self, graph: Graph, kinds: Mapping[Op, Kind], default: Kind, limits: Limits
    ) -> None:
        self.graph, self.kinds, self.default, self._limits = graph, dict(kinds), default, limits
        self.tensors: dict[Value, Affine] = {}
        self.constants: dict[Use, Affine] = {}
        self._limited: dict[Value, Range] = {}
        """What each tensor reached while data ran."""

    def choose(self) -> None:
        """Choose for every float tensor that is no constant; QUANTIZE goes where types meet."""
        for value in tensors_of(self.graph):
            self._limited[value] = self._limits(value)
            self.tensors[value] = of_limits(self._limited[value], self.kind_of(value).dtype)
        for op in list(self.graph.ops):
            self._match_types(op)
        for op in self.graph.ops:
            self._backward(op)
        for op in self.graph.ops:
            self._special(op)
        while sum(self._forward(op) for op in self.graph.ops):
            pass

    def kind_of(self, value: Value) -> Kind:
        """Return the kind of a tensor: that of the operator that computes it."""
        return self.default if value.producer is None else self.kinds[value.producer.op]

    def _match_types(self, op: Op) -> None:
        """Bring operands to the element type of the result."""
        dtype = self.kinds[op].dtype
        if not floats_of(op):
            return
        turned: dict[Value, Value] = {}
        for slot, value in enumerate(op.operands):
            if value in self.tensors and self.tensors[value].dtype != dtype:
                if value not in turned:
                    turned[value] = self.quantized(value, self.kinds[op], op)
                op.set_operand(slot, turned[value])

    def quantized(self, value: Value, kind: Kind, before: Op | None) -> Value:
        """Append a QUANTIZE of a tensor, or insert it in front of an operator."""
        quantize, name = Quantize(value), self.graph.unique_name(f"{value.name}_Quantize")
        if before is None:
            self.graph.append(quantize, name)
        else:
            self.graph.insert_before(before, quantize, name)
        self.kinds[quantize], result = kind, quantize.output
        result.dtype = TensorType.FLOAT32  # until all become what they are
        self._limited[result] = self._limited[value]
        self.tensors[result] = of_limits(self._limited[result], kind.dtype)
        return result

    def at_end(self, value: Value, dtype: TensorType) -> Affine:
        """Give the scale that an input or output of another type has: that of its range."""
        return of_limits(self._limited[value], dtype)

    def _backward(self, op: Op) -> None:
        if not isinstance(op, _BACKWARD) or op.output not in self.tensors:
            return
        if _activation(op) != ActivationFunctionType.NONE:
            return
        if isinstance(op, PadV2) and _is_lowest(op.constant_values):
            self.tensors[op.output] = self.tensors[op.input]
        affine = self.tensors[op.output]
        for slot, value in enumerate(op.operands):
            if value is not None and is_float(value):
                self._set_operand_scale(Use(op, slot), value, affine)

    def _set_operand_scale(self, use: Use, value: Value, affine: Affine) -> None:
        """Give an operand the result's scale, unless others use it or its maker passes scales
        on, too.
        """
        if value.is_constant:
            self.constants[use] = affine
            return
        producer = None if value.producer is None else value.producer.op
        if type(producer) is not type(use.op) and len(value.users) + value.is_output == 1:
            self.tensors[value] = affine

    def _special(self, op: Op) -> None:
        for value in floats_of(op):
            kind = "TANH" if _activation(op) == ActivationFunctionType.TANH else op.kind
            if kind in PREDEFINED:
                self.tensors[value] = predefined(kind, self.tensors[value].dtype)
            elif kind in WHOLE:
                self.tensors[value] = whole(self.tensors[value])

    def _forward(self, op: Op) -> bool:
        """Give results an operand's scale; returns whether that changed any."""
        changed = False
        for value in floats_of(op):
            moved = self._moved(op, self.tensors[value])
            changed |= not moved.same_numbers(self.tensors[value])
            self.tensors[value] = moved
        return changed

    def _moved(self, op: Op, own: Affine) -> Affine:
        name = _FORWARD.get(type(op))
        if name is not None:
            return self.tensors.get(op.given_operands()[name], own)
        source = _known(op.input) if isinstance(op, Quantize) else None
        if source is None or self.tensors[op.operands[0]].dtype == own.dtype:  # type: ignore[index]
            return own
        return predefined(source, own.dtype) if source in PREDEFINED else whole(own)


def tensors_of(graph: Graph) -> list[Value]:
    """List the float tensors that data run through."""
    made = [value for op in graph.ops for value in op.results]
    return [value for value in (*graph.inputs, *made) if is_float(value)]


def constants_of(op: Op) -> Iterator[tuple[int, str, Value]]:
    """Yield an operator's float constants: the slot, the operand's name, what is there."""
    for slot, (name, value) in enumerate(op.named_operands()):
        if value is not None and value.is_constant and is_float(value):
            yield slot, name, value


def _known(value: Value) -> str | None:
    """Find the operator behind tensors that only move elements whose range is known."""
    op = None if value.producer is None else value.producer.op
    if op is None:
        return None
    if _activation(op) == ActivationFunctionType.TANH:
        return "TANH"
    if op.kind in PREDEFINED or op.kind in WHOLE:
        return op.kind
    name = "input" if isinstance(op, Quantize) else _FORWARD.get(type(op))
    return None if name is None else _known(op.given_operands()[name])


def _activation(op: Op) -> object:
    return op.attributes().get("activation", ActivationFunctionType.NONE)


def _is_lowest(value: Value) -> bool:
    data = value.data
    return data is not None and data.size > 0 and float(data.reshape(-1)[0]) == _LOWEST
