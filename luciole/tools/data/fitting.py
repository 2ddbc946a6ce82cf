"""Fits stored records to the inputs of a model or refuses them, for every source of data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from luciole.interpreter.affine import REAL, as_input, takes_real
from luciole.interpreter.finite import first_fault
from luciole.ir.dtypes import NUMPY, Array
from luciole.ir.graph import Graph
from luciole.ir.names import ways
from luciole.ir.strings import OBJECTS, given, most_memory
from luciole.ir.value import Shape, Value, element_count, has_batch_axis, shape_text
from luciole.schema.enums import TensorType
from luciole.schema.printable import shorten
from luciole.tools.data.errors import DataError

Transform = Callable[[Array], Array]
"""An elementwise function from float32 to float32."""


@dataclass(frozen=True)
class InputSpec:
    """Data that a graph input takes: dtype, the shape of a record (no batch axis), preprocessing,
    and how it stores real numbers, None where it takes none. ``names`` are its names in each
    signature of the graph.
    """

    name: str
    dtype: np.dtype[Any]
    shape: Shape
    transform: Transform | None = None
    store: Transform | None = None
    names: tuple[str, ...] = ()

    @staticmethod
    def of(
        value: Value, transform: Transform | None = None, names: tuple[str, ...] = ()
    ) -> InputSpec:
        """Make the spec of a graph input; those that take real numbers are preprocessed.

        Raises DataError for element types that files do not hold (4 bit, variants).
        """
        is_text = value.dtype == TensorType.STRING
        if not is_text and value.dtype not in NUMPY:
            raise DataError(f"input {value.name!r}: {value.dtype.name} cannot be fed from a file")
        dtype = OBJECTS if is_text else NUMPY[value.dtype]
        shape = value.shape[1:] if has_batch_axis(value) else value.shape
        if not takes_real(value):
            return InputSpec(value.name, dtype, shape, names=names)
        return InputSpec(value.name, dtype, shape, transform, partial(as_input, value), names)

    @property
    def is_text(self) -> bool:
        """Whether the input takes texts: files have them in NumPy's types S and U."""
        return self.dtype == OBJECTS

    def item_bytes(self, stored: np.dtype[Any]) -> int:
        """Bound the bytes that one element takes when it was read from an array of this type."""
        if self.is_text:
            return stored.itemsize + most_memory(1, stored.itemsize)
        return max(self.dtype.itemsize, stored.itemsize)

    def byte_count(self) -> int:
        """Count the bytes of one raw record. Raises DataError for texts, and when an axis is
        unknown.
        """
        if self.is_text:
            raise DataError(
                f"input {self.name!r} takes texts: raw bytes are none, use .npy or .npz"
            )
        return element_count(self.extents()) * self.dtype.itemsize

    def extents(self) -> tuple[int, ...]:
        """Return the per-record shape. Raises DataError when an axis is unknown."""
        known = tuple(n for n in self.shape if n is not None)
        if len(known) != len(self.shape):
            raise DataError(
                f"input {self.name!r} has shape {shape_text(self.shape)} per record: raw bytes "
                f"cannot tell the unknown axes, use .npy, .npz or typed HDF5"
            )
        return known

    def check_bytes(self, count: int) -> tuple[int, ...]:
        """Return the per-record shape. Raises DataError unless a raw record has ``count`` bytes."""
        if count != self.byte_count():
            raise DataError(
                f"input {self.name!r} takes {self.byte_count()} bytes per record "
                f"({self.dtype} {shape_text(self.shape)}), found {count}"
            )
        return self.extents()

    def from_bytes(self, raw: Array) -> Array:
        """Read one record from its bytes (uint8), little-endian: in the input's dtype and
        per-record shape.
        """
        shape = self.check_bytes(raw.size)
        if self.dtype == np.bool_:
            return np.asarray(raw != 0).reshape(shape)
        return raw.reshape(-1).view(self.dtype.newbyteorder("<")).reshape(shape)

    def fit(self, stored: Array, source: str, first: int | None = None) -> Array:
        """Return records as the model takes them: ``[records, *per-record shape]`` of the input's
        dtype.

        ``source`` names them in a refusal, with the record's number if ``first``, the number of the
        first of them, is given. The result shares memory with ``stored`` where nothing changes.
        Real numbers are preprocessed, and quantized where the input is; integers of a quantized
        input's own type are what it stores, unless they are uint8 that are preprocessed. Raises
        DataError for a shape or type that does not fit, and for NaN or infinity before or after
        preprocessing.
        """
        shape = self.check(stored.shape, stored.dtype, source)
        store = self._store(stored.dtype, source)
        stored = stored.reshape(len(stored), *shape)
        if self.is_text:
            return self._texts(stored, source)
        with np.errstate(all="ignore"):
            fed = stored.astype(self.dtype if store is None else np.float32, copy=False)
            self._check_finite(fed, stored, source, first)
            if self.transform is not None:
                fed = self.transform(fed)
                self._check_finite(fed, stored, source, first)
        return np.ascontiguousarray(fed if store is None else store(fed))

    def check(self, stored: tuple[int, ...], dtype: np.dtype[Any], source: str) -> tuple[int, ...]:
        """Return the per-record shape of records that are stored in an array.

        Raises DataError where the model does not take its shape or type.
        """
        self._store(dtype, source)
        extents = stored[1:]
        shape = fit_shape(extents, self.shape)
        if shape is not None:
            return shape
        hint = ""
        if fit_shape(stored, self.shape) is not None:
            hint = " (the first axis counts records; store a single record with a first axis of 1)"
        raise DataError(
            f"input {self.name!r} takes records of shape {shape_text(self.shape)}, "
            f"found {shorten(shape_text(extents))} in {source}{hint}"
        )

    def _texts(self, stored: Array, source: str) -> Array:
        try:
            return given(stored)
        except ValueError as error:
            raise DataError(
                f"input {self.name!r}: a text in {source} has no UTF-8: {error}"
            ) from None

    def _store(self, number_type: np.dtype[Any], source: str) -> Transform | None:
        """Find how numbers of a type get into the input, None where they are of the type that it
        stores.
        """
        if self.is_text:
            self._refuse_numbers(number_type, source)
            return None
        number_type = number_type.newbyteorder("=")
        if number_type == self.dtype and self.transform is None:
            return None
        if self.store is not None and number_type in REAL:
            return self.store
        if number_type == self.dtype:
            raise DataError(
                f"input {self.name!r}: {number_type} in {source} is what it stores, "
                f"preprocessing is for {' or '.join(sorted(map(str, REAL)))}"
            )
        also = set() if self.store is None else {str(dtype) for dtype in REAL - {self.dtype}}
        allowed = " or ".join([str(self.dtype), *sorted(also)])
        raise DataError(
            f"input {self.name!r} takes {allowed}, found {shorten(str(number_type))} in {source}"
        )

    def _refuse_numbers(self, element_type: np.dtype[Any], source: str) -> None:
        if element_type.kind not in "SU":
            raise DataError(
                f"input {self.name!r} takes texts (NumPy's types S and U), "
                f"found {shorten(str(element_type))} in {source}"
            )

    def _check_finite(self, fed: Array, stored: Array, source: str, first: int | None) -> None:
        fault = first_fault(fed, stored)
        if fault is not None:
            record = source if first is None else f"record {first + fault.record} of {source}"
            place = f"element {fault.element} of {record}"
            raise DataError(f"input {self.name!r}: {place} {fault.story}")


