"""One case: a model that may be damaged, and what must hold for it."""

from __future__ import annotations

import resource
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from luciole.exporters import to_bytes
from luciole.importers.circle.model import import_model
from luciole.importers.imported import Imported
from luciole.interpreter import Interpreter
from luciole.ir import Array, LucioleError, Model
from luciole.ir.findings import Finding
from luciole.ir.op import SLIP
from luciole.ir.strings import OBJECTS
from luciole.ir.text.listing import dump_lines
from luciole.schema.dialect import CIRCLE
from luciole.schema.reader import read
from luciole.schema.writer import write
from tests.fuzz.compiled import Compared
from tests.fuzz.dress import dressed
from tests.fuzz.models import contents, kinds, random_model
from tests.fuzz.mutations import Rng, damage_tables, damaged_bytes, hurting, unaligned
from tests.fuzz.programs import BrokenPromiseError, allowed, look

PER_MODEL = 16
"""Cases that start from the same model."""
_SOUND, _TABLES = 3, 11
"""Cases up to which a model is left alone, and up to which its tables are damaged."""
MEMORY_LIMIT = 1 << 20
"""Bytes of tensors that a model may ask for."""
LOOP_LIMIT = 100
"""Steps that a WHILE may do."""
_MOST_GROWTH = 256 << 10
"""Kilobytes by which a case may let the process grow."""


@dataclass(frozen=True)
class Case:
    """The bytes of a file, and what was done to it."""

    number: int
    content: bytes
    what: str


