"""What files may say of tensors beside their shape: signatures, variables, sparse contents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from luciole.schema import tables as t
from luciole.schema.enums import DimensionType

Rng = np.random.Generator
Lie = Callable[[Rng, t.Model], None]


def _tensors(root: t.Model) -> list[t.Tensor]:
    return [tensor for graph in root.subgraphs or [] for tensor in graph.tensors or []]


def _any(rng: Rng, tensors: Sequence[t.Tensor]) -> t.Tensor:
    return tensors[int(rng.integers(len(tensors)))] if tensors else t.Tensor()


def _kept(rng: Rng, root: t.Model) -> t.Tensor:
    """Mostly one that has contents or keeps a state."""
    found = _tensors(root)
    kept = [tensor for tensor in found if tensor.buffer or tensor.is_variable]
    return _any(rng, kept if kept and rng.random() < 0.8 else found)


def _extents(tensor: t.Tensor) -> list[int]:
    return [] if tensor.shape is None else [int(n) for n in tensor.shape]


def _opened(rng: Rng, extents: Sequence[int]) -> list[int]:
    """A signature that leaves all extents open, or some."""
    share = 1.0 if rng.random() < 0.5 else 0.5
    return [-1 if rng.random() < share else n for n in extents]


def open_signature(rng: Rng, root: t.Model) -> None:
    """Leave extents open, but keep what memory is to be taken for."""
    tensor = _kept(rng, root)
    tensor.shape_signature = np.array(_opened(rng, _extents(tensor)), np.int32)


def wrong_signature(rng: Rng, root: t.Model) -> None:
    """A signature of another rank, of other extents, or with numbers that mean nothing."""
    tensor = _kept(rng, root)
    signature = _opened(rng, _extents(tensor))
    at = int(rng.integers(len(signature) + 1))
    kind = int(rng.integers(3))
    if kind == 0 or not signature:
        signature.insert(at, int(rng.choice([-1, 0, 1, 7])))
    elif kind == 1:
        signature.pop(at - 1)
    else:
        signature[at - 1] = int(rng.choice([-2, -(2**31), 0, 1, 100, 2**31 - 1]))
    tensor.shape_signature = np.array(signature, np.int32)


def other_contents_behind_a_signature(rng: Rng, root: t.Model) -> None:
    """More or less contents than there were, in a shape that has them, under an open signature: who
    takes "unknown" for "fits" reads or writes outside.
    """
    tensor, buffers = _kept(rng, root), root.buffers or []
    extents = _extents(tensor)
    if not extents or not 0 < tensor.buffer < len(buffers):
        return
    data, at = buffers[tensor.buffer].data, int(rng.integers(len(extents)))
    count = max(int(np.prod(extents, dtype=object)), 0)
    if data is None or not len(data) or not count or len(data) % count:
        return
    size = len(data) // count
    extents[at] = int(rng.choice([1, 2, extents[at] + 1, max(extents[at] - 1, 1), 33]))
    if np.prod(extents, dtype=object) * size < 1 << 16:
        more = np.resize(np.array(data), int(np.prod(extents)) * size)
        buffers[tensor.buffer] = t.Buffer(data=more)
        tensor.shape = np.array(extents, np.int32)
        tensor.shape_signature = np.array(_opened(rng, extents), np.int32)


def variable(rng: Rng, root: t.Model) -> None:
    """A state instead of contents, or the other way round; often of open extents."""
    tensor = _kept(rng, root)
    tensor.is_variable = not tensor.is_variable
    if rng.random() < 0.3:
        tensor.buffer = 0
    if rng.random() < 0.5:
        tensor.shape_signature = np.array(_opened(rng, _extents(tensor)), np.int32)


def dynamic_graph(rng: Rng, root: t.Model) -> None:
    """Everything that is computed or given has open extents."""
    for graph in root.subgraphs or []:
        tensors = graph.tensors or []
        made = [number for op in graph.operators or [] for number in _numbers(op.outputs)]
        for number in {*made, *_numbers(graph.inputs)}:
            if 0 <= number < len(tensors):
                signature = _opened(rng, _extents(tensors[number]))
                tensors[number].shape_signature = np.array(signature, np.int32)


def _numbers(array: np.ndarray[tuple[int], np.dtype[np.int32]] | None) -> list[int]:
    return [] if array is None else array.tolist()


def sparse(rng: Rng, root: t.Model) -> None:
    """Tables that list all elements, and often something that does not hold in them."""
    tensor = _kept(rng, root)
    if tensor.sparsity is None:
        tensor.sparsity = all_listed(_extents(tensor))
    if rng.random() < 0.7:
        _damage(rng, tensor.sparsity)


def all_listed(extents: Sequence[int]) -> t.SparsityParameters:
    """Tables of a sparse tensor none of whose elements is left out; the last axis is compressed."""
    dimensions = [t.DimensionMetadata(dense_size=n) for n in extents]
    rows, last = int(np.prod(extents[:-1], dtype=object)), extents[-1] if extents else 0
    if extents and 0 <= rows * last < 1 << 16:
        dimensions[-1] = t.DimensionMetadata(
            format=DimensionType.SPARSE_CSR,
            array_segments=t.Int32Vector(values=(np.arange(rows + 1) * last).astype(np.int32)),
            array_indices=t.Int32Vector(values=np.tile(np.arange(last, dtype=np.int32), rows)),
        )
    order = np.arange(len(extents), dtype=np.int32)
    return t.SparsityParameters(traversal_order=order, dim_metadata=dimensions)


def _damage(rng: Rng, table: t.SparsityParameters) -> None:
    kind, number = int(rng.integers(5)), int(rng.choice([-1, 0, 1, 2, 3, 100, 2**31 - 1]))
    dimensions = table.dim_metadata or []
    if kind == 0:
        order = table.traversal_order
        table.traversal_order = None if order is None else rng.permutation(order)
    elif kind == 1:
        table.block_map = np.array([number], np.int32)
    elif kind == 2 or not dimensions:
        table.dim_metadata = dimensions[:-1]
    elif kind == 3:
        dimensions[int(rng.integers(len(dimensions)))].dense_size = number
    else:
        vectors = (dimensions[-1].array_segments, dimensions[-1].array_indices)
        for union in vectors:
            if isinstance(union, t.Int32Vector) and union.values is not None and len(union.values):
                union.values = np.array(union.values)
                union.values[int(rng.integers(len(union.values)))] = number


LIES: tuple[Lie, ...] = (
    *(open_signature, open_signature, wrong_signature, other_contents_behind_a_signature),
    *(other_contents_behind_a_signature, variable, dynamic_graph, sparse),
)
"""As often as any other damage; those twice that nothing else does."""
