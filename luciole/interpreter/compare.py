"""Compare two models on the same records: how far each tensor of the second is from the first's.

Errors accumulate: each model computes on what it computed itself. Of a batch nothing is kept once
it is counted, so the memory needed does not grow with the number of records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from luciole.interpreter.answers import scores_classes
from luciole.interpreter.comparison import Comparison, TensorErrors
from luciole.interpreter.errors import InputError
from luciole.interpreter.growth import largest_growth
from luciole.interpreter.interpreter import Interpreter
from luciole.interpreter.metrics import ErrorSums, top_k_match
from luciole.interpreter.observe import Observer
from luciole.interpreter.records import (
    BATCH,
    Progress,
    Records,
    batch_size,
    check_records,
    run_records,
)
from luciole.interpreter.samples import Samples
from luciole.ir import Array, Graph, Model, TensorType, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.equalization import equalized, original_name
from luciole.ir.names import is_stripped
from luciole.ir.quantization import affine_of
from luciole.ir.value import element_count, has_batch_axis, shape_text

TOP = (1, 5)
"""How many of the largest elements of outputs are compared."""

Pair = tuple[Value, Value]

_MOST_BYTES = 64_000_000
"""Bytes of compared tensors in a batch."""


def compare(
    first: Model, second: Model, records: Records, progress: Progress | None = None
) -> Comparison:
    """Run both models over records of the first one's inputs and compare their tensors.

    Tensors are matched by name, inputs and outputs by order where names differ; equalized ones by
    what they were called before, times the factors that they were divided by. The second model
    gets the inputs quantized (or as real numbers) where it wants them so, and quantized tensors are
    compared by what they stand for. Raises InputError where inputs or outputs do not answer to each
    other, UnsupportedError for operators without a kernel.
    """
    layers, outputs = _layers(first.graph, second.graph), paired_outputs(first.graph, second.graph)
    second_records = second_inputs(first.graph, second.graph, records)
    factors = _factors(first.graph) | _factors(second.graph)
    pairs = dict.fromkeys([*layers, *outputs])
    sums = {pair: _Sums(pair, pair in outputs, factors) for pair in pairs}
    one, two = Interpreter(first), Interpreter(second)
    size = min(
        batch_size(one, records, _most_records(sums)),
        batch_size(two, second_records, _most_records(sums)),
    )
    left, right = _Watcher(a for a, _ in sums), _Watcher(b for _, b in sums)
    one.attach_observer(left)
    two.attach_observer(right)
    count = 0
    first_runs = run_records(one, records, progress, size)
    for results, _ in zip(first_runs, run_records(two, second_records, None, size), strict=True):
        batch = len(next(iter(results.values())))
        count += batch
        for pair, total in sums.items():
            total.add(left.arrays.get(pair[0]), right.arrays.get(pair[1]), batch)
    compared = [sums[pair] for pair in layers if sums[pair].errors.records]
    matched = {value for pair in [*(total.pair for total in compared), *outputs] for value in pair}
    errors = [total.result() for total in compared]
    relative = {e.name: r for e in errors if (r := e.measures.relative) is not None}
    return Comparison(
        count,
        errors,
        [sums[pair].result() for pair in outputs],
        _unmatched(first.graph, second.graph, matched),
        largest_growth(first.graph, relative),
    )


class _Watcher(Observer):
    """Keeps the last contents of chosen tensors: the interpreter writes over its own."""

    def __init__(self, values: Iterable[Value]) -> None:
        self.chosen = set(values)
        self.arrays: dict[Value, Array] = {}

    def after_tensor_write(self, value: Value, array: Array) -> None:
        """Copy a tensor that was chosen."""
        if value in self.chosen:
            self.arrays[value] = array.copy()


class _Sums:
    """A pair of tensors being compared."""

    def __init__(self, pair: Pair, is_output: bool, factors: Mapping[Value, Array]) -> None:
        self.pair, self.factors = pair, factors
        self.errors = ErrorSums(_scale(pair[1]))
        self.is_output = is_output
        self.matches: dict[int, float] = {}
        self.answers = 0

    def add(self, a: Array | None, b: Array | None, batch: int) -> None:
        """Count a batch. Tensors that a plan computed beforehand are not there, and not counted."""
        if a is None or b is None:
            return
        if _core(a.shape) != _core(b.shape):
            if self.is_output:
                raise InputError(
                    f"output {self.pair[0].name!r} is {shape_text(a.shape)} in the first model and "
                    f"{shape_text(b.shape)} in the second"
                )
            return
        rows = batch if has_batch_axis(self.pair[0]) else 1
        x, y = (
            self._whole(value, array).reshape(rows, -1)
            for value, array in zip(self.pair, (a, b), strict=True)
        )
        self.errors.add(x, y)
        if self.is_output:
            self._count_answers(x.reshape(rows, *_steps(a, self.pair[0])), y)

    def _count_answers(self, x: Array, y: Array) -> None:
        """Count in how many of the answers of x [records, ..., elements] the first k classes are
        the first ones of y, element by element.
        """
        if not scores_classes(self.pair[0], x):
            return
        one, other = (array.reshape(-1, x.shape[-1]) for array in (x, y))
        self.answers += len(one)
        for k in TOP:
            if x.shape[-1] >= k:
                same = float(top_k_match(one, other, k).sum())
                self.matches[k] = self.matches.get(k, 0.0) + same

    def _whole(self, value: Value, array: Array) -> Array:
        """Undo the division of a tensor's contents, channel by channel."""
        real = real_numbers(value, array)
        return real * self.factors[value] if value in self.factors else real

    def result(self) -> TensorErrors:
        """Return the findings."""
        ranges = {n: r for n in ("mse", "tae") if (r := self.errors.range(n)) is not None}
        top = {k: total / max(self.answers, 1) for k, total in self.matches.items()}
        kinds = (_kind(self.pair[0]), _kind(self.pair[1]))
        return TensorErrors(self.pair[0].name, kinds, self.errors.measures(), ranges, top)


