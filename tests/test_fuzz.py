"""Random and damaged models, see ``python -m tests.fuzz``; and that the fuzzer would notice."""

from __future__ import annotations

import signal

import numpy as np
import pytest

from luciole.interpreter import Interpreter, compile_graph
from luciole.ir import OPS, LucioleError, Model, Op
from luciole.ir.fields import INDEX
from luciole.ir.ops.dynamic_update_slice import DynamicUpdateSlice
from luciole.ir.ops.gather import Gather
from luciole.kernels.core import registry
from tests.fuzz import cases, parent, subjects
from tests.fuzz.data import common
from tests.fuzz.models import alone, kinds, random_model
from tests.fuzz.programs import BrokenPromiseError
from tests.fuzz.shapes import Sizes
from tests.guard.memory import ENDS

CASES = 160
REWRITTEN = 144
GUARDED = 80
BEHIND = 1200
SEED = 1
WITH_INDICES = sorted(
    {
        cls
        for kind, cls, _ in registry.registered()
        if kind == "native" and any(f.dtypes == INDEX for f in cls.operand_fields())
        # whose kernels check or limit each: tests/ops/test_compiled_integers.py
        if cls not in (Gather, DynamicUpdateSlice)
    },
    key=lambda cls: cls.__name__,
)


def test_random_and_damaged_models_are_refused_or_run() -> None:
    result = parent.fuzz(parent.Work(SEED), 0, CASES)
    assert [f"--only {f['case']}: {f['what']}: {f['said']}" for f in result.findings] == []
    assert sum(result.ends.values()) == CASES
    assert min(result.ends[end] for end in ("ran", "FormatError", "ShapeError")) > CASES / 24


@pytest.mark.parametrize("end", ENDS)
def test_random_and_damaged_models_touch_nothing_outside_of_arrays(end: str) -> None:
    """``--guard``; cases that the test above does not have."""
    result = parent.fuzz(parent.Work(SEED, guard=end), BEHIND, BEHIND + GUARDED)
    assert [f"--only {f['case']}: {f['what']}: {f['said']}" for f in result.findings] == []
    assert sum(result.ends.values()) == GUARDED
    assert result.ends["ran"] > GUARDED / 5


@pytest.mark.parametrize(
    ("subject", "cases"),
    [("npz", 30), ("hdf5", 9), ("lists", 75), ("keras", 16), ("recipes", 100), ("onnx", 36)],
)
def test_damaged_data_are_refused_or_read_within_bounds(subject: str, cases: int) -> None:
    result = parent.fuzz(parent.Work(SEED, subjects.subject(subject)), 0, cases)
    assert [f"--only {f['case']}: {f['what']}: {f['said']}" for f in result.findings] == []
    assert sum(result.ends.values()) == cases
    assert len(result.ends) > 1
    assert max(result.ends.values()) < 0.97 * cases


def test_random_and_damaged_models_are_refused_or_rewritten() -> None:
    result = parent.fuzz(parent.Work(SEED, subjects.subject("rewrite")), 0, REWRITTEN)
    assert [f"--only {f['case']}: {f['what']}: {f['said']}" for f in result.findings] == []
    assert sum(result.ends.values()) == REWRITTEN
    assert min(result.ends["done"], result.ends["QuantizeError"]) > REWRITTEN / 12


def test_a_data_case_is_the_same_every_time() -> None:
    for name in ("npz", "lists", "recipes"):
        made = subjects.subject(name)
        first = [made.make(SEED, n) for n in (3, 8, 3)]
        assert first[0] == first[2] != first[1]
        assert first[1] == made.make(SEED, 8)


def test_a_library_that_does_not_survive_a_file_that_it_makes_leaves_a_case_without_one() -> None:
    def crash() -> tuple[bytes, str]:
        signal.raise_signal(signal.SIGKILL)
        return b"never", "made"

    assert common.made_apart(crash) == (b"", "not made")
    assert common.made_apart(lambda: (b"a\nb", "lines")) == (b"a\nb", "lines")


