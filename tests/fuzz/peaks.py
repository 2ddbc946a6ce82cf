"""What kernels take beside the arrays that are counted: a program, in a process of its own.

    MALLOC_MMAP_THRESHOLD_=65536 python -m tests.fuzz.peaks [OPERATOR ...]

The variable has the C library give back at once what is freed: gaps between arrays do not count.
Prints a line of JSON for every kernel, or for those of the operators named: its name, whether it is
compiled, and its peaks. Without names, compiled kernels that the same code builds for several
operators are measured once, of those that tests.guard runs: their models are made of its, so that
one compiles for both. With HUNGRY among the names kernels take more than they should, to see
that it is found.
"""

from __future__ import annotations

import gc
import json
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import wraps
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from luciole.interpreter import Interpreter
from luciole.ir import Array, LucioleError, Model, Op, TensorType, Value
from luciole.kernels.core import contract, discovery, registry
from luciole.kernels.core.allocation import Allocator, Bytes, use
from luciole.kernels.core.meter import UNCOUNTED
from tests.fuzz.large import enlarged
from tests.fuzz.models import STORED, Rng, alone, contents
from tests.fuzz.rare import examples
from tests.fuzz.shapes import Sizes
from tests.guard import cases

ELEMENTS = 1 << 18
"""Of the largest operand, roughly."""

SEEDS = 40
"""Small models of a kernel that are tried."""

FEW_SEEDS = 4
"""The same where chance makes no model that runs with large tensors."""

MODELS = 1
"""Large models of a kernel that are measured."""

RUNS = 4
"""Of a model that seems to take much."""

GUARDED = 1
"""Seed of the models of tests.guard whose kernels it compiles, too."""

SECONDS = 10.0
"""For a model and a NumPy kernel; those that go through pairs take too long for some."""

LIMIT = 1 << 30

HUNGRY = "hungry"

UNMEASURED = {
    "BroadcastArgs": "its operands have a number for each axis",
    "Call": "graphs that chance makes have no operators: such calls are compiled",
    "CallOnce": "it has neither operands nor results",
    "Hashtable": "its result is a number",
    "HashtableFind": "chance fills no table",
    "HashtableImport": "it takes texts and numbers, which are counted as they are held",
    "HashtableSize": "its result is a number",
    "LevelsDecode": "chance makes no codes, bases and scales that fit large tensors",
    "If": "graphs that chance makes have no operators: such choices are compiled",
    "MaxUnpooling2D": "places are those of a pool: chance makes none that lie in windows",
    "Rank": "a plan knows the result from the operand's shape",
    "ReadVariable": "it gives what ASSIGN_VARIABLE took, which is measured",
    "ReduceWindow": "chance makes no windows and steps that fit large tensors",
    "Rsqrt": "with 16 bits chance makes no numbers none of which is negative",
    "Shape": "a plan knows the result from the operand's shape",
    "SkipGram": "it takes and gives texts, which are counted as they are held",
    "StablehloCase": "it calls graphs, whose operators are measured",
    "StablehloComposite": "graphs that chance makes have no operators: such calls are compiled",
    "StablehloReduceWindow": "chance makes no windows and steps that fit large tensors",
    "StablehloRngBitGenerator": "chance makes no state of two numbers of 64 bits",
    "StablehloScatter": "chance makes no places that fit large tensors",
    "VarHandle": "its result is a number",
    "While": "bodies that chance makes have no operators: such loops are compiled",
}
"""Operators whose kernels never run with large tensors."""


class Peak(TypedDict):
    """By how many bytes the process grew ``beside`` the arrays that were ``counted``, for tensors
    of so many bytes and these shapes.
    """

    beside: int
    counted: int
    tensors: int
    shapes: list[list[int]]


