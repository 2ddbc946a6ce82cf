"""Choose the inputs of measured models: records of a file, or random numbers from a seed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from luciole.ir import Array
from luciole.ir.strings import OBJECTS
from luciole.ir.value import has_batch_axis
from luciole.tools.bench.ours import Luciole
from luciole.tools.bench.runtime import BenchError, Port, Shape
from luciole.tools.data import Data

SENTENCE = b"the quick brown fox jumps over the lazy dog"

MOST_RECORDS = 64
"""Records that are fed in turn while time is taken."""


def random_inputs(ports: Sequence[Port], seed: int) -> list[list[Array]]:
    """Draw one list of arrays, one for each input: normal floats, small or 8 bit integers from all
    there are, other integers from 0 to 99, and for texts a sentence, as TFLite's
    ``benchmark_model`` does.
    """
    rng = np.random.default_rng(seed)
    return [[_random(port, rng) for port in ports]]


def _random(port: Port, rng: np.random.Generator) -> Array:
    kind = port.dtype.kind
    if kind == "S":
        return np.full(port.shape, SENTENCE, OBJECTS)
    if kind == "b":
        return np.asarray(rng.integers(0, 2, port.shape) == 1)
    if kind in "iu" and port.dtype.itemsize == 1:
        info = np.iinfo(port.dtype)
        return rng.integers(info.min, info.max, port.shape, port.dtype, endpoint=True)
    if kind in "iu":
        return rng.integers(0, 100, port.shape).astype(port.dtype)
    if kind in "fc":
        return rng.normal(size=port.shape).astype(port.dtype)
    raise BenchError(f"input {port.name!r} is {port.dtype}: no random numbers for it, give --data")


def data_inputs(runtime: Luciole, data: Data, most: int = MOST_RECORDS) -> list[list[Array]]:
    """Return lists of arrays as the model takes them, at most ``most``, from the first records on.

    An input whose first axis counts records gets as many as it takes, beginning anew after the
    last.
    """
    columns = [
        _batches(data.records[value.name], port.shape, has_batch_axis(value), most)
        for value, port in zip(runtime.graph.inputs, runtime.inputs, strict=True)
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def _batches(records: Array, shape: Shape, batched: bool, most: int) -> list[Array]:
    size = shape[0] if batched else 1
    number = min(most, -(-len(records) // size))
    starts = range(0, number * size, size)
    taken = [np.take(records, range(i, i + size), axis=0, mode="wrap") for i in starts]
    arrays = taken if batched else [array[0] for array in taken]
    wrong = [array.shape for array in arrays if array.shape != shape]
    if wrong:
        raise BenchError(f"the model takes {list(shape)}, the data gives {list(wrong[0])}")
    return [np.asarray(array, order="C") for array in arrays]  # keeps an array without axes so
