"""Extents that inputs leave open, and inputs themselves, as callers settle them while a model is
read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from luciole.importers.computing import computing
from luciole.ir import Array, Graph, Shape, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.errors import FormatError, ShapeError
from luciole.ir.extents import check_extents, check_shapes
from luciole.ir.names import names_of
from luciole.ir.passes.cleaning.remove_dead import remove_unused_values
from luciole.ir.passes.folding.fold_constants import fold_constants
from luciole.ir.value import shape_text
from luciole.schema.enums import TensorType
from luciole.schema.printable import quoted

T = TypeVar("T")


@dataclass(frozen=True)
class Settled:
    """What is settled of a model's inputs: ``batch`` for every first extent that is open, shapes by
    input (None for an extent that stays open), ``dims`` by the names that ONNX files give extents,
    and ``constants``, which take inputs' places.
    """

    batch: int | None = None
    shapes: Mapping[str, Sequence[int | None]] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    constants: Mapping[str, ArrayLike] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse extents that no file holds. Raises ShapeError."""
        check_extents({"batch": self.batch, **self.dims})
        check_shapes(self.shapes)

    def __bool__(self) -> bool:
        return self.batch is not None or bool(self.shapes or self.dims or self.constants)


def settle(graph: Graph, settled: Settled) -> None:
    """Give a graph's inputs the extents that callers settled, let constants take the place of
    inputs, infer all other shapes, and compute what depends on nothing else.

    Raises FormatError for names that the graph does not have, and ShapeError for extents that it
    has already, and where operators do not take the new ones.
    """
    if settled.dims:
        raise FormatError(
            f"no extent has the name {quoted(min(settled.dims))}: ONNX files name extents, shapes "
            "give those of others"
        )
    inputs = {name: value for value in graph.inputs for name in names_of(value)}
    for name, shape in settled.shapes.items():
        value = named(inputs, name, "input")
        value.shape = merged(name, value.shape, shape)
    for value in graph.inputs:
        if settled.batch is not None and value.shape and value.shape[0] is None:
            value.shape = (settled.batch, *value.shape[1:])
    for name, constant in settled.constants.items():
        _make_constant(graph, named(inputs, name, "input"), constant)
    if fold_constants(graph, computing().evaluate):
        remove_unused_values(graph)


def named(known: Mapping[str, T], name: str, kind: str) -> T:
    """Return the entry of a name. Raises FormatError, with all names, where there is none."""
    if name not in known:
        listed = ", ".join(map(quoted, known)) or "none"
        raise FormatError(f"no {kind} has the name {quoted(name)}: there are {listed}")
    return known[name]


def merged(name: str, shape: Shape, settled: Sequence[int | None]) -> tuple[int | None, ...]:
    """Fill the open extents of an input's shape. Raises ShapeError for other axes than it has, and
    for extents that it has already.
    """
    fits = len(shape) == len(settled)
    fits &= all(None in (n, m) or n == m for n, m in zip(shape, settled, strict=False))
    if not fits:
        raise ShapeError(
            f"the input {quoted(name)} has the shape {shape_text(shape)}, which "
            f"{shape_text(tuple(settled))} does not fit: only what is open can be settled"
        )
    return tuple(n if m is None else m for n, m in zip(shape, settled, strict=True))


def constant_of(name: str, number: ArrayLike, shape: Shape, dtype: TensorType) -> Array:
    """Make the contents of an input's place. Raises ShapeError for another shape, FormatError for
    what its element type does not hold.
    """
    kind = NUMPY.get(dtype)
    try:
        exact = np.asarray(number)
    except ValueError:
        raise FormatError(f"the constant for the input {quoted(name)} is no array") from None
    if kind is None or exact.dtype.kind not in "biuf":
        raise FormatError(f"{dtype.name} of the input {quoted(name)} has no constants here")
    merged(name, shape, exact.shape)
    array: Array = exact.astype(kind)
    if kind.kind in "biu" and (array != exact).any():
        raise FormatError(f"{dtype.name} of the input {quoted(name)} does not hold {number!r}")
    return array


def _make_constant(graph: Graph, value: Value, number: ArrayLike) -> None:
    array = constant_of(value.name, number, value.shape, value.dtype)
    graph.inputs = [other for other in graph.inputs if other is not value]
    value.make_constant(array)