def input_specs(graph: Graph, transforms: Sequence[Transform | None] = ()) -> list[InputSpec]:
    """Make the specs of all inputs of a graph, in order, each with its preprocessing if any is
    given.

    Raises DataError when there are none, when two share a name, or when none can be preprocessed.
    """
    transforms = transforms or [None] * len(graph.inputs)
    called = [tuple(call.inputs[n] for call in ways(graph)) for n in range(len(graph.inputs))]
    specs = list(map(InputSpec.of, graph.inputs, transforms, called))
    if not specs:
        raise DataError("the model has no inputs to feed")
    names = [spec.name for spec in specs]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"the model has {names.count(twice[0])} inputs named {twice[0]!r}")
    if any(transforms) and all(spec.transform is None for spec in specs):
        listed = ", ".join(f"{spec.name!r} is {spec.dtype}" for spec in specs)
        raise DataError(
            f"preprocessing is for float32 or quantized inputs, there is none: {listed}"
        )
    return specs


def fit_shape(stored: tuple[int, ...], target: Shape) -> tuple[int, ...] | None:
    """Find the extents that a record gets at an input of shape ``target``, None if it does not fit.

    It fits if the shapes agree up to axes of extent 1, or if one of the two is flat and the counts
    agree. Axes are never merged or swapped otherwise: [3,32,32] is not [32,32,3].
    """
    aligned = _align(stored, len(target))
    if aligned is not None and _agree(aligned, target):
        return aligned
    squeezed = tuple(n for n in stored if n != 1)
    core = tuple(n for n in target if n != 1)
    if _agree(squeezed, core):
        extents = iter(squeezed)
        return tuple(1 if n == 1 else next(extents) for n in target)
    known = tuple(n for n in target if n is not None)
    flat = len(squeezed) <= 1 or len(core) <= 1
    if flat and len(known) == len(target) and element_count(stored) == element_count(known):
        return known
    return None


def _align(extents: tuple[int, ...], rank: int) -> tuple[int, ...] | None:
    extra = len(extents) - rank
    if extra <= 0:
        return (1,) * -extra + extents
    return extents[extra:] if all(n == 1 for n in extents[:extra]) else None


def _agree(extents: tuple[int, ...], target: Shape) -> bool:
    return len(extents) == len(target) and all(
        w is None or n == w for n, w in zip(extents, target, strict=True)
    )
