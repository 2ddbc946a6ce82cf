"""Write operators that reduce axes to fewer numbers."""

from __future__ import annotations

from collections.abc import Callable

from luciole.exporters.onnx.building import Building, ints_of, to_first
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.rules import rule
from luciole.ir import OPS, Op, TensorType
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.arg_min_max import ArgMax, ArgMin, Extremum
from luciole.ir.ops.cumsum import Cumsum
from luciole.ir.ops.reduce import (
    ReduceAll,
    ReduceAny,
    Reduction,
)
from luciole.ir.ops.topk_v2 import TopkV2
from luciole.ir.ops.unique import Unique
from luciole.schema.onnx_dialect import REDUCTIONS

_KINDS: dict[type[Op], str] = {
    **{OPS[code]: name for code, name in REDUCTIONS.items()},
    ReduceAny: "ReduceMax",
    ReduceAll: "ReduceMin",
}


@rule(*_KINDS)
def reduce(k: Building, op: Reduction) -> None:
    along_axes(k, op, lambda x, axes: _reduced(k, op, x, axes))


def along_axes(k: Building, op: Reduction, make: Callable[[Term, Term], Term]) -> None:
    """Write a reduction that ``make`` makes of the operand and its axes. Channels stay first where
    axes are known and what is left keeps its order.
    """
    if not _stays_first(k, op):
        known = op.reduction_indices.is_constant  # onnxruntime takes none of them twice
        axes = k.ints(*sorted({*axes_of(op)})) if known else k.int64(op.reduction_indices)
        k.put(op.output, make(k.of(op.input), axes))
        return
    order = to_first(len(op.input.shape))
    turned = sorted({order.index(axis) for axis in axes_of(op)})
    y = make(k.channels_first(op.input), k.ints(*turned))
    (k.put_first if op.keep_dims else k.put)(op.output, y)


def axes_of(op: Reduction) -> list[int]:
    """List the known axes of a reduction, counted from the front."""
    rank = len(op.input.shape)
    return [axis % max(rank, 1) for axis in ints_of(op.reduction_indices, "the axes")]


def _stays_first(k: Building, op: Reduction) -> bool:
    if not k.is_first(op.input) or not op.reduction_indices.is_constant:
        return False
    left = set(range(1, len(op.input.shape))) - {*axes_of(op)}
    last = len(op.input.shape) - 1
    return op.keep_dims or last not in left or left == {last}


def _reduced(k: Building, op: Reduction, x: Term, axes: Term) -> Term:
    kind, keep = _KINDS[type(op)], int(op.keep_dims)
    options = {"keepdims": keep, "noop_with_empty_axes": 1}
    if op.input.dtype != TensorType.BOOL:
        return k.add(kind, x, axes, **options)
    y = k.add(kind, k.cast(x, TensorType.INT32), axes, **options)
    return k.cast(y, TensorType.BOOL)


@rule(ArgMax, ArgMin)
def arg_extremum(k: Building, op: Extremum) -> Term:
    (axis,) = ints_of(op.dimension, "the axis")
    y = k.add(type(op).__name__, k.of(op.input), axis=axis, keepdims=0)
    return y if op.output.dtype == TensorType.INT64 else k.cast(y, op.output.dtype)


@rule(Cumsum)
def cumsum(k: Building, op: Cumsum) -> Term:
    axis = k.reshape(k.int64(op.axis), 1)
    axis = k.add("Squeeze", axis, k.ints(0))
    options = {"exclusive": int(op.exclusive), "reverse": int(op.reverse)}
    return k.add("CumSum", k.of(op.input), axis, **options)


@rule(TopkV2)
def topk(k: Building, op: TopkV2) -> list[Term]:
    count = k.reshape(k.int64(op.k), 1)
    values, places = k.add_all("TopK", 2, k.of(op.input), count)
    kind = op.results[1].dtype
    return [values, places if kind == TensorType.INT64 else k.cast(places, kind)]


@rule(Unique)
def unique(k: Building, op: Unique) -> list[Term]:
    """List elements in the order in which they come, and for each its number among them."""
    x, narrow = k.of(op.input), NUMPY[op.input.dtype].kind in "iu"
    x = k.cast(x, TensorType.INT64) if narrow else x  # other integers onnxruntime does not take
    elements, _, places = k.add_all("Unique", 3, x, sorted=0)
    elements = k.cast(elements, op.input.dtype) if narrow else elements
    kind = op.results[1].dtype
    return [elements, places if kind == TensorType.INT64 else k.cast(places, kind)]