@dataclass
class Kernel:
    """A function that computes an operator, or builds what does, with its places in a table of the
    registry; and whether it did since it was asked to ``watch``.
    """

    cls: type[Op]
    is_native: bool
    function: Callable[..., Any]
    table: dict[Any, Any]
    keys: list[Any] = field(default_factory=list)
    ran: bool = False

    @property
    def signature(self) -> contract.Signature:
        """Element types of its operands."""
        return self.keys[0][1] if isinstance(self.keys[0], tuple) else ()

    @property
    def guarded(self) -> list[int]:
        """Places of its kinds among those that tests.guard runs."""
        same = enumerate(cases.different()) if self.is_native else ()
        return [place for place, kind in same if kind in self.keys]

    @property
    def code(self) -> object:
        """Code of the function, which may compute several operators."""
        return self.function.__code__

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Have the operator run by it where that can be."""

        @wraps(self.function)
        def run(*args: Any) -> Any:
            result = self.function(*args)
            self.ran = self.ran or result is not None
            return result

        kept = dict(registry._NATIVE)
        if not self.is_native:
            registry._NATIVE.clear()
        self.table.update(dict.fromkeys(self.keys, run))
        yield
        self.table.update(dict.fromkeys(self.keys, self.function))
        registry._NATIVE.update(kept)


def kernels() -> list[Kernel]:
    """List all that are registered, compiled or not."""
    discovery.load_kernels()
    found: dict[Any, Kernel] = {}
    for table in (registry._REFERENCE, registry._NATIVE, registry._STATEFUL):
        for key, function in table.items():
            cls = key[0] if isinstance(key, tuple) else key
            if not hasattr(cls, "code"):
                continue  # of plans alone: no model has it
            new = Kernel(cls, table is registry._NATIVE, function, table)
            found.setdefault((cls, function), new).keys.append(key)
    return list(found.values())


def measured(kernel: Kernel) -> Iterator[Peak]:
    """Measure the peaks of large models."""
    known: list[list[list[int]]] = []
    for rng, model in _large(kernel):
        shapes = [list(v.dims) for v in model.graph.values]
        if shapes not in known:
            known.append(shapes)
            kernel.ran = False
            grown = _grown(kernel, model, rng)
            if grown is not None and kernel.ran:
                tensors = sum(map(_bytes, model.graph.values))
                yield Peak(beside=grown[0], counted=grown[1], tensors=tensors, shapes=shapes)


def _grown(kernel: Kernel, model: Model, rng: Rng) -> tuple[int, int] | None:
    """The growth, and what was counted; nothing where it does not run, or not in time. First runs
    import modules and have libraries take what they keep: the least counts of those until one does
    not seem to take much.
    """
    try:
        with nullcontext() if kernel.is_native else _hurried():
            found = _growth(kernel, model, rng)
            for _ in range(RUNS - 1):
                if found is not None and found[0] >= UNCOUNTED:
                    found = min(found, _growth(kernel, model, rng) or found)
            return found
    except (LucioleError, TimeoutError):
        return None


@contextmanager
def _hurried() -> Iterator[None]:
    """Raise TimeoutError where SECONDS are over."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _bytes(value: Value) -> int:
    return prod(value.dims) * STORED[value.dtype].itemsize if value.dtype in STORED else 0


def _large(kernel: Kernel) -> Iterator[tuple[Rng, Model]]:
    for seed in range(FEW_SEEDS if kernel.cls.__name__ in UNMEASURED else SEEDS):
        rng = np.random.default_rng([seed, int(kernel.cls.code) & 0xFFFF])
        for model in _small(kernel, rng, seed):
            # NumPy computes a long last axis at once, a long first one may be so many steps
            longer = enlarged(rng, model, ELEMENTS, last_first=not kernel.is_native)
            for larger in islice(longer, 2 * MODELS):
                yield rng, larger


def _small(kernel: Kernel, rng: Rng, seed: int) -> list[Model]:
    signature = kernel.signature
    if seed == 0:
        rare = examples(kernel.cls, next(iter(signature), TensorType.FLOAT32))
        if rare:
            return rare
        if kernel.guarded:
            return [cases.make(GUARDED, cases.PER_MODEL * n).model for n in kernel.guarded[:1]]
    model, is_sound = alone(kernel.cls, signature, Sizes(rng))
    return [model] if is_sound else []


class _Touched(Allocator):
    """Memory that the process has from when it is counted."""

    def zeros(self, size: int) -> Bytes:
        """Take zeroed bytes, all of them written."""
        place = super().zeros(size)
        place[...] = 0
        return place


def _growth(kernel: Kernel, model: Model, rng: Rng) -> tuple[int, int] | None:
    """The growth and the count of a run, or nothing where the plan has no such compiled kernel."""
    gc.collect()
    interpreter = Interpreter(model, memory_limit=LIMIT)
    before = _now()
    interpreter.allocate_tensors()
    if kernel.is_native and not kernel.ran:
        return None
    planned = _highest()
    for number, value in enumerate(interpreter.graph.values):
        if value.is_input and value.dtype != TensorType.STRING:  # texts are counted by themselves
            _fill(interpreter.tensor(number)(), rng)
    _now()
    interpreter.invoke()
    counted = interpreter._caller.meter.highest
    return max(planned, _highest()) - before - counted, counted


def _fill(place: Array, rng: Rng) -> None:
    """Random numbers, without as much memory again."""
    flat = place.reshape(-1)
    for begin in range(0, len(flat), 4096):
        part = flat[begin : begin + 4096]
        part[...] = contents(rng, part.shape, part.dtype)


def _now() -> int:
    """Bytes that the process has; the highest number begins here."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _highest() -> int:
    return _status("VmHWM")


def _status(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) << 10


def _hungry(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that makes numbers of Python's of its operands, or a builder that does."""

    def run(op: Op, *given: Any) -> Any:
        arrays = given[0].operands if isinstance(given[0], contract.Context) else given
        kept = [array.tolist() for array in arrays if array is not None]
        return function(op, *given) if kept else None

    return run


def main() -> None:
    """Measure kernels."""
    wanted = sys.argv[1:]
    built: set[object] = set()
    use(_Touched())
    backwards = reversed(kernels())  # tests.guard, beside it, comes from the other end
    for kernel in sorted(backwards, key=lambda kernel: not kernel.guarded):
        name = kernel.cls.__name__
        if name not in wanted if wanted else kernel.is_native and kernel.code in built:
            continue
        if HUNGRY in wanted:
            kernel.function = _hungry(kernel.function)
        gc.collect()
        gc.freeze()  # what there is by now is not looked through again for every model
        with kernel.watched():
            peaks = list(islice(measured(kernel), MODELS))
        if peaks:
            built.add(kernel.code)
        types = " x ".join(t.name for t in kernel.signature)
        print(json.dumps([f"{name} of {types}", kernel.is_native, peaks]), flush=True)


if __name__ == "__main__":
    main()
