"""Models of one operator with a long axis, made of small ones by trial."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import isqrt, prod

import numpy as np

from luciole.ir import Array, Graph, LucioleError, Model, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.value import MOST_AXES
from luciole.ir.verify import Severity, verify
from tests.fuzz.models import STORED, Rng, contents

Change = Callable[[Graph, Value], None]
"""What is done to a model, and to a tensor of it."""


def enlarged(rng: Rng, model: Model, elements: int, last_first: bool) -> Iterator[Model]:
    """Make sound models in which some tensor has about so many elements: one axis of what an
    operator is given is longer, alone or with everything that has its extent, or one of the numbers
    that say something about extents is larger. Axes are taken in their order, or the last first.
    """
    for number, value in enumerate(model.graph.values):
        if value.producer is None and value.dtype in NUMPY:
            stretches = _stretches(rng, value, elements, last_first)
            for change in (*stretches, *_numbers(value, elements)):
                larger = model.clone()
                if _is_done(change, larger.graph, number) and _is_sound(larger, elements):
                    yield larger


def _is_done(change: Change, graph: Graph, number: int) -> bool:
    try:
        change(graph, graph.values[number])
    except (LucioleError, ValueError):
        return False
    return True


def _stretches(rng: Rng, value: Value, elements: int, last_first: bool) -> Iterator[Change]:
    for axis in sorted(range(len(value.dims)), reverse=last_first):
        extent = value.dims[axis]
        long = elements // max(prod(value.dims) // max(extent, 1), 1)
        yield partial(_stretch_all, rng, extent, long)
        yield partial(_stretch_one, rng, (*value.dims[:axis], long, *value.dims[axis + 1 :]))
        yield partial(_stretch_all, rng, extent, isqrt(elements))


def _numbers(value: Value, elements: int) -> Iterator[Change]:
    array = value.data
    if array is None or array.size > (MOST_AXES if array.dtype.kind == "i" else 1):
        return
    for place in range(array.size):
        larger = array.copy()
        with np.errstate(over="ignore"):
            larger.flat[place] = np.array(elements).astype(array.dtype)
        yield partial(_set, larger)


def _set(array: Array, graph: Graph, value: Value) -> None:
    value.make_constant(array, value.dtype)


def _stretch_one(rng: Rng, shape: tuple[int, ...], graph: Graph, value: Value) -> None:
    _stretch(rng, value, shape)


def _stretch_all(rng: Rng, extent: int, long: int, graph: Graph, _: Value) -> None:
    for value in graph.values:
        if value.producer is None and value.dtype in NUMPY:
            array = value.data
            if array is not None and array.dtype.kind == "i" and array.ndim < 2:
                value.make_constant(
                    np.where(array == extent, long, array).astype(array.dtype), value.dtype
                )
            _stretch(rng, value, tuple(long if n == extent else n for n in value.dims))


def _stretch(rng: Rng, value: Value, shape: tuple[int, ...]) -> None:
    if shape != value.dims and prod(shape) < 1 << 24:
        constant, quantization = value.is_constant, value.quantization
        value.shape = shape
        if constant:
            value.make_constant(contents(rng, shape, STORED[value.dtype]), value.dtype)
            value.quantization = quantization


def _is_sound(model: Model, elements: int) -> bool:
    """Whether nothing is wrong with a model whose largest tensor has about so many elements."""
    try:
        for op in model.graph.ops:
            for value, shape in zip(op.results, op.result_shapes(), strict=True):
                value.shape = shape
        most = max(prod(v.dims) for v in model.graph.values)
        if not elements // 4 <= most <= 8 * elements:
            return False
        return not any(f.severity is Severity.ERROR for f in verify(model))
    except (LucioleError, TypeError, ValueError, IndexError, RecursionError):
        return False
