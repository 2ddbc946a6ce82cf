"""Reductions along axes."""

from __future__ import annotations

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.shape import attribute_or_operand
from luciole.importers.onnx.rules import rule
from luciole.ir import OPS, Op, TensorType, Value
from luciole.ir.ops import elementwise_binary as binary
from luciole.ir.ops import elementwise_unary as unary
from luciole.ir.ops import reduce
from luciole.ir.ops.arg_min_max import ArgMax, ArgMin
from luciole.ir.ops.reverse_v2 import ReverseV2
from luciole.ir.ops.topk_v2 import TopkV2
from luciole.schema.onnx_dialect import REDUCTIONS

_SAME = {name: OPS[code] for code, name in REDUCTIONS.items()}
_OF_SUMS = ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp")


def _axes(k: Building, node: Node) -> list[int]:
    """Read which axes go: all where none is named, unless the node says none then."""
    rank = len(node[0].shape)
    axes = attribute_or_operand(k, node, "axes", 1)
    if not axes:
        return [] if node.flag("noop_with_empty_axes") else list(range(rank))
    return sorted({k.axis(axis, node[0]) for axis in axes})


@rule(*_SAME)
def reduction(k: Building, node: Node) -> Value:
    """Reduce by one of circle's operators."""
    axes, keep = _axes(k, node), node.flag("keepdims", True)
    if node.kind in ("ReduceMax", "ReduceMin") and 0 in node[0].shape:
        return _empty(k, node, axes, keep)
    return _reduced(k, _SAME[node.kind], node[0], axes, keep)


def _reduced(k: Building, cls: type[Op], x: Value, axes: list[int], keep: bool) -> Value:
    if not axes:
        return x
    return k.add(cls.from_operands((x, k.constant(np.array(axes, np.int32))), {"keep_dims": keep}))


def _empty(k: Building, node: Node, axes: list[int], keep: bool) -> Value:
    """Reduce no elements: to what is below, or above, all others."""
    dims = k.dims(node[0])
    left = [1 if i in axes else n for i, n in enumerate(dims) if keep or i not in axes]
    if node[0].dtype != TensorType.FLOAT32:
        raise RefusedError("it looks for the largest of no elements")
    return k.constant(np.full(left, -np.inf if node.kind == "ReduceMax" else np.inf, np.float32))


@rule(*_OF_SUMS)
def reduction_of_functions(k: Building, node: Node) -> Value:
    """Reduce by sums, of a function of the elements, or behind them."""
    x, axes, keep = node[0], _axes(k, node), node.flag("keepdims", True)
    if node.kind == "ReduceLogSumExp":
        return _log_sum_exp(k, x, axes, keep)
    if node.kind == "ReduceL1":
        x = k.add(unary.Abs(x))
    elif node.kind != "ReduceLogSum":
        x = k.add(binary.Mul(x, x))
    reduced = _reduced(k, reduce.Sum, x, axes, keep)
    if node.kind == "ReduceL2":
        return k.add(unary.Sqrt(reduced))
    return k.add(unary.Log(reduced)) if node.kind == "ReduceLogSum" else reduced


def _log_sum_exp(k: Building, x: Value, axes: list[int], keep: bool) -> Value:
    """Take the largest out first, so that nothing overflows."""
    if not axes or 0 in x.shape:
        return k.add(unary.Log(_reduced(k, reduce.Sum, k.add(unary.Exp(x)), axes, keep)))
    most = _reduced(k, reduce.ReduceMax, x, axes, True)
    moved = k.add(unary.Exp(k.add(binary.Sub(x, most))))
    sums = k.add(unary.Log(_reduced(k, reduce.Sum, moved, axes, keep)))
    return k.add(binary.Add(sums, _reduced(k, reduce.ReduceMax, x, axes, keep)))


@rule("ArgMax", "ArgMin")
def arg(k: Building, node: Node) -> Value:
    """Find the place of the largest or smallest element along an axis: the first or the last."""
    x = node[0]
    axis = k.axis(node.integer("axis", 0), x)
    from_behind = node.flag("select_last_index")
    if from_behind:
        x = k.add(ReverseV2(x, k.constant(np.array([axis], np.int32))))
    cls = ArgMax if node.kind == "ArgMax" else ArgMin
    place = k.add(cls(x, k.constant(np.int32(axis)), output_type=TensorType.INT64))
    if from_behind:
        place = k.add(binary.Sub(k.constant(np.int64(k.dims(x)[axis] - 1)), place))
    shape = [1 if i == axis else n for i, n in enumerate(x.shape)]
    return k.reshape(place, shape) if node.flag("keepdims", True) else place


@rule("TopK")
def top_k(k: Building, node: Node) -> list[Value | None]:
    """Find the largest elements along an axis, or the smallest, and their places."""
    x = node[0]
    count = node.integer("k") if node.has("k") else k.integers(node[1])[0]
    rank, axis = len(x.shape), k.axis(node.integer("axis", -1), x)
    order = [i for i in range(rank) if i != axis] + [axis]
    back = [int(i) for i in np.argsort(order)]
    smallest = not node.flag("largest", True)
    moved = k.transpose(x, order)
    values, places = k.several(
        TopkV2(_turned(k, moved) if smallest else moved, k.constant(np.int32(count)))
    )
    values = _turned(k, values) if smallest else values
    places = k.cast(places, TensorType.INT64)
    return [k.transpose(values, back), k.transpose(places, back)]


def _turned(k: Building, x: Value) -> Value:
    """Turn the order of numbers round."""
    if x.dtype in (TensorType.UINT8, TensorType.UINT16, TensorType.UINT32, TensorType.UINT64):
        raise RefusedError(f"the smallest of {x.dtype.name}")
    return k.add(unary.Neg(x))
