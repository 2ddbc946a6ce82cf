"""Choose scales and zero points for all tensors that become integers.

Operators that move or pick elements want one scale and zero point for what they read and give, some
give what their range calls for, and all others take any (TFLite's 8-bit quantization
specification; each operator's class says which it is).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from luciole.ir import Graph, Op, TensorType, Value
from luciole.ir.analysis.endless import Signs, bounded, endless_tensors
from luciole.ir.analysis.floats import is_between, is_float
from luciole.ir.dtypes import element_bits
from luciole.ir.quant import Like
from luciole.ir.quantization import Affine
from luciole.ir.value import Use
from luciole.lquantizer.formats.affine import Range, of_range, reached
from luciole.lquantizer.network.told_apart import ALL, NOTHING, fitted, hull, told_apart

_WIDER = 2.0
"""How many times wider a tensor's range may get so that it shares with others: beyond that it is
brought to their scale when it is read."""


@dataclass
class Grids:
    """Scales and zero points of tensors, and of operands that some operators read in others."""

    tensors: dict[Value, Affine] = field(default_factory=dict)
    operands: dict[Use, Affine] = field(default_factory=dict)
    origins: dict[Value, str] = field(default_factory=dict)
    """The reasons for a tensor's grid, beside its own range."""
    cut: dict[Value, Range] = field(default_factory=dict)
    """The ends of tensors that reach no further than their readers tell numbers apart."""


@dataclass(eq=False)
class _Group:
    """Tensors with one scale and zero point between them."""

    members: list[Value]
    limits: Range
    dtype: TensorType
    fixed: Affine | None = None
    fixed_by: str = ""
    endless: Signs = frozenset()
    readers: str = ""
    """Operators whose contrast sets the limits."""

    @property
    def ends(self) -> Range:
        """The range of its integers."""
        return reached(self.limits, self.dtype)

    @property
    def reach(self) -> Range:
        """The range of its numbers, infinite where there are infinities."""
        low, high = self.ends
        return (-np.inf if -1 in self.endless else low, np.inf if 1 in self.endless else high)

    @property
    def width(self) -> float:
        """The distance between the limits, 0 among them."""
        return max(self.limits[1], 0.0) - min(self.limits[0], 0.0)


def choose_grids(
    graph: Graph,
    integers: Mapping[Op, TensorType],
    limits: Callable[[Value, TensorType], Range],
    ends: Mapping[Value, TensorType],
    known: Mapping[Value, Affine],
) -> Grids:
    """Choose the grid of every float operand and result of operators that compute with
    ``integers`` of these types, and of inputs and outputs that are to be integers (``ends``): the
    ``known`` one, or else one that reaches as far as ``limits`` returns.
    """
    groups = _groups(graph, integers, limits, ends, known)
    endless = endless_tensors(graph)
    _fit_all(graph, groups, integers, ends, limits)
    ops = [op for op in graph.ops if op in integers]
    grids = Grids()
    for group in dict.fromkeys(groups.values()):
        if group.readers and group.fixed is None:
            grids.cut |= dict.fromkeys(group.members, group.ends)
        affine = group.fixed or of_range(group.limits, group.dtype)
        grids.tensors |= dict.fromkeys(group.members, affine)
        grids.origins |= dict.fromkeys(group.members, _origin(group))
    for op in ops:
        _bring(grids, _shared(op), floats_of(op))
    for use, value in _of_other_type(ops, integers, grids):
        own = known.get(value) or grids.tensors[value]
        is_finer = _bits(own.dtype) < _bits(integers[use.op])
        reach = range_of(own) if value in known or is_finer else limits(value, integers[use.op])
        grids.operands.setdefault(use, of_range(reach, integers[use.op]))
    for use, constant in _constants(ops):
        reach = _extremes(constant)
        if constant in endless:
            ends_at, whole = partial(_limits, groups), partial(_whole, groups)
            distinct = told_apart(use, integers[use.op], reach, ends_at, whole)
            reach = fitted(reach, endless[constant], distinct)
        grids.operands.setdefault(use, of_range(reach, integers[use.op]))
    return grids


def without_grid(
    graph: Graph, integers: Mapping[Op, TensorType], known: Mapping[Value, Affine]
) -> set[Value]:
    """Find the tensors without a ``known`` grid, of their own or of a tensor that they share a grid
    with, and without one that the operator's range fixes.
    """
    groups = _groups(graph, integers, lambda value, dtype: (0.0, 0.0), {}, known)
    return {value for value, group in groups.items() if group.fixed is None}


def _groups(
    graph: Graph,
    integers: Mapping[Op, TensorType],
    limits: Callable[[Value, TensorType], Range],
    ends: Mapping[Value, TensorType],
    known: Mapping[Value, Affine],
) -> dict[Value, _Group]:
    """Join the tensors that share a grid."""
    groups: dict[Value, _Group] = {}
    endless = endless_tensors(graph)
    types = dict(touched(graph, integers, ends))
    for value, dtype in types.items():
        affine = known.get(value)
        reach = (
            limits(value, _judging(value, dtype, integers)) if affine is None else range_of(affine)
        )
        if affine is None and _is_part(value, types, integers):
            reach = NOTHING
        fixed = affine if affine is not None and affine.dtype == dtype else None
        signs = endless.get(value, frozenset())
        groups[value] = _Group([value], reach, dtype, fixed, "FAKE_QUANT", signs)
    for op in (op for op in graph.ops if op in integers):
        _bind(op, groups, integers[op])
    return groups


