"""Cases of guarded memory: every compiled kernel in turn, on odd extents, at both ends of arrays.

Half of the cases go past the first wall: the builder is given an array of another extent than the
operator's rules ask for. It may refuse; what it builds must stay inside all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any
from unittest.mock import patch

import numpy as np

from luciole.interpreter import Interpreter, Plan, compile_graph
from luciole.interpreter.memory import MemoryLimitError
from luciole.ir import Array, Model, Op, TensorType, Value
from luciole.ir.fields import INDEX
from luciole.ir.ops.embedding_lookup import EmbeddingLookup
from luciole.kernels import batch_matmul, jit
from luciole.kernels.core import registry
from luciole.kernels.core.allocation import placed, use
from luciole.kernels.core.contract import Context, NativeStep, Signature
from luciole.kernels.elements import strided
from luciole.kernels.jit.compiling import Kernel
from luciole.kernels.layers.geometry import sequence
from luciole.kernels.layers.levels import counting
from tests.fuzz.compiled import Compared
from tests.fuzz.models import STORED, alone
from tests.fuzz.programs import BrokenPromiseError
from tests.guard.memory import ENDS, Guard
from tests.guard.quantized import quantized
from tests.guard.recurrent import recurrent
from tests.guard.sizes import ODD, OddSizes
from tests.native_support import in_turn

PER_MODEL = 4
"""One worker has all cases of a kernel, as it is and cut at each end: two would compile it at the
same time.
"""
SECONDS = 120.0
"""For one case, whose kernels may have to be compiled."""

TRIES = 500
"""Sound models, one of which has a compiled kernel."""

MEMORY_LIMIT = 4 << 20
"""Bytes that a model may take."""

THREADS = 3
"""Among which work is shared, where it can be."""

Rng = np.random.Generator
Kind = tuple[type[Op], Signature]


USUAL = {TensorType.FLOAT32, TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64}
"""Types whose kernels other tests compile too."""


@cache
def kinds() -> list[Kind]:
    """Every operator class and signature with a compiled kernel, different ones first."""
    return list(dict.fromkeys([*different(), *_all_kinds()]))


@cache
def different() -> list[Kind]:
    """One operator class and signature for each builder of kernels and sizes of elements."""
    usual_first = sorted(_all_kinds(), key=lambda kind: not USUAL.issuperset(kind[1]))
    by_code: dict[tuple[object, ...], Kind] = {}
    for kind in usual_first:
        build = registry._NATIVE[kind]
        sizes = [STORED[t].itemsize for t in kind[1]]
        by_code.setdefault((build.__module__, build.__qualname__, *sizes), kind)
    return list(by_code.values())


def _all_kinds() -> list[Kind]:
    found = [(cls, s) for kind, cls, s in registry.registered() if kind == "native"]
    return sorted(found, key=lambda pair: (pair[0].__name__, [int(t) for t in pair[1]]))


def name_of(kind: Kind) -> str:
    """``Conv2D of INT8 x INT8 x INT32``."""
    cls, signature = kind
    return f"{cls.__name__} of {' x '.join(t.name for t in signature)}"


@dataclass(frozen=True)
class Case:
    """A model of one operator that runs compiled, whether the builder is lied to, and the end of
    arrays at which a guard stands.
    """

    number: int
    name: str
    model: Model
    is_cut: bool
    end: str

    @property
    def what(self) -> str:
        """The operator, its types, shapes and attributes."""
        op = self.model.graph.ops[0]
        values = [v for v in (*op.operands, *op.results) if v is not None]
        shapes = ", ".join(f"{v.name} {v.dtype.name} {list(v.dims)}" for v in values)
        name = f"{'cut ' if self.is_cut else ''}{self.name}, guarded {self.end}"
        return f"{name}: {shapes}; {op.attributes()}"


def make(seed: int, number: int) -> Case:
    """The case of that number: kernels in turn, each as it is and cut, at both ends."""
    block, place = divmod(number, PER_MODEL)
    name = name_of(kinds()[block % len(kinds())])
    return Case(number, name, _model(seed, block), place >= len(ENDS), ENDS[place % len(ENDS)])


@lru_cache(maxsize=1)
def _model(seed: int, block: int) -> Model:
    """The model of so many cases."""
    kind = kinds()[block % len(kinds())]
    rng = np.random.default_rng([seed, 0, block])
    for _ in range(TRIES):
        by_hand = recurrent(*kind, rng) or quantized(*kind, rng)
        model, is_sound = (by_hand, True) if by_hand else alone(*kind, OddSizes(rng))
        if is_sound and _native(model) is not None:
            return model
    raise BrokenPromiseError(f"no model of {name_of(kind)} runs compiled")


def _plan(model: Model) -> Plan:
    return compile_graph(
        model.graph, {v: v.dims for v in model.graph.inputs}, MEMORY_LIMIT, keep=True
    )


def _native(model: Model) -> NativeStep | None:
    """The step of a model's only operator, where it is compiled and has something to do. Nothing
    is compiled for models that are not taken: the step is not run.
    """
    try:
        with patch.object(Kernel, "address", 0):
            steps = _plan(model).steps
    except MemoryLimitError:
        return None
    return steps[0].native if len(steps) == 1 else None


def run(case: Case, seed: int) -> str:
    """Run a case; returns how it ended, with the guard's end and the kernel's name behind it."""
    rng = np.random.default_rng([seed, 1, case.number // len(ENDS)])
    before = use(Guard(case.end))
    try:
        with _sharing_everything() if rng.random() < 0.5 else nullcontext():
            how = _run_cut(case.model, rng) if case.is_cut else _run(case.model, rng)
    finally:
        use(before)
    return f"{how} {case.end} {case.name}"


@contextmanager
def _sharing_everything() -> Iterator[None]:
    """Let threads share also what would not pay."""
    names = (
        (strided, "LEAST_SHARE"),
        (sequence, "LEAST_CYCLES"),
        (sequence, "LEAST_BEHIND_ONE"),
        (batch_matmul, "LEAST_PRODUCTS"),
    )
    limits = [
        (module, name, getattr(module, name)) for module, name in (*names, (counting, "LEAST_WORK"))
    ]
    try:
        for module, name, _ in limits:
            setattr(module, name, 1)
        yield
    finally:
        for module, name, before in limits:
            setattr(module, name, before)


def _run(model: Model, rng: Rng) -> str:
    """Run the model, compare it with NumPy, then let the parts of several threads run."""
    interpreter = Interpreter(model, keep_tensors=True)
    interpreter.allocate_tensors()
    for number, value in enumerate(interpreter.graph.values):
        if value.is_input or value.is_variable:
            place = interpreter.tensor(number)()
            place[...] = 0 if _is_index(value) else anything(rng, place)
    compared = Compared(interpreter.plan)
    interpreter.attach_observer(compared)
    interpreter.invoke()
    if compared.differences:
        raise BrokenPromiseError(compared.differences[0])
    step = interpreter.plan.steps[0].native
    if step is None:
        raise BrokenPromiseError("it did not run compiled")
    _run_parts(step)
    return "compiled"


def anything(rng: Rng, like: Array) -> Array:
    """Numbers of every size for bytes and ordinary ones for others."""
    if like.dtype.kind in "iu":
        limits = np.iinfo(like.dtype)
        return rng.integers(limits.min, limits.max, like.shape, like.dtype, endpoint=True)
    if like.dtype.kind == "b":
        return rng.random(like.shape) < 0.5
    numbers = rng.normal(size=(2, *like.shape))
    chosen = numbers[0] + 1j * numbers[1] if like.dtype.kind == "c" else numbers[0]
    return np.asarray(chosen, like.dtype)


def _is_index(value: Value) -> bool:
    """Whether a caller's numbers name elements, most of which there are not."""
    return any(
        use.op.operand_field(use.slot).dtypes == INDEX
        or (isinstance(use.op, EmbeddingLookup) and value is use.op.lookup)
        for use in value.users
    )