def _steps(array: Array, value: Value) -> tuple[int, ...]:
    """Return the shape of a record of a tensor."""
    return array.shape[1:] if has_batch_axis(value) else array.shape


def _scale(value: Value) -> float | None:
    """Return the one scale of a quantized tensor, None where there is none or several."""
    affine = affine_of(value)
    return None if affine is None or len(affine.scale) != 1 else float(affine.scale[0])


def real_numbers(value: Value, array: Array) -> Array:
    """Return a tensor's contents as float64: the real numbers that its integers stand for."""
    affine = affine_of(value)
    return array.astype(np.float64) if affine is None else affine.decode(array)


def _core(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for n in shape if n != 1)


def _kind(value: Value) -> str:
    return value.producer.op.kind if value.producer is not None else "INPUT"


def _factors(graph: Graph) -> dict[Value, Array]:
    """Return the factors that tensors are divided by, channel by channel."""
    return {value: note.factors for value, note in equalized(graph).items()}


def _computed(graph: Graph) -> dict[str, Value]:
    """Return the tensors of numbers that operators compute, by the name that they had before they
    were equalized; none for a name taken twice, or taken off.
    """
    known = equalized(graph)
    names = {value: original_name(value, known) for value in graph.values}
    counts = Counter(names.values())
    return {
        names[value]: value
        for op in graph.ops
        for value in op.results
        if counts[names[value]] == 1 and _says(names[value]) and value.dtype in NUMPY
    }


def _says(name: str) -> bool:
    """Return whether a name says which tensor it is."""
    return bool(name) and not is_stripped(name)


def _layers(first: Graph, second: Graph) -> list[Pair]:
    others = _computed(second)
    return [(v, others[name]) for name, v in _computed(first).items() if name in others]


def paired_outputs(first: Graph, second: Graph) -> list[Pair]:
    """Pair outputs by name where all names agree, else by order."""
    if len(first.outputs) != len(second.outputs):
        raise InputError(
            f"the first model has {len(first.outputs)} outputs, the second {len(second.outputs)}"
        )
    by_name = {v.name: v for v in second.outputs}
    if {v.name for v in first.outputs} == by_name.keys():
        pairs = [(v, by_name[v.name]) for v in first.outputs]
    else:
        pairs = list(zip(first.outputs, second.outputs, strict=True))
    return _of_numbers(pairs)


def _of_numbers(pairs: Iterable[Pair]) -> list[Pair]:
    """Leave out texts, which have no distance. Raises InputError where a number would be compared
    with a text, and where nothing is left.
    """
    numeric = [pair for pair in pairs if any(value.dtype != TensorType.STRING for value in pair)]
    for first, second in numeric:
        if TensorType.STRING in (first.dtype, second.dtype):
            raise InputError(
                f"output {first.name!r} is {first.dtype.name} in the first model and "
                f"{second.dtype.name} in the second"
            )
    if not numeric:
        raise InputError("all outputs are texts: there is no distance between them")
    return numeric


def _unmatched(first: Graph, second: Graph, matched: set[Value]) -> tuple[list[str], list[str]]:
    ours, theirs = (
        [v.name for op in graph.ops for v in op.results if v not in matched]
        for graph in (first, second)
    )
    return ours, theirs


def second_inputs(first: Graph, second: Graph, records: Records) -> Records:
    """Bring records of the first model to the second one's inputs: by name, else by order, made
    real or quantized, by its own scale, where an input wants that. Raises InputError where the
    models' inputs are not alike, or have other shapes.
    """
    if len(first.inputs) != len(second.inputs):
        raise InputError(
            f"the first model has {len(first.inputs)} inputs, the second {len(second.inputs)}"
        )
    named = {v.name: v for v in first.inputs}
    same = named.keys() == {v.name for v in second.inputs}
    sources = [named[v.name] for v in second.inputs] if same else first.inputs
    inputs = {
        b.name: _as_input(a, b, records[a.name])
        for a, b in zip(sources, second.inputs, strict=True)
    }
    try:
        check_records(second, inputs)
    except InputError as error:
        raise InputError(f"the other model: {error}") from None
    return inputs


def _as_input(a: Value, b: Value, samples: Samples) -> Samples:
    source, target = affine_of(a), affine_of(b)
    plain = source is None and target is None
    if a.dtype == b.dtype and (plain or (source and target and source.same_numbers(target))):
        return samples
    array = np.asarray(samples)
    if target and (source or (a.dtype in NUMPY and NUMPY[a.dtype].kind == "f")):
        return target.encode(real_numbers(a, array))
    if source and b.dtype in NUMPY and NUMPY[b.dtype].kind == "f":
        return source.decode(array).astype(NUMPY[b.dtype])
    raise InputError(
        f"input {b.name!r} of the second model is {b.dtype.name}, the first one's is {a.dtype.name}"
    )


def _most_records(pairs: Iterable[Pair]) -> int:
    """Return how many records may run at once: one where a tensor does not keep records apart."""
    values = [value for pair in pairs for value in pair]
    if not all(has_batch_axis(value) for value in values):
        return 1
    size = sum(element_count(v.dims) * NUMPY[v.dtype].itemsize for v in values if v.dtype in NUMPY)
    return int(np.clip(_MOST_BYTES // max(size, 1), 1, BATCH))