def _judging(value: Value, dtype: TensorType, integers: Mapping[Op, TensorType]) -> TensorType:
    """Return the type by which the range of a tensor of a type is chosen: of fewer bits where all
    that read it have these.
    """
    types = {integers.get(use.op) for use in value.users}
    read = types.pop() if len(types) == 1 and not value.is_output else None
    return read if read is not None and _bits(read) < _bits(dtype) else dtype


def _bits(dtype: TensorType) -> int:
    return element_bits(dtype) or 0


def _is_part(value: Value, types: Mapping[Value, TensorType], integers: Container[Op]) -> bool:
    """Return whether a tensor is part of another one of its type, which holds all that it does."""
    op = None if value.producer is None else value.producer.op
    if op is None or op not in integers or op.quant is None or len(op.results) == 1:
        return False
    read = [types[v] for v in op.operands if v is not None and v in types]
    return isinstance(op.quant.result, Like) and all(one == types[value] for one in read)


def _fit_all(
    graph: Graph,
    groups: Mapping[Value, _Group],
    integers: Mapping[Op, TensorType],
    ends: Mapping[Value, TensorType],
    limits: Callable[[Value, TensorType], Range],
) -> None:
    """Cut the limits to the range that readers tell apart, from the end of the network on: how far
    a sum's terms count depends on the sum. A tensor that was 0 throughout gets its readers' range:
    kernels of sums take no term whose steps are much coarser than the sum's.
    """
    places = {value: place for place, op in enumerate(graph.ops) for value in op.results}

    def begin(group: _Group) -> int:
        return min(places.get(value, -1) for value in group.members)

    for group in sorted(dict.fromkeys(groups.values()), key=begin, reverse=True):
        uses = [use for value in group.members for use in _readers(value, group, integers, ends)]
        read = [use for use in uses if use is not None]
        ranges = [_distinct_range(use, groups, integers, limits) for use in read]
        if group.width == 0:
            group.limits = hull(
                [reach for reach in ranges if np.isfinite(reach).all()] or [NOTHING]
            )
            continue
        if len(read) < len(uses) or not uses:
            continue
        fitting = fitted(group.limits, group.endless, hull(ranges))
        if fitting != group.limits:
            kinds = sorted({use.op.kind for use in read})
            group.limits, group.readers = fitting, ", ".join(kinds)


def _readers(
    value: Value,
    group: _Group,
    integers: Mapping[Op, TensorType],
    ends: Container[Value],
) -> Iterator[Use | None]:
    """Yield where a tensor is read as the group's integers, beside operators that move elements
    within the group; None where that is as real numbers.
    """
    is_made = value in ends or (value.producer is not None and value.producer.op in integers)
    if value.is_output and is_made:
        yield None
    for use in value.users:
        moves = use.op.quant is not None and isinstance(use.op.quant.result, Like)
        if use.op not in integers:
            yield from [None] if is_made else []
        elif not (moves and any(result in group.members for result in use.op.results)):
            yield use


def _distinct_range(
    use: Use,
    groups: Mapping[Value, _Group],
    integers: Mapping[Op, TensorType],
    limits: Callable[[Value, TensorType], Range],
) -> Range:
    value, dtype = use.op.required(use.slot), integers[use.op]
    own = limits(value, groups[value].dtype) if groups[value].fixed is None else ALL
    return told_apart(use, dtype, own, partial(_limits, groups), partial(_whole, groups))


def _limits(groups: Mapping[Value, _Group], value: Value) -> Range:
    return groups[value].ends if value in groups else ALL


def _whole(groups: Mapping[Value, _Group], value: Value) -> Range:
    """Return a tensor's range, with infinite ends where it holds infinities."""
    if value in groups:
        return groups[value].reach
    return ALL if value.data is None else (float(np.min(value.data)), float(np.max(value.data)))


def range_of(affine: Affine) -> Range:
    """Return the least and the largest number of a grid."""
    low, high = affine.range
    return float(low[0]), float(high[0])


def _origin(group: _Group) -> str:
    if group.fixed is not None:
        return f"fixed by {group.fixed_by}"
    others = len(group.members) - 1
    shared = f"shared with {others} more" if others else ""
    cut = f"as far as {group.readers} tell numbers apart" if group.readers else ""
    return ", ".join(filter(None, (shared, cut)))


def _of_other_type(
    ops: Sequence[Op], integers: Mapping[Op, TensorType], grids: Grids
) -> Iterator[tuple[Use, Value]]:
    """Yield the tensors that are of another type than the operator that reads them, and where."""
    for op in ops:
        for slot, value in enumerate(op.operands):
            if value in grids.tensors and grids.tensors[value].dtype != integers[op]:
                yield Use(op, slot), value