def _run_cut(model: Model, rng: Rng) -> str:
    """Let the builder have an array of another extent, and run what it builds."""
    plan = _plan(model)
    op = plan.steps[0].op
    source = plan.steps[0].source
    operands: list[Any] = [None if v is None else plan.array(v) for v in source.operands]
    results: list[Any] = [plan.array(v) for v in source.results]
    _cut_one(rng, operands, results)
    build = registry.find_native(op)
    assert build is not None
    try:
        step = build(op, Context(tuple(operands), tuple(results)))
    except Exception:  # whatever it says, nothing was built
        return "refused"
    if not isinstance(step, NativeStep):
        return "declined"
    _run_steps(step, [step.record])
    _run_parts(step)
    return "inside"


def _cut_one(rng: Rng, *given: list[Any]) -> None:
    """Replace one array by one of another extent along an axis, or two."""
    places = [(arrays, i) for arrays in given for i, a in enumerate(arrays) if a is not None]
    places = [(arrays, i) for arrays, i in places if arrays[i].ndim] or places[:0]
    for number in rng.permutation(len(places))[: int(rng.integers(1, 3))].tolist():
        arrays, i = places[number]
        shape = list(arrays[i].shape)
        axis = int(rng.integers(len(shape)))
        others = arrays[i].nbytes // max(shape[axis], 1)
        shape[axis] = int(rng.choice([0, 2, *(n for n in ODD if n * others <= MEMORY_LIMIT)]))
        arrays[i] = placed(anything(rng, np.zeros(shape, arrays[i].dtype)))


def _run_parts(step: NativeStep) -> None:
    if step.split is not None:
        _run_steps(step, in_turn(step.split(THREADS)))


def _run_steps(step: NativeStep, records: Sequence[Array]) -> None:
    rows = [(step.address, record.ctypes.data) for record in records]
    jit.caller(np.array(rows, np.int64).reshape(-1, 2))()
