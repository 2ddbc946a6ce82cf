"""STABLEHLO_GATHER."""

from collections.abc import Sequence

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class StablehloGather(Op, code=BuiltinOperator.STABLEHLO_GATHER, options="StablehloGatherOptions"):
    """Slices of ``slice_sizes`` that begin where vectors of indices say, as near as they fit.

    The vectors lie along axis ``index_vector_dim``; entry i is for axis ``start_index_map[i]`` of
    the operand. Axes of the slices go to ``offset_dims`` of the result, those of extent 1 in
    ``collapsed_slice_dims`` to none; the other axes of the result are those of the vectors.
    """

    input: Value = operand()
    start_indices: Value = operand(dtype=INDEX)

    offset_dims: tuple[int, ...] = attr(default=())
    collapsed_slice_dims: tuple[int, ...] = attr(default=())
    start_index_map: tuple[int, ...] = attr(default=())
    index_vector_dim: int = attr(default=0)
    slice_sizes: tuple[int, ...] = attr(default=())
    indices_are_sorted: bool = attr(default=False)

    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        return gathered(self, self.input.shape, self.start_indices.shape)


def gathered(op: StablehloGather, shape: Shape, indices: Shape) -> Shape:
    """Compute the result's shape. Raises ShapeError for attributes that do not fit together or the
    operands.
    """
    _check_slices(op, shape)
    batch, vector = vectors(op, indices)
    if vector not in (None, len(op.start_index_map)):
        raise ShapeError(f"start_index_map has {len(op.start_index_map)} axes, a vector {vector}")
    kept = [n for axis, n in enumerate(op.slice_sizes) if axis not in op.collapsed_slice_dims]
    rank = len(batch) + len(kept)
    if len(kept) != len(op.offset_dims) or not _are_axes(op.offset_dims, rank):
        raise ShapeError(f"offset_dims is {list(op.offset_dims)}, {len(kept)} of {rank} are needed")
    slices, others = iter(kept), iter(batch)
    return tuple(next(slices if axis in op.offset_dims else others) for axis in range(rank))


def vectors(op: StablehloGather, indices: Shape) -> tuple[Shape, int | None]:
    """Split the shape of the indices: that of the vectors' places, and the length of a vector.
    Behind the last axis each index is a vector.
    """
    axis = op.index_vector_dim
    if not 0 <= axis <= len(indices):
        raise ShapeError(f"index_vector_dim is {axis}, start_indices has {len(indices)} axes")
    if axis == len(indices):
        return indices, 1
    return (*indices[:axis], *indices[axis + 1 :]), indices[axis]


def _check_slices(op: StablehloGather, shape: Shape) -> None:
    rank = len(shape)
    if len(op.slice_sizes) != rank:
        raise ShapeError(f"slice_sizes are for {len(op.slice_sizes)} axes, input has {rank}")
    for size, extent in zip(op.slice_sizes, shape, strict=True):
        if size < 0 or (extent is not None and size > extent):
            raise ShapeError(f"a slice of {size} elements does not fit into {extent}")
    for name in ("collapsed_slice_dims", "start_index_map"):
        axes: tuple[int, ...] = op.attributes()[name]
        if not _are_axes(axes, rank):
            raise ShapeError(f"{name} is {list(axes)}: axes of an input of rank {rank} are needed")
    if any(op.slice_sizes[axis] != 1 for axis in op.collapsed_slice_dims):
        raise ShapeError(f"slice_sizes is {list(op.slice_sizes)}, a collapsed axis is not 1")


def _are_axes(numbers: Sequence[int], rank: int) -> bool:
    """Return whether numbers are different axes."""
    return len(set(numbers)) == len(numbers) and all(0 <= n < rank for n in numbers)