def _bring(grids: Grids, shared: list[Use], results: list[Value]) -> None:
    """Add the result's grid for operands that share it, and are of another scale."""
    for use in shared:
        grid, value = grids.tensors[results[0]], use.op.operands[use.slot]
        if value is None or not _same_grid(grids.tensors.get(value), grid):
            grids.operands[use] = grid


def _same_grid(one: Affine | None, other: Affine) -> bool:
    return one is not None and one.same_numbers(other)


def _extremes(value: Value) -> Range:
    """Find the least and the largest number of a constant that stands for no infinity."""
    held = bounded(value.contents)
    return float(np.min(held, initial=0.0)), float(np.max(held, initial=0.0))


def touched(
    graph: Graph, integers: Mapping[Op, TensorType], ends: Mapping[Value, TensorType]
) -> Iterator[tuple[Value, TensorType]]:
    """Yield each float tensor that an operator on integers reads or gives, or that is one of the
    ``ends``, no constant, and its type: as it is made, as the end is to be, or else the widest that
    it is read in.
    """
    for value in graph.values:
        made = None if value.producer is None else integers.get(value.producer.op)
        read = [integers[use.op] for use in value.users if use.op in integers]
        widest = max(read, key=lambda dtype: element_bits(dtype) or 0, default=None)
        dtype = made or ends.get(value, widest)
        if dtype is not None and is_between(value):
            yield value, dtype


def floats_of(op: Op) -> list[Value]:
    """List the results that may become integers."""
    return [value for value in op.results if is_float(value)]


def _constants(ops: Sequence[Op]) -> Iterator[tuple[Use, Value]]:
    """Yield the constants that an operator reads beside its weights and bias, and where."""
    for op in ops:
        quant = op.quantized_as
        if quant.own:
            continue
        layer = (quant.weight, quant.bias)
        for slot, (name, value) in enumerate(op.named_operands()):
            if value is not None and value.is_constant and is_float(value) and name not in layer:
                yield Use(op, slot), value


def _bind(op: Op, groups: dict[Value, _Group], dtype: TensorType) -> None:
    """Join the groups of an operator's tensors, or set the grid that its range fixes."""
    quant = op.quantized_as
    fixed = quant.fixed(dtype)
    results = floats_of(op)
    if fixed is not None:
        groups[results[0]].fixed = Affine.single(*fixed, dtype)
        groups[results[0]].fixed_by = op.kind
    if not isinstance(quant.result, Like) or not results:
        return
    for result in results[1:]:
        _join(groups, groups[results[0]], [groups[result]])
    operands = [op.operands[use.slot] for use in _bound(op)]
    named = [groups[v] for v in operands if v is not None and v in groups]
    own = groups[results[0]]
    others = [group for group in dict.fromkeys(named) if group.dtype == dtype]
    if len(operands) > 1:
        others = [group for group in others if group.fixed is None or _holds(group.fixed, own)]
    if len(others) == 1:
        _join(groups, groups[results[0]], others)
    elif others:
        _join_several(groups, groups[results[0]], others)


def _holds(fixed: Affine, group: _Group) -> bool:
    """Return whether fixed integers reach as far as a result that other operands widen: a minimum
    of a LOGISTIC and -0.5 does not lie in 0 to 1.
    """
    (low, high), step = range_of(fixed), float(fixed.scale.max())
    return low - step <= group.limits[0] and group.limits[1] <= high + step


def _bound(op: Op) -> list[Use]:
    """List the operands that share the result's grid."""
    names = op.quant.spoken_of if op.quant is not None else ()
    uses = []
    for slot, value in enumerate(op.operands):
        if is_float(value) and op.operand_field(slot).name in names:
            uses.append(Use(op, slot))
    return uses


def _join(groups: dict[Value, _Group], group: _Group, others: list[_Group]) -> None:
    """Join groups into one, whose limits hold all of theirs."""
    for other in others:
        if other is group:
            continue
        low = min(group.limits[0], other.limits[0])
        group.limits = (low, max(group.limits[1], other.limits[1]))
        if other.fixed is not None:
            group.fixed, group.fixed_by = other.fixed, other.fixed_by
        group.endless |= other.endless
        group.members += other.members
        groups.update(dict.fromkeys(other.members, group))


def _join_several(groups: dict[Value, _Group], group: _Group, operands: list[_Group]) -> None:
    """Join the operands that lose little by the result's grid; others are brought to its scale
    when they are read.
    """
    groups_fixed = [g.fixed for g in (group, *operands) if g.fixed]
    fixed = {tuple(map(float, np.concatenate(affine.parameters))) for affine in groups_fixed}
    if fixed and (len(fixed) > 1 or not all(g.fixed for g in operands)):
        operands = [g for g in operands if not g.fixed]
    wide = max([group.width, *(g.width for g in operands)])
    near = [g for g in operands if g.fixed or wide <= _WIDER * g.width]
    _join(groups, group, near)


def _shared(op: Op) -> list[Use]:
    """List the operands that must be read in the result's scale."""
    is_like = op.quant is not None and isinstance(op.quant.result, Like)
    return _bound(op) if is_like and floats_of(op) else []