def make(seed: int, number: int) -> Case:
    """The case of that number: the same whatever ran before it."""
    kind, base = _base(seed, number // PER_MODEL)
    rng = np.random.default_rng([seed, 1, number])
    place = number % PER_MODEL
    if place == 1:
        return Case(number, unaligned(base), f"{kind}, constants at odd bytes")
    if place < _SOUND:
        return Case(number, base, f"{kind}, as it is")
    if place >= _TABLES:
        return Case(number, damaged_bytes(rng, base), f"{kind}, damaged bytes")
    root, _ = read(base)
    what = damage_tables(rng, root)
    try:
        return Case(number, write(root, CIRCLE), f"{kind}, {what}")
    except (LucioleError, struct.error, TypeError, ValueError, OverflowError, AttributeError):
        return Case(number, damaged_bytes(rng, base), f"{kind}, damaged bytes")


@lru_cache(2)
def _base(seed: int, block: int) -> tuple[str, bytes]:
    rng = np.random.default_rng([seed, 0, block])
    classes = sorted({cls for cls, _ in kinds()}, key=lambda cls: int(cls.code))
    cls = classes[block % len(classes)]
    signatures = [s for other, s in kinds() if other is cls]
    signature = signatures[int(rng.integers(len(signatures)))]
    model, is_sound = random_model(rng, cls, signature)
    model = dressed(rng, model) if is_sound else model
    types = " x ".join(t.name for t in signature)
    return f"{'' if is_sound else 'unsound '}{cls.__name__} of {types}", to_bytes(
        model, check=False
    )


def run(case: Case, seed: int) -> str:
    """Read, look at, run twice, write and read again. Returns how it ended: "ran" or the class of
    the refusal. Raises whatever goes wrong otherwise.
    """
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        end = _run(case.content, np.random.default_rng([seed, 2, case.number]))
    except LucioleError as error:
        _check_refusal(error)
        end = type(error).__name__ + _unclear(error)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if grown > _MOST_GROWTH:
        raise BrokenPromiseError(f"the process grew by {grown >> 10} MB")
    return end


def _check_refusal(error: LucioleError) -> None:
    text = str(error)
    if not text.strip() or "\n" in text.strip():
        raise BrokenPromiseError(f"a refusal has no or several lines: {text!r}") from error
    if "MemoryError" in text:
        raise BrokenPromiseError(f"memory ran out: {text}") from error


def _unclear(error: LucioleError) -> str:
    """What kind of error it was before it became one of ours: the operator should have said why."""
    cause = error.__cause__
    inside = isinstance(cause, Exception) and not isinstance(cause, LucioleError)
    return f" of {str(error).split()[0]} by {type(cause).__name__}" if inside else ""


def _run(content: bytes, rng: Rng) -> str:
    model, findings = import_model(content)
    for line in dump_lines(model, "case"):
        assert "\n" not in line
    _look(rng, content, model, findings)
    unclear = [f.sentence for f in findings if SLIP in f.sentence]
    if unclear:
        raise BrokenPromiseError(unclear[0])
    Imported(model, findings).sound()
    _check_round_trip(model)
    interpreter = Interpreter(model, memory_limit=MEMORY_LIMIT, loop_limit=LOOP_LIMIT)
    interpreter.allocate_tensors()
    _run_twice(interpreter, rng)
    while rng.random() < 0.5:
        _resize(interpreter, rng)
        interpreter.allocate_tensors()
        _run_twice(interpreter, rng)
    return "ran"


def _look(rng: Rng, content: bytes, model: Model, findings: Sequence[Finding]) -> None:
    """Let one of the programs that show files show this one, in half of the cases."""
    if rng.random() < 0.5:
        try:
            look(rng, content, model, findings)
        except LucioleError as error:
            _check_refusal(error)
            if not allowed(error, model):
                raise BrokenPromiseError(f"a program refuses to show: {error}") from error


def _run_twice(interpreter: Interpreter, rng: Rng) -> None:
    """Run on random numbers, and again to see that the same comes out; in half of the cases once
    more with every compiled kernel compared with NumPy's.
    """
    _feed(interpreter, rng)
    interpreter.invoke()
    first = _outputs(interpreter)
    interpreter.invoke()
    _check_same(interpreter.model, first, _outputs(interpreter))
    if rng.random() < 0.5:
        _check_same(interpreter.model, first, _with_all_tensors_kept(interpreter))


def _resize(interpreter: Interpreter, rng: Rng) -> None:
    """Give inputs other shapes: one extent changed, or the rank."""
    for detail in interpreter.get_input_details():
        shape = [int(n) for n in detail["shape"]]
        if shape and rng.random() < 0.8:
            shape[int(rng.integers(len(shape)))] = int(rng.choice([0, 1, 2, 3, 7, 16, 33]))
        elif rng.random() < 0.2:
            shape.append(2)
        interpreter.resize_tensor_input(detail["index"], shape)


def _with_all_tensors_kept(interpreter: Interpreter) -> list[Array]:
    """The outputs of a run in which no tensor takes another one's place, step by step, every
    compiled one compared with NumPy.
    """
    other = Interpreter(
        interpreter.model,
        memory_limit=16 * MEMORY_LIMIT,
        loop_limit=LOOP_LIMIT,
        keep_tensors=True,
    )
    for detail in interpreter.get_input_details():
        other.resize_tensor_input(detail["index"], detail["shape"])
    other.allocate_tensors()
    compared = Compared(other.plan)
    other.attach_observer(compared)
    for number, value in enumerate(interpreter.graph.values):
        if value.is_input and not value.is_variable:
            other.set_tensor(number, interpreter.get_tensor(number))
    other.invoke()
    if compared.differences:
        raise BrokenPromiseError(compared.differences[0])
    return _outputs(other)


def _check_round_trip(model: Model) -> None:
    try:
        once = to_bytes(model, check=False)
    except LucioleError:
        return  # what a format cannot hold is refused
    again, findings = import_model(once)
    Imported(again, findings).sound()
    if to_bytes(again, check=False) != once:
        raise BrokenPromiseError("a file that was written, read and written again is another one")


def _feed(interpreter: Interpreter, rng: Rng) -> None:
    """Ordinary numbers, with some that hurt among them in half of the cases."""
    hurts = rng.random() < 0.5
    for number, value in enumerate(interpreter.graph.values):
        if not value.is_input or value.is_variable:
            continue
        place = interpreter.tensor(number)()
        array = contents(rng, place.shape, place.dtype)
        if hurts and array.size:
            array = np.array(array)
            for _ in range(int(rng.integers(1, 4))):
                array.reshape(-1)[int(rng.integers(array.size))] = hurting(rng, array.dtype)
        interpreter.set_tensor(number, array)


def _outputs(interpreter: Interpreter) -> list[Array]:
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def _check_same(model: Model, first: Sequence[Array], second: Sequence[Array]) -> None:
    """A model without state computes the same from the same, bit by bit."""
    ops = [op for graph in model.graphs for op in graph.ops]
    state = any(v.is_variable for graph in model.graphs for v in graph.values)
    if state or any(op.stateful or "RANDOM" in op.kind or "MULTINOMIAL" in op.kind for op in ops):
        return
    for a, b in zip(first, second, strict=True):
        same = a.tolist() == b.tolist() if a.dtype == OBJECTS else a.tobytes() == b.tobytes()
        if a.shape != b.shape or not same:
            raise BrokenPromiseError(f"another run gave {_short(b)} instead of {_short(a)}")


def _short(array: Array) -> Any:
    return array.ravel()[:8].tolist()
