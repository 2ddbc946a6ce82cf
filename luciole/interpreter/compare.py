"""Two models on the same records: how far each tensor of the second is from the first's.

Errors accumulate: each model computes on what it computed itself. Nothing is kept of a batch once
it is counted, so the memory needed does not depend on the number of records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from luciole.interpreter.errors import InputError
from luciole.interpreter.interpreter import Interpreter
from luciole.interpreter.metrics import ErrorSums, Floats, Measures, Range, top_k_match
from luciole.interpreter.observe import Observer
from luciole.interpreter.records import BATCH, Progress, Records, batch_size, run_records
from luciole.ir import Array, Graph, Model, Op, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.value import element_count, has_batch_axis, shape_text

TOP = (1, 5)
"""How many of the largest outputs are compared."""

_MOST_BYTES = 64_000_000
"""Bytes of one batch's tensors that are kept until the second model ran."""


@dataclass
class TensorErrors:
    """One tensor of both models, the operators that compute it, and the distance."""

    name: str
    kinds: tuple[str, str]
    measures: Measures
    ranges: dict[str, Range]
    top: dict[int, float] = field(default_factory=dict)


@dataclass
class Comparison:
    """All compared tensors in the order in which the first model computes them, the outputs, and
    the tensors of each model that the other one has not.
    """

    records: int
    layers: list[TensorErrors]
    outputs: list[TensorErrors]
    unmatched: tuple[list[str], list[str]]


def compare(
    first: Model, second: Model, records: Records, progress: Progress | None = None
) -> Comparison:
    """Run both models over records of the first one's inputs and compare what they compute.

    Tensors are matched by name, inputs and outputs else by order; the second model gets the inputs
    quantized where it wants them so. Quantized tensors are compared by what they stand for.
    Raises InputError where inputs or outputs do not answer to each other.
    """
    pairs = _pairs(first.graph, second.graph)
    outputs = _output_pairs(first.graph, second.graph)
    given = _inputs(first.graph, second.graph, records)
    sums = {pair: _Sums(*pair) for pair in dict.fromkeys([*pairs, *outputs])}
    one, two = Interpreter(first), Interpreter(second)
    size = _batch(one, two, records, given, list(sums))
    left, right = _Watcher(a for a, _ in sums), _Watcher(b for _, b in sums)
    one.attach_observer(left)
    two.attach_observer(right)
    runs = (run_records(one, records, progress, size), run_records(two, given, None, size))
    count = 0
    for results, _ in zip(*runs, strict=True):
        batch = len(next(iter(results.values())))
        count += batch
        for (a, b), total in sums.items():
            total.add(left.arrays[a], right.arrays[b], batch)
    return Comparison(
        count,
        [sums[pair].errors() for pair in pairs],
        [sums[pair].errors(with_top=True) for pair in outputs],
        _unmatched(first.graph, second.graph, list(sums)),
    )


class _Watcher(Observer):
    """Keeps the last contents of chosen tensors."""

    def __init__(self, values: Callable[[], Value] | object) -> None:
        self.arrays: dict[Value, Array] = {}
