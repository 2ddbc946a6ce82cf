"""C forms of operators that only move elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from luciole.ir import Array, TensorType, UnsupportedError, Value
from luciole.ir.dtypes import NUMPY, byte_bounds
from luciole.ir.value import element_count
from luciole.kernels.portable.calls import CCall, Field

TYPES = (
    TensorType.FLOAT32,
    TensorType.INT64,
    TensorType.INT32,
    TensorType.INT16,
    TensorType.INT8,
    TensorType.UINT8,
    TensorType.BOOL,
)
"""Element types that C programs hold."""

Pairs = Sequence[tuple[int, int]]
"""Elements before and after each axis."""


def place(x: Value, y: Value, first: Sequence[int]) -> CCall:
    """Copy a tensor into a part of a larger one, which begins at ``first`` along each axis."""
    size = np.dtype(NUMPY[x.dtype]).itemsize
    steps = [size * element_count(y.dims[axis + 1 :]) for axis in range(len(y.dims))]
    inner = next((a for a in reversed(range(len(x.dims))) if x.dims[a] != y.dims[a]), 0)
    outer = range(inner)[::-1]
    fields: dict[str, Field] = {
        "run": size * element_count(x.dims[inner:]),
        "axes": len(outer),
        "first": sum(at * step for at, step in zip(first, steps, strict=True)),
        "extents": np.array([x.dims[a] for a in outer], np.int64),
        "steps": np.array([steps[a] for a in outer], np.int64),
    }
    return CCall("luc_place", fields, (x,), (y,))


def update(x: Value, box: Value, begin: Value, y: Value) -> CCall:
    """Copy a tensor, and another one into the part of it that begins where a third one says when
    the program runs, moved so far that it does not reach outside.
    """
    size, extents = np.dtype(NUMPY[x.dtype]).itemsize, box.dims
    inner = next((a for a in reversed(range(len(extents))) if extents[a] != y.dims[a]), 0)
    axes = range(len(extents))[inner::-1]
    fields: dict[str, Field] = {
        "bytes": size * element_count(x.dims),
        "run": size * element_count(box.dims[inner:]),
        "axes": len(axes),
        "extents": np.array([1 if a == inner else extents[a] for a in axes], np.int64),
        "steps": np.array([size * element_count(y.dims[a + 1 :]) for a in axes], np.int64),
        "room": np.array([y.dims[a] - extents[a] for a in axes], np.int64),
    }
    function = f"luc_update_{index_type(begin)}"
    return CCall(function, fields, (x, box, begin), (y,), layout="luc_update")


def index_type(indices: Value) -> str:
    """Name the type of indices in functions. Raises UnsupportedError for another one."""
    if indices.dtype not in (TensorType.INT32, TensorType.INT64):
        raise UnsupportedError(f"{indices.name!r} is {indices.dtype.name}, not INT32 or INT64")
    return indices.dtype.name.lower()


def fill(y: Value, number: Array | int | float) -> CCall:
    """Set all elements of a tensor to a number."""
    element = np.asarray(number, NUMPY[y.dtype]).reshape(1).view(np.uint8)
    if (element == element[0]).all():
        fields: dict[str, Field] = {"bytes": element_count(y.dims) * element.size}
        return CCall("luc_fill", {**fields, "with": int(element[0])}, (), (y,))
    fields = {"count": element_count(y.dims), "size": element.size, "element": element}
    return CCall("luc_repeat", fields, (), (y,))


def whole(x: Value, y: Value) -> CCall:
    """Copy a tensor as it is."""
    size = element_count(x.dims) * np.dtype(NUMPY[x.dtype]).itemsize
    return CCall("luc_copy", {"bytes": size}, (x,), (y,))


def surround(x: Value, y: Value, pairs: Pairs, number: Array | int | float) -> list[CCall]:
    """Fill a tensor with a number, and copy another one into it."""
    return [fill(y, number), place(x, y, [before for before, _ in pairs])]


MOST_BYTES = 2**31 - 1
"""Of a tensor: places have 32 bits."""


def take(x: Value, y: Value, view: Callable[[Array], Array]) -> CCall:
    """Copy the elements of a tensor that ``view`` returns: some of them, in any order. Raises
    UnsupportedError for tensors of more than 2^31 - 1 bytes.
    """
    whole = np.zeros(x.dims, NUMPY[x.dtype])
    if max(whole.nbytes, element_count(y.dims) * whole.itemsize) > MOST_BYTES:
        raise UnsupportedError(f"{x.name!r} has more bytes than places of 32 bits reach")
    taken = view(whole)
    if taken.size and not np.may_share_memory(taken, whole):
        raise TypeError("elements are taken from a copy, which tells nothing of places")
    run, axes = whole.itemsize, list(zip(taken.shape, taken.strides, strict=True))
    while axes and (axes[-1][1] == run or axes[-1][0] == 1):
        run *= axes.pop()[0]
    axes = [axis for axis in axes[::-1] if axis[0] != 1]
    fields: dict[str, Field] = {
        "run": run,
        "axes": len(axes),
        "first": _first(taken) - _first(whole),
        "extents": np.array([extent for extent, _ in axes], np.int64),
        "steps": np.array([step for _, step in axes], np.int64),
    }
    return CCall("luc_take", fields, (x,), (y,))


def pick(x: Value, y: Value, numbers: Sequence[Array]) -> CCall:
    """Copy the elements at these numbers along each axis: in any order, any often. Raises
    UnsupportedError for tensors of more than 2^31 - 1 bytes.
    """
    run, axes = np.dtype(NUMPY[x.dtype]).itemsize, list(zip(x.dims, numbers, strict=True))
    size = run * element_count(x.dims)
    if max(size, run * element_count(y.dims)) > MOST_BYTES:
        raise UnsupportedError(f"{x.name!r} has more bytes than places of 32 bits reach")
    while axes and np.array_equal(axes[-1][1], np.arange(axes[-1][0])):
        run *= axes.pop()[0]
    places, step = [], run
    for extent, chosen in axes[::-1]:
        places.append(np.asarray(chosen, np.int64) * step)
        step *= extent
    extents = np.array([len(each) for each in places], np.int64)
    together = np.concatenate([*places, np.zeros(0, np.int64)])
    fields: dict[str, Field] = {"run": run, "axes": len(places)}
    return CCall("luc_pick", {**fields, "extents": extents, "places": together}, (x,), (y,))


def look_up(x: Value, indices: Value, y: Value, along: int, batch: int = 0) -> CCall:
    """Copy the slices of an axis whose numbers another tensor holds when the program runs; a number
    that no slice has stands for zeros.
    """
    size = np.dtype(NUMPY[x.dtype]).itemsize
    fields: dict[str, Field] = {
        "batches": element_count(x.dims[:batch]),
        "outer": element_count(x.dims[batch:along]),
        "slices": x.dims[along],
        "count": element_count(indices.dims[batch:]),
        "run": size * element_count(x.dims[along + 1 :]),
    }
    function = f"luc_look_up_{index_type(indices)}"
    return CCall(function, fields, (x, indices), (y,), layout="luc_look_up")


def _first(view: Array) -> int:
    """Return where a view's first element lies, which is not its lowest one where axes run
    backwards, to be compared with another view's.
    """
    lowest, _ = byte_bounds(view)
    turned = zip(view.shape, view.strides, strict=True)
    return int(lowest - sum((extent - 1) * step for extent, step in turned if step < 0))


def spread(x: Value, y: Value) -> tuple[Value, list[CCall]]:
    """Repeat an operand until it has the shape of a result, where that is more elements."""
    if element_count(x.dims) == element_count(y.dims):
        return x, []
    full = Value(f"{x.name}_spread", x.dtype, y.dims)
    return full, [take(x, full, lambda array: np.broadcast_to(array, y.dims))]


def spread_both(x: Value, y: Value, result: Value) -> tuple[tuple[Value, Value], list[CCall]]:
    """Repeat the operands of an operator that works element by element."""
    (left, before), (right, before_right) = spread(x, result), spread(y, result)
    return (left, right), [*before, *before_right]
