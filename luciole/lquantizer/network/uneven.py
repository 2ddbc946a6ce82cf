"""Find normalizations of records whose sizes differ so much that integers of one step lose the
small ones: what is divided by its own size is as large for each record, with its error.

Normalizations between layers on bytes get 16 bits inside: each operator of one would round the same
numbers again, a distance from their mean as coarsely as what it was taken from.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

import numpy as np

from luciole.ir import Graph, Op, TensorType, Value
from luciole.ir.analysis.degrees import Degrees
from luciole.ir.analysis.weights import is_layer
from luciole.ir.ops.elementwise_binary import Add, Div, Mul, Sub
from luciole.ir.ops.instance_norm import InstanceNorm
from luciole.ir.ops.l2_normalization import L2Normalization
from luciole.ir.ops.rms_norm import RmsNorm
from luciole.ir.quant import Like
from luciole.ir.quantization import Affine
from luciole.ir.rewriting.norms import scaled_by_root
from luciole.lquantizer.assignment.layer_format import Integers
from luciole.lquantizer.assignment.schemes import SCHEMES
from luciole.lquantizer.calibration.seen import Seen
from luciole.lquantizer.network.bounds import Interval, intervals_of
from luciole.lquantizer.network.places import obstacle

LEAST = {TensorType.INT8: 30.0, TensorType.UINT8: 30.0, TensorType.INT16: 60.0}
"""Decibels between an operator's result and its error, where nothing but this one is rounded, by
its type: what other operators on integers of that type keep.
"""

_DEVIATIONS = 6.0
"""Standard deviations between the extremes of a record, of some hundred numbers as nature has
them.
"""

_ROOM = 1.5
"""How many times larger or smaller a record may be than those that were seen. At 2 the segments of
TFLite's table of inverse roots of 16 bits get too long: 54 dB, where 1.5 keeps 60.
"""

_FINER = SCHEMES[Integers(8, 16)]


def normalizations(graph: Graph) -> dict[Value, Op]:
    """Find the tensors that a graph divides by their own size, in whatever form, and the operator
    that gives the first result of it.
    """
    ends: dict[Value, Op] = {}
    for op in graph.ops:
        value = _normalized(op)
        if value is not None:
            ends.setdefault(value, op)
    return ends


def _normalized(op: Op) -> Value | None:
    """Return the tensor whose normalized form an operator gives, None where it gives none."""
    if isinstance(op, InstanceNorm | L2Normalization | RmsNorm):
        return op.operands[0]
    if not isinstance(op, Add | Div | Mul | Sub):
        return None
    norm = scaled_by_root(op)
    if norm is not None:
        return norm.x
    pairs = {Div: ((op.x, op.y, 1),), Mul: ((op.x, op.y, -1), (op.y, op.x, -1))}
    return next((x for x, y, d in pairs.get(type(op), ()) if Degrees(x).of(y) == d), None)


def insides(graph: Graph) -> list[set[Op]]:
    """List the operators of each normalization, from the mean to the first result."""
    return [_between(_source(value), last) for value, last in normalizations(graph).items()]


def room_for_others(graph: Graph) -> dict[str, float]:
    """Return by name how many times further than seen the tensors inside normalizations reach:
    records that are somewhat larger or smaller than all others change moments and their roots, and
    no result.
    """
    room: dict[str, float] = {}
    for value, last in normalizations(graph).items():
        source = _source(value)
        degrees = Degrees(source)
        for op in _between(source, last) - {last}:
            for result in op.results:
                room[result.name] = _ROOM ** abs(degrees.of(result) or 0.0)
    return room


def _source(value: Value) -> Value:
    """Return the tensor that a mean is taken from, or the tensor itself where none is."""
    op = None if value.producer is None else value.producer.op
    return op.x if isinstance(op, Sub) and Degrees(op.x).of(op.y) == 1 else value


def is_lost(numbers: Seen, affine: Affine) -> bool:
    """Return whether a normalization of what a tensor held keeps less than ``LEAST`` decibels once
    this is rounded to integers.
    """
    spans = np.subtract(np.asarray(numbers.highs), np.asarray(numbers.lows)) / _DEVIATIONS
    spans = spans[spans > 0]
    if not len(spans):
        return False
    noise = float(affine.scale.max()) ** 2 / 12
    error = float(np.minimum(noise / np.square(spans), 1.0).mean())
    return error > 10 ** (-LEAST[affine.dtype] / 10)


def lossy(graph: Graph, seen: Mapping[Value, Seen], grids: Mapping[Value, Affine]) -> set[Op]:
    """Find the operators that may not round so that normalizations keep small records: those that
    normalize, and those that make what is normalized or move it.
    """
    ops: set[Op] = set()
    for value, last in normalizations(graph).items():
        if value in grids and value in seen and is_lost(seen[value], grids[value]):
            ops |= _between(value, last) | _makers(value)
    return ops


def _between(value: Value, last: Op) -> set[Op]:
    """Find the operators from a tensor to the one that gives its normalized form."""
    ops, left = {last}, [last]
    while left:
        for operand in left.pop().operands:
            made = None if operand is None or operand is value else operand.producer
            if made is not None and made.op not in ops and not is_layer(made.op):
                ops.add(made.op)
                left.append(made.op)
    return ops


def _makers(value: Value) -> set[Op]:
    """Find the operator that computes a tensor, and those that only move it after that."""
    ops: set[Op] = set()
    while value.producer is not None:
        op = value.producer.op
        ops.add(op)
        moved = (
            op.operands[0] if op.quant is not None and isinstance(op.quant.result, Like) else None
        )
        if moved is None:
            break
        value = moved
    return ops


def with_finer_norms(
    graph: Graph,
    integers: Mapping[Op, TensorType],
    ends: Container[Value],
    asked: Container[str] = (),
) -> dict[Op, TensorType]:
    """Return the types of operators on integers, INT16 for all of a normalization of INT8, but for
    those without kernels for it, those that give one of the ``ends``, and those of which somebody
    ``asked`` for bytes in one by its name.
    """
    types = dict(integers)
    blocks = [block for block in insides(graph) if len(block) > 1]
    intervals = intervals_of(graph) if blocks else {}
    for block in blocks:
        whole = block | set(_behind(block))
        if any(op.name in asked for op in whole):
            continue
        if all(types.get(op) == TensorType.INT8 for op in whole) and not any(
            _needs_bytes(op, intervals, ends) for op in whole
        ):
            types |= dict.fromkeys(whole, TensorType.INT16)
    return types


def _behind(block: set[Op]) -> Iterator[Op]:
    """Yield the operators that scale and move by constants what a normalization gives."""
    uses = [use for op in block for value in op.results for use in value.users]
    left = {use.op for use in uses} - block
    while len(left) == 1:
        (op,) = left
        if not isinstance(op, Add | Mul | Sub) or not (op.x.is_constant or op.y.is_constant):
            return
        yield op
        left = {use.op for use in op.output.users}


def _needs_bytes(op: Op, intervals: Mapping[Value, Interval], ends: Container[Value]) -> bool:
    """Return whether an operator has no kernel on INT16, whose integers reach below 0 as well."""
    values = op.given_operands()
    roots = [values[pole.operand] for pole in op.poles]
    below = any(intervals.get(value, (-1.0, 0.0))[0] < 0 for value in roots)
    return below or obstacle(op, _FINER) is not None or any(v in ends for v in op.results)
