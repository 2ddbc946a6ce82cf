"""STABLEHLO_SCATTER."""

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, dtype_of, operand, subgraph
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.rules import agree
from luciole.ir.value import Shape, Value, compatible, shape_text
from luciole.schema.enums import BuiltinOperator


class StablehloScatter(
    Op, code=BuiltinOperator.STABLEHLO_SCATTER, options="StablehloScatterOptions"
):
    """The input, in which a graph of two numbers combined updates with elements, one by one.

    Vectors along axis ``index_vector_dim`` of the indices say where windows begin; entry i is for
    axis ``scatter_dims_to_operand_dims[i]``. ``update_window_dims`` are the axes of the updates
    along which windows lie; those of the input in ``inserted_window_dims`` have extent 1 in them.
    What lies outside of the input is left out.
    """

    input: Value = operand()
    scatter_indices: Value = operand(dtype=INDEX)
    updates: Value = operand()

    indices_are_sorted: bool = attr(default=False)
    update_window_dims: tuple[int, ...] = attr(default=())
    inserted_window_dims: tuple[int, ...] = attr(default=())
    scatter_dims_to_operand_dims: tuple[int, ...] = attr(default=())
    index_vector_dim: int = attr(default=0)
    unique_indices: bool = attr(default=False)
    update_computation: Graph | None = subgraph(
        default=None, field="update_computation_subgraph_index"
    )

    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        check_scatter(self, self.input.shape, self.scatter_indices.shape, self.updates.shape)
        return self.input.shape


def check_scatter(op: StablehloScatter, shape: Shape, indices: Shape, updates: Shape) -> None:
    """Raise ShapeError for attributes that do not fit together or the operands."""
    _check_axes("update_window_dims", op.update_window_dims, len(updates), "updates")
    _check_axes("inserted_window_dims", op.inserted_window_dims, len(shape), "input")
    mapped = op.scatter_dims_to_operand_dims
    _check_axes("scatter_dims_to_operand_dims", mapped, len(shape), "input", ordered=False)
    of_windows = len(op.update_window_dims) + len(op.inserted_window_dims)
    agree("axes", of_windows, len(shape), "windows with what is inserted", "input")
    batch, vector = _split(op.index_vector_dim, indices)
    if vector not in (None, len(mapped)):
        raise ShapeError(f"scatter_dims_to_operand_dims has {len(mapped)} axes, a vector {vector}")
    places = tuple(n for axis, n in enumerate(updates) if axis not in op.update_window_dims)
    if not compatible(batch, places):
        raise ShapeError(
            f"updates are at {shape_text(places)} places, indices at {shape_text(batch)}"
        )


def _split(axis: int, indices: Shape) -> tuple[Shape, int | None]:
    """Split the indices' shape: that of the vectors' places, and the length of a vector. Behind the
    last axis each index is a vector.
    """
    if not 0 <= axis <= len(indices):
        raise ShapeError(f"index_vector_dim is {axis}, scatter_indices has {len(indices)} axes")
    if axis == len(indices):
        return indices, 1
    return (*indices[:axis], *indices[axis + 1 :]), indices[axis]


def _check_axes(
    name: str, numbers: tuple[int, ...], rank: int, what: str, ordered: bool = True
) -> None:
    different = len(set(numbers)) == len(numbers) and all(0 <= n < rank for n in numbers)
    if not different or (ordered and list(numbers) != sorted(numbers)):
        needed = "different axes in order" if ordered else "different axes"
        raise ShapeError(
            f"{name} is {list(numbers)}: {needed} of {what}, of rank {rank}, are needed"
        )