def test_a_case_refuses_memory_beyond_what_is_asked_for() -> None:
    with common.promised(0):
        pass
    hungry = common.MOST_GROWTH + (64 << 20)
    with pytest.raises(BrokenPromiseError, match="the process grew by"), common.promised(0):
        np.ones(hungry, np.uint8)


@pytest.mark.parametrize("text", ["", "MemoryError: unable to allocate", "x" * 5000])
def test_a_data_case_refuses_a_refusal_that_is_no_sentence(text: str) -> None:
    with pytest.raises(BrokenPromiseError):
        common.check_refusal(LucioleError(text))


def test_most_operators_have_sound_random_models() -> None:
    """A class that is missing wants hints in ``tests/fuzz/shapes.py``."""
    rng = np.random.default_rng(0)
    sound: set[type[Op]] = set()
    for cls, signature in kinds() * 2:
        if cls not in sound and alone(cls, signature, Sizes(rng))[1]:
            sound.add(cls)
    assert len(sound) > 0.95 * len(OPS), sorted(c.__name__ for c in set(OPS.values()) - sound)


def made_of(cls: type[Op]) -> Model:
    """A sound model of an operator whose indices are the caller's, not constants."""
    signatures = [s for other, s in kinds() if other is cls]
    for seed in range(100):
        model, is_sound = random_model(np.random.default_rng(seed), cls, signatures[0])
        pairs = zip(model.graph.ops[0].operands, cls.operand_fields(), strict=False)
        values = {v for v, f in pairs if v is not None and f.dtypes == INDEX and v.is_constant}
        is_single = is_sound and len(model.graph.ops) == 1
        if is_single and any(v.data is not None and v.data.size for v in values):
            for value in values:
                value.buffer = None
                model.graph.inputs.append(value)
            return model
    raise AssertionError(f"no model of {cls.__name__}")


@pytest.mark.parametrize("cls", WITH_INDICES, ids=lambda cls: cls.__name__)
def test_compiled_kernels_refuse_indices_that_are_computed(cls: type[Op]) -> None:
    """They trust what was checked when they were built: the reference runs, and checks."""
    graph = made_of(cls).graph
    plan = compile_graph(graph, {v: v.dims for v in graph.inputs})
    assert [step.native for step in plan.steps if not step.nothing_to_do] in ([None], [])


# ------------------------------------------------------------------- the fuzzer itself
def test_a_case_is_the_same_every_time() -> None:
    first = [cases.make(SEED, n) for n in (0, 5, 21, 30, 5)]
    again = [cases.make(SEED, n) for n in (30, 5, 0, 21, 5)]
    assert first[1] == first[4] == again[1]
    assert sorted(c.number for c in first) == sorted(c.number for c in again)
    assert {c.number: c.content for c in first} == {c.number: c.content for c in again}


def ran() -> int:
    """The number of a case that runs."""
    return next(n for n in range(0, 1600, 16) if cases.run(cases.make(SEED, n), SEED) == "ran")


def test_a_case_refuses_an_error_of_another_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    case = cases.make(SEED, ran())

    def fail(self: Interpreter) -> None:
        raise KeyError("something")

    monkeypatch.setattr(Interpreter, "invoke", fail)
    with pytest.raises(KeyError):
        cases.run(case, SEED)


@pytest.mark.parametrize("text", ["", "MemoryError: unable to allocate"])
def test_a_case_refuses_a_refusal_that_says_too_little(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    case = cases.make(SEED, ran())

    def fail(self: Interpreter) -> None:
        raise LucioleError(text)

    monkeypatch.setattr(Interpreter, "allocate_tensors", fail)
    with pytest.raises(BrokenPromiseError):
        cases.run(case, SEED)


def test_a_worker_that_is_killed_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent, "SECONDS", 1e-6)
    result = parent.fuzz(parent.Work(SEED), 7, 8)
    assert [(f["case"], f["said"]) for f in result.findings] == [(7, "it ran too long")]
