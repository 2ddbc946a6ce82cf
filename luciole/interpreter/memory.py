"""Take memory for tensors: one block, laid out within a limit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from luciole.interpreter.settle import Settled
from luciole.ir import Array, Value
from luciole.ir.analysis.layout import Layout, aligned, lay_out
from luciole.ir.analysis.lifetimes import Lifetime, lifetimes, shared_places
from luciole.ir.dtypes import NUMPY
from luciole.ir.value import element_count, impossible, shape_text
from luciole.kernels.core import allocation
from luciole.kernels.core.allocation import ALIGNMENT
from luciole.kernels.core.errors import MemoryLimitError as MemoryLimitError


def arena_layout(
    settled: Settled, memory_limit: int, keep: bool = False, placed: Collection[Value] = ()
) -> Layout:
    """Lay out the tensors that operators read and write, within the memory that is left; with
    ``keep`` each tensor has bytes of its own. Tensors that are ``placed`` have places already,
    where others may stand, too.

    Raises MemoryLimitError as ``layout_within`` does.
    """
    shared = shared_places(settled.ops)
    lives = lifetimes(settled.graph, settled.ops, shared, keep)
    own = {value: life for value, life in lives.items() if value not in placed}
    layout = layout_within(memory_limit - settled.made_bytes, own, shared)
    beside = {value: host for value, host in shared.items() if host in placed}
    return replace(layout, shared={**layout.shared, **beside}) if beside else layout


def layout_within(
    limit: int, lives: Mapping[Value, Lifetime], shared: Mapping[Value, Value]
) -> Layout:
    """Lay out tensors as compiled kernels want arrays, at multiples of 64 bytes. Tensors of types
    that NumPy does not have are left out.

    Raises MemoryLimitError, naming the tensor, when they need more than ``limit`` bytes together.
    """
    sizes = {v: _bytes(v.dims, v) for v in lives if v.dtype in NUMPY}
    for value, size in sizes.items():
        largest = max(aligned(size, ALIGNMENT), _hidden(value))
        _refuse_beyond(limit, value, largest, impossible(value.dims, ALIGNMENT) is not None)
    layout = lay_out(lives, sizes, shared, ALIGNMENT)
    for value, place in layout.places.items():
        _refuse_beyond(limit, value, aligned(place.end, ALIGNMENT))
    return layout


def take(layout: Layout, present: Mapping[Value, Array] | None = None) -> dict[Value, Array]:
    """Take a block, and give each tensor a zeroed array in it, beside those that are
    ``present``.
    """
    places = {v: place for v, place in layout.places.items() if v not in layout.shared}
    rooms = allocation.chosen().block(layout.size, list(places.values()))
    pairs = zip(places, rooms, strict=True)
    arrays = {v: room.view(NUMPY[v.dtype]).reshape(v.dims) for v, room in pairs}
    arrays |= present or {}
    return arrays | {v: arrays[host].reshape(v.dims) for v, host in layout.shared.items()}


def _bytes(extents: tuple[int, ...], value: Value) -> int:
    return element_count(extents) * NUMPY[value.dtype].itemsize


def _hidden(value: Value) -> int:
    """Count the bytes that an extent of 0 hides: what is computed on the way to nothing may need
    them.
    """
    return _bytes(tuple(max(n, 1) for n in value.dims), value)


def _refuse_beyond(limit: int, value: Value, end: int, absurd: bool = False) -> None:
    if absurd or end > limit:
        raise MemoryLimitError(
            f"tensor {value.name!r} {shape_text(value.shape)} needs memory "
            f"beyond the limit of {limit} bytes: "
            "raise memory_limit if the model is to be trusted"
        )
