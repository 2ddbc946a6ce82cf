"""GATHER kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import prod

import numpy as np

from luciole.ir import Array, ShapeError, Value
from luciole.ir.dtypes import tensor_type
from luciole.ir.ops.gather import Gather, gathered, places
from luciole.ir.rules import settled
from luciole.kernels import jit
from luciole.kernels.core.contract import Context, NativeStep
from luciole.kernels.core.memory import Memory, reach
from luciole.kernels.core.registry import ANY, ANYTHING, native, reference
from luciole.kernels.elements import copy
from luciole.kernels.elements.plain_integers import KINDS
from luciole.kernels.jit import longs
from luciole.kernels.jit.record import Record
from luciole.kernels.jit.vector.conversions import integers_at
from luciole.kernels.jit.vector.moves import copy as copy_bytes
from luciole.kernels.portable.calls import CCall, PortableContext, portable
from luciole.kernels.portable.moves import TYPES as MOVED
from luciole.kernels.portable.moves import look_up, pick


@reference(Gather, *ANYTHING)
def gather(op: Gather, params: Array, indices: Array) -> Array:
    """Pick along the axis, one batch after the other."""
    along, batch = places(op, params.ndim, indices.ndim)
    result = np.empty(settled(gathered(params.shape, indices.shape, along, batch)), params.dtype)
    check_indices(indices, along, params.shape[along])
    for b in np.ndindex(*indices.shape[:batch]):
        result[b] = np.take(params[b], indices[b], axis=along - batch)
    return result


def check_indices(indices: Array, along: int, n: int) -> None:
    """Raise ShapeError for the first index that names no element."""
    wrong = indices[(indices < 0) | (indices >= n)]
    if wrong.size:
        raise ShapeError(f"index {wrong.flat[0]} is out of range: axis {along} has {n} elements")


def are_wrong(value: Value, indices: Array, n: int) -> bool:
    """Whether indices are known to name no element, as all are where there is none: the reference
    refuses them.
    """
    fits = not indices.size or bool(indices.min() >= 0 and indices.max() < n)
    return (value.is_constant and not fits) or (indices.size > 0 and not n)


MOST_PICKED = 4096
"""Constant indices up to which each is a copy of its own."""


@native(Gather, *ANY)
def build(op: Gather, context: Context) -> NativeStep | None:
    """Copy one slice for each index: of few indices that are known when the model is loaded as
    jobs, else as they come.
    """
    params, indices = context.pair
    along, batch = places(op, params.ndim, indices.ndim)
    if are_wrong(op.indices, indices, params.shape[along]):
        return None
    if not op.indices.is_constant or batch or indices.size > MOST_PICKED:
        return as_they_come(params, indices, context.results[0], along, batch)
    rows = np.moveaxis(params, along, 0)
    shape = (*params.shape[:along], indices.size, *params.shape[along + 1 :])
    picked = np.moveaxis(context.results[0].reshape(shape), along, 0)
    chosen = enumerate(indices.ravel().tolist())
    return copy.step((picked[i, ...], rows[k, ...]) for i, k in chosen)


@portable(Gather, *MOVED)
def in_c(op: Gather, context: PortableContext) -> list[CCall]:
    """Copy slices: by a table where indices are constant, else by what a run computes, zeros where
    that is no slice's number.
    """
    params, y = op.params, op.results[0]
    along, batch = places(op, len(params.dims), len(op.indices.dims))
    if batch or op.indices not in context.constants:
        return [look_up(params, op.indices, y, along, batch)]
    indices = context.constant(op.indices)
    check_indices(indices, along, params.dims[along])
    every = [np.arange(n) for n in params.dims]
    every[along] = indices.ravel()
    return [pick(params, y, every)]


class GatherRecord(Record):
    """Slices that lie one behind the other, in ``blocks`` of ``extent`` operands and ``count``
    results, as many blocks for each batch; and a word that tells whether an index named none.
    """

    y: int
    x: int
    indices: int
    batches: int
    blocks: int
    extent: int
    count: int
    size: int
    """Bytes of a slice."""
    wrong: int


def watched(memory: Memory, indices: Array, along: int, n: int) -> tuple[int, Callable[[], None]]:
    """Keep a word that a kernel sets where an index names no element; returns its address, and what
    raises ShapeError behind a run that set it, in a loop for indices of any turn.
    """
    wrong = np.zeros(1, np.int64)
    memory.arrays.append(wrong)

    def check() -> None:
        if wrong[0]:
            wrong[0] = 0
            check_indices(indices, along, n)
            raise ShapeError(f"an index of an earlier turn is not in axis {along} of extent {n}")

    return reach(wrong, wrong.nbytes), check


def as_they_come(params: Array, indices: Array, y: Array, along: int, batch: int) -> NativeStep:
    """Make the step that reads indices when it runs, and raises ShapeError for a wrong one."""
    outer, n = params.shape[:along], params.shape[along]
    memory = Memory()
    wrong, check = watched(memory, indices, along, n)
    batches, blocks, count = prod(outer[:batch]), prod(outer[batch:]), prod(indices.shape[batch:])
    size = params.itemsize * prod(params.shape[along + 1 :])
    record = GatherRecord(
        y=reach(y, batches * blocks * count * size),
        x=reach(params, params.nbytes),
        indices=reach(indices, indices.itemsize * batches * count),
        batches=batches,
        blocks=blocks,
        extent=n,
        count=count,
        size=size,
        wrong=wrong,
    )
    kernel = _picking(int(KINDS[tensor_type(indices.dtype)]))
    return replace(memory.step(kernel.address, record), check=check, remembers=True)


@cache
def _picking(kind: int) -> jit.Kernel:
    """Make the kernel for indices of a kind."""

    @jit.kernel
    def picked(r: GatherRecord) -> None:
        indices, y = integers_at(r.indices, kind), r.y
        for batch in range(r.batches):
            for block in range(r.blocks):
                x = r.x + (batch * r.blocks + block) * r.extent * r.size
                for i in range(r.count):
                    place = indices[batch * r.count + i]
                    if 0 <= place < r.extent:
                        copy_bytes(y, x + place * r.size, r.size)
                    else:
                        longs(r.wrong)[0] = 1
                    y += r.size

    return picked
