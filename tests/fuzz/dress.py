"""What sound models may have beside operators: open extents, sparse constants, states."""

from __future__ import annotations

import numpy as np

from luciole.importers.recipe.sparse import sparse_rows
from luciole.ir import Buffer, Graph, LucioleError, Model, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.findings import refusal
from luciole.ir.verify import verify

Rng = np.random.Generator

MOST_SPARSE = 1 << 20
"""Bytes that a constant may take with zeros left out."""


def dressed(rng: Rng, model: Model) -> Model:
    """The model, or one that computes the same whose file says more; never an unsound one."""
    if rng.random() < 0.4:
        return model
    richer = model.clone()
    try:
        for graph in richer.graphs:
            _dress(rng, graph)
            _rename(rng, graph)
    except LucioleError:
        return model
    return model if refusal(verify(richer)) is not None else richer


def _dress(rng: Rng, graph: Graph) -> None:
    if rng.random() < 0.5:
        for value in graph.inputs:
            _open(rng, value)
        for op in graph.ops:
            for value, shape in zip(op.results, op.result_shapes(), strict=True):
                if len(shape) == len(value.dims):
                    value.shape_signature = tuple(-1 if n is None else n for n in shape)
                    value.dims = tuple(
                        n if m is None else m for n, m in zip(value.dims, shape, strict=True)
                    )
    for value in graph.values:
        if value.is_constant and value.data is not None:
            _dress_constant(rng, value)


def _rename(rng: Rng, graph: Graph) -> None:
    """Folders in names, as converters write them, and what people do not expect in a name."""
    if rng.random() < 0.5:
        return
    for value in graph.values:
        folders = [str(rng.choice(_FOLDERS)) for _ in range(int(rng.integers(4)))]
        value.name = "/".join([*folders, value.name])


_FOLDERS = ("a", "a", "b", "net", "", "x;y", "caf\xe9", "<b>&'\"", "\n", "\u202e", "long" * 30)


def _open(rng: Rng, value: Value) -> None:
    share = float(rng.choice([0.3, 1.0]))
    value.shape_signature = tuple(-1 if rng.random() < share else n for n in value.dims)


def _dress_constant(rng: Rng, value: Value) -> None:
    kind = rng.random()
    if kind < 0.2 and value.dims and value.dtype in NUMPY and value.buffer is not None:
        raw, extents = value.buffer.data, np.array(value.dims, np.int32)
        if raw is not None and value.data is not None and value.data.dtype.kind != "b":
            content, value.sparsity = sparse_rows(
                raw, value.dtype, extents, value.name, MOST_SPARSE
            )
            value.buffer = Buffer(content)
    elif kind < 0.3:
        value.is_variable = True
    if rng.random() < 0.3:
        _open(rng, value)
