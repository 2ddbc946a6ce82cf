"""Check what a caller gives for the inputs of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any, SupportsIndex

import numpy as np

from luciole.interpreter.affine import as_input
from luciole.interpreter.errors import NO_ARRAY, InputError
from luciole.ir import Array, Graph, LucioleError, ShapeError, TensorType, Value, strings
from luciole.ir.dtypes import NUMPY
from luciole.ir.names import Way, called
from luciole.ir.quantization import affine_of
from luciole.ir.value import compatible, shape_text

_NUMBERS = "biufcV"
"""Kinds of NumPy's types that tensors hold; the last are those of bfloat16 and float8."""


def as_array(value: Value, contents: Any) -> Array:
    """Take a caller's contents of a tensor as an array. Raises InputError for what makes none, and
    for objects that are no texts.
    """
    if value.dtype == TensorType.STRING:
        try:
            return strings.given(contents)
        except (TypeError, ValueError) as error:
            raise InputError(f"Cannot set tensor {called(value)!r} of STRING: {error}") from None
    try:
        return np.asarray(contents)
    except NO_ARRAY as error:
        raise InputError(f"Cannot set tensor {called(value)!r}: {error}") from None


def as_numbers(value: Value, contents: Any) -> Array:
    """Take a caller's contents of an input as NumPy would: real numbers become what it stores, and
    Python's own numbers and lists get its type where nothing is lost by that but digits.
    """
    if value.dtype == TensorType.STRING:
        return as_array(value, contents)
    try:
        array = np.asarray(contents)
    except NO_ARRAY as error:
        raise InputError(f"input {called(value)!r}: {error}") from None
    if array.dtype.kind not in _NUMBERS:
        kind = type(contents).__name__ if array.dtype == object else str(array.dtype)
        raise InputError(f"input {called(value)!r}: an array of numbers is needed, found {kind}")
    own = NUMPY.get(value.dtype)
    if own is not None and not hasattr(contents, "dtype") and affine_of(value) is None:
        return _as_type(value, array, np.dtype(own))
    return as_input(value, array)


def _as_type(value: Value, array: Array, own: np.dtype[Any]) -> Array:
    """Convert numbers that are in no array to an input's type; those that it cannot hold are left
    to ``check_fits``.
    """
    converted = array.astype(own) if np.can_cast(array.dtype, own, "same_kind") else array
    if own.kind in "iu" and not np.array_equal(converted, array):
        raise InputError(f"input {called(value)!r}: {own} does not hold all of the numbers")
    return converted


def check_fits(number: int, tensor: Value, array: Array, target: Array) -> None:
    """Raise InputError for an array that a tensor's place does not take, as LiteRT says it."""
    if array.dtype != target.dtype:
        raise InputError(
            f"Cannot set tensor: Got value of type {array.dtype} "
            f"but expected type {target.dtype} "
            f"for input {number}, name: {tensor.name}"
        )
    if array.ndim != target.ndim:
        raise InputError(
            f"Cannot set tensor: Dimension mismatch. "
            f"Got {array.ndim} but expected {target.ndim} "
            f"for input {number}."
        )
    if array.shape != target.shape:
        at = next(
            i for i, (a, b) in enumerate(zip(array.shape, target.shape, strict=True)) if a != b
        )
        raise InputError(
            f"Cannot set tensor: Dimension mismatch. "
            f"Got {array.shape[at]} but expected {target.shape[at]} "
            f"for dimension {at} of input {number}."
        )
    if tensor.is_constant:
        raise InputError(f"Cannot set tensor: tensor {number} {tensor.name!r} is a constant")


def resized(value: Value, sizes: Iterable[SupportsIndex], *, strict: bool) -> tuple[int, ...]:
    """Read another shape for an input; ``strict`` allows it only for extents that the model leaves
    open. Raises InputError for one that it cannot have.
    """
    try:
        shape = tuple(map(index, sizes))
    except TypeError:
        what = f"input {value.name!r} is resized to whole numbers, found {sizes!r}"
        raise InputError(what) from None
    if (strict and not compatible(value.shape, shape)) or any(n < 0 for n in shape):
        raise InputError(
            f"input {value.name!r} is {list(value.shape)}, it cannot be resized to {list(shape)}"
        )
    return shape


def inputs_by_name(inputs: Mapping[str, Any] | Any, graph: Graph) -> Mapping[str, Any]:
    """Return inputs by name: those that are given so, or the only one. Raises InputError for an
    array alone where a graph has more inputs or none.
    """
    if type(inputs) is dict:
        return inputs
    is_array = type(inputs) is np.ndarray  # the other question takes 400 ns
    if not is_array and isinstance(inputs, Mapping):
        return inputs
    if len(graph.inputs) != 1:
        names = sorted(v.name for v in graph.inputs)
        raise InputError(f"the model has {len(names)} inputs {names}: give a dictionary")
    return {graph.inputs[0].name: inputs}


def call_by_names(names: Iterable[str], calls: Sequence[Way]) -> Way:
    """Find the way to call a graph that these names are. Raises InputError for none."""
    arguments = set(names)
    for call in calls:
        if arguments == set(call.inputs):
            return call
    if not calls:
        raise InputError("inputs share a name: give them by set_tensor and call invoke")
    known = " or ".join(str(sorted(call.inputs)) for call in calls)
    raise InputError(f"the inputs are {known}, given were {sorted(arguments)}")


def wrong_shapes(shapes: Mapping[Value, tuple[int, ...]], error: ShapeError) -> LucioleError:
    """Name the input that is not as the model has it, where a shape does not fit further on."""
    changed = [(v, s) for v, s in shapes.items() if not compatible(v.shape, s)]
    if not changed:
        return error
    value, shape = changed[0]
    return ShapeError(
        f"input {called(value)!r} is {shape_text(value.shape)}, "
        f"given was {shape_text(shape)}: {error}"
    )
