"""Bring a network that is to be quantized to real numbers, or say how it is quantized already: the
one question that every way to quantize asks first.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from luciole.ir import Graph, Model, Op, TensorType, Value
from luciole.ir.analysis.floats import is_float
from luciole.ir.analysis.weights import has_levels, has_weights, weight_constant, weights_of
from luciole.ir.graph import all_ops
from luciole.ir.ops.bcq_gather import BCQGather
from luciole.ir.ops.levelsdecode import LevelsDecode
from luciole.ir.ops.minifloat import MinifloatDecode, MinifloatRound
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.passes.folding.fold_constants import FoldConstants
from luciole.ir.quantization import is_affine
from luciole.ir.text.common import one_line
from luciole.kernels.core import evaluation
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.report import shown
from luciole.lquantizer.rewrite.integers import weight_slot


def real_network(model: Model) -> Model:
    """Copy a float network, with constants as real numbers and without pairs of QUANTIZE and
    DEQUANTIZE; all other operators stay.

    Raises QuantizeError where it is quantized already.
    """
    check_float(model)
    work = model.clone()
    take_out_pairs(work.graph)
    make_real(work.graph)
    return work


def check_float(model: Model, role: str = "model") -> None:
    """Raise QuantizeError for a network that is quantized already: it computes with integers, with
    learned levels or with minifloats. The ``role`` is what it is called.
    """
    for cause in _causes(model):
        raise QuantizeError(f"the {role} is quantized already: {cause}")


def _causes(model: Model) -> Iterator[str]:
    begin = "begin with the float network"
    for op in all_ops(model.graphs):
        name = f"{op.kind} {shown(op.name)!r}"
        if has_levels(op) or isinstance(op, BCQGather | LevelsDecode):
            yield f"{name} has learned levels: {begin}"
        if isinstance(op, MinifloatRound | MinifloatDecode):
            yield f"{name} is of minifloats: {begin}"
    for value in (v for graph in model.graphs for v in (*graph.inputs, *graph.values)):
        if _is_integer(value):
            name = shown(value.name)
            advice = f"{begin}, or with what luciole quantize --simulate makes of this one"
            yield f"tensor {name!r} is {value.dtype.name}: {advice}"


def _is_integer(value: Value) -> bool:
    """Check whether a tensor that is computed holds integers, and not only to be rounded."""
    computed = value.producer is not None or value.is_input
    if not computed or not is_affine(value) or value.dtype == TensorType.FLOAT32:
        return False
    between = isinstance(value.producer.op, Quantize) if value.producer is not None else False
    return not between or value.is_output or any(in_front(u.op) is None for u in value.users)


def check_weights(op: Op) -> None:
    """Raise QuantizeError for constant weights of a layer that are not all finite."""
    value = weight_constant(op) if has_weights(op) else None
    if value is not None and value.data is not None and not np.isfinite(value.data).all():
        raise QuantizeError(f"weights of {op.kind} {one_line(op.name)!r} are not all finite")


def check_constants(graph: Graph) -> None:
    """Raise QuantizeError for weights that are not all finite, and for any constant of real numbers
    one of which is no number; infinite ones elsewhere are what masks hold.
    """
    for op in graph.ops:
        check_weights(op)
        for value in op.operands:
            data = None if value is None or not is_float(value) else value.data
            if value is not None and data is not None and np.isnan(data).any():
                raise QuantizeError(f"{op}: {one_line(value.name)!r} is not all numbers")


def make_real(graph: Graph) -> None:
    """Replace constants that layers read in fewer bits (half precision, integers behind a
    DEQUANTIZE or under a float input) by real numbers.
    """
    for op in graph.ops:
        _make_real(graph, op)
    if any(isinstance(op, Dequantize) and op.input.is_constant for op in graph.ops):
        FoldConstants(evaluation.evaluate, None)(graph)
        remove_dead(graph)


def _make_real(graph: Graph, op: Op) -> None:
    """Replace a layer's integer weights under float inputs by real numbers."""
    value = weight_constant(op) if has_weights(op) and not has_levels(op) else None
    if value is None or value.dtype == TensorType.FLOAT32 or not is_float(op.operands[0]):
        return
    integers = weights_of(op)
    if integers is None:
        return
    slot, _, axis = weight_slot(op)
    rows = integers.values().astype(np.float32).reshape(len(integers.codes), *integers.shape)
    real = np.ascontiguousarray(np.moveaxis(rows, 0, axis))
    op.set_operand(slot, graph.add_constant(graph.unique_name(f"{value.name}/real"), real))


def take_out_pairs(graph: Graph) -> int:
    """Take out pairs of a QUANTIZE and a DEQUANTIZE, so that readers get the tensor in front of
    them; returns the number of pairs.
    """
    pairs = [(op.results[0], value) for op in graph.ops if (value := in_front(op)) is not None]
    for rounded, value in pairs:
        take_out(rounded, value)
    remove_dead(graph)
    return len(pairs)


def in_front(op: Op) -> Value | None:
    """Return the operand of the QUANTIZE in front of a DEQUANTIZE, None where there is none."""
    maker = op.input.producer if isinstance(op, Dequantize) else None
    value = maker.op.input if maker is not None and isinstance(maker.op, Quantize) else None
    return value if value is not None and value.dtype == op.results[0].dtype else None


def take_out(rounded: Value, value: Value) -> None:
    """Replace the rounded numbers of a tensor by its own for all readers."""
    is_output, name = rounded.is_output, rounded.name
    rounded.replace_with(value)
    if is_output and not value.is_input:
        rounded.name, value.name = value.name, name
