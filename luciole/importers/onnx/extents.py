"""Write extents and constants that callers settle into an ONNX graph, before it is imported: rules
then see them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from luciole.importers.extents import Settled, constant_of, merged, named
from luciole.importers.onnx.element_types import held_type
from luciole.ir import Array
from luciole.ir.errors import ShapeError
from luciole.schema.printable import quoted

if TYPE_CHECKING:
    from onnx import GraphProto, ValueInfoProto

Extent = int | str | None
"""A number, the name of one that is open, or None for an open one without a name."""


def settle(graph: GraphProto, settled: Settled) -> dict[str, Array]:
    """Give a graph's inputs their extents, the same one wherever a name of one stands; returns the
    constants that take inputs' places.

    Raises FormatError for names that the graph does not have, ShapeError for extents that it has
    already and for one name with two numbers.
    """
    inputs = dict(_inputs(graph))
    dims = _dims(inputs, settled)
    for name, info in inputs.items():
        for place, (extent, dim) in enumerate(
            zip(extents_of(info), info.type.tensor_type.shape.dim, strict=True)
        ):
            number = dims.get(extent) if isinstance(extent, str) else None
            if extent is None:
                shape = settled.shapes.get(name)
                number = None if shape is None else shape[place]
                number = settled.batch if number is None and place == 0 else number
            if number is not None:
                dim.dim_value = number
    constants = {}
    for name, constant in settled.constants.items():
        info = named(inputs, name, "input")
        dtype = held_type(info.type.tensor_type.elem_type, packed=False)
        constants[name] = constant_of(name, constant, _shape(info), dtype)
    return constants


def open_extents(graph: GraphProto) -> list[str]:
    """Write the shapes of inputs that leave extents open: ``x [batch,3,height,?]``."""
    shapes = {name: extents_of(info) for name, info in _inputs(graph)}
    return [
        f"{quoted(name)} [{','.join('?' if n is None else str(n) for n in shape)}]"
        for name, shape in shapes.items()
        if not all(isinstance(extent, int) for extent in shape)
    ]


def extents_of(info: ValueInfoProto) -> list[Extent]:
    """Read an input's extents; negative numbers mean open ones, too, and so does ``?``, as which
    paddle2onnx writes each, whatever it is.
    """
    extents: list[Extent] = []
    for dim in info.type.tensor_type.shape.dim:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            extents.append(dim.dim_value)
        else:
            extents.append(None if dim.dim_param == "?" else dim.dim_param or None)
    return extents


def _inputs(graph: GraphProto) -> Iterator[tuple[str, ValueInfoProto]]:
    """Yield the inputs that are tensors with axes and no constants."""
    constants = {tensor.name for tensor in graph.initializer}
    for info in graph.input:
        is_ranked = info.type.HasField("tensor_type") and info.type.tensor_type.HasField("shape")
        if is_ranked and info.name not in constants:
            yield info.name, info


def _shape(info: ValueInfoProto) -> tuple[int | None, ...]:
    return tuple(n if isinstance(n, int) else None for n in extents_of(info))


def _dims(inputs: Mapping[str, ValueInfoProto], settled: Settled) -> dict[str, int]:
    """Collect the numbers of named extents: as callers name them, and from shapes and the batch."""
    known = {n: None for info in inputs.values() for n in extents_of(info) if isinstance(n, str)}
    dims: dict[str, int] = {}

    def enter(name: str, number: int) -> None:
        named(known, name, "extent")
        if dims.setdefault(name, number) != number:
            raise ShapeError(f"the extent {quoted(name)} is to be {dims[name]} and {number}")

    for name, number in settled.dims.items():
        enter(name, number)
    for name, shape in settled.shapes.items():
        info = named(inputs, name, "input")
        merged(name, _shape(info), shape)
        for extent, size in zip(extents_of(info), shape, strict=True):
            if isinstance(extent, str) and size is not None:
                enter(extent, size)
    for info in inputs.values():
        first = next(iter(extents_of(info)), None)
        if settled.batch is not None and isinstance(first, str) and first not in dims:
            dims[first] = settled.batch
    return dims
