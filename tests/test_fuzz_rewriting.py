"""Random networks by every scheme, see ``tests.fuzz.rewriting``, and faults that are put back."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pytest

from luciole.interpreter import Interpreter
from luciole.ir.minifloat import Minifloat
from tests.fuzz.rewriting import judging, networks, plainly, put_back
from tests.fuzz.rewriting.cases import Case
from tests.fuzz.rewriting.running import Result, Work, run

NETWORKS = (0, 1, 3, 4, 5, 6, 8, 9, 10)
"""Small ones of every kind: images, sequences, vectors and words."""
SHARE = 0.3
"""Of the schemes of each network."""

FOUND_BY = {
    1: (6, "int8", "far from simulation"),
    2: (18, "int8", "does not run"),
    3: (13, "int8", "refused for nothing"),
    5: (0, "weights", "worse than even channels"),
    8: (5, "NaN", "differs"),
}
"""A network, a scheme or job, and the kind of the finding for each fault that was repaired."""


def rewritten(numbers: Sequence[int], work: Work) -> Result:
    return run(work, numbers, 1, print)


def test_random_networks_are_rewritten_soundly() -> None:
    result = rewritten(NETWORKS, Work(share=SHARE))
    assert list(map(str, result.findings)) == []
    ran = {name: count for (name, end), count in result.ends.items() if end == "ran"}
    assert min(ran[name] for name in ("int8", "weights", "learned", "simulate", "ONNX")) > 2
    assert ran["C"] > 0


@pytest.mark.parametrize("number", FOUND_BY)
def test_a_fault_that_is_put_back_is_found(number: int) -> None:
    case, job, kind = FOUND_BY[number]
    sound = Case(0, case, (job,))
    sound.run()
    assert sound.findings == []
    with put_back.fault(number):
        wrong = Case(0, case, (job,))
        wrong.run()
    assert kind in {finding.kind for finding in wrong.findings}


def test_every_fault_has_a_network_that_shows_it() -> None:
    assert FOUND_BY.keys() == put_back.FAULTS.keys()


def test_a_network_is_the_same_every_time() -> None:
    first, again = (networks.network(3, 7) for _ in range(2))
    assert first.what == again.what
    assert [op.kind for op in first.model.graph.ops] == [op.kind for op in again.model.graph.ops]
    for name, array in first.records.items():
        np.testing.assert_array_equal(array, again.records[name])
    assert networks.network(3, 8).what != first.what


def test_what_ends_a_process_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Case, "run", lambda self: os._exit(3) if self.number == 1 else None)
    result = rewritten(range(3), Work())
    assert [(f.number, f.kind, f.said) for f in result.findings] == [
        (1, "process", "ended the process: 3")
    ]


def test_an_exception_of_another_kind_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Interpreter, *_: object) -> None:
        raise KeyError("something")

    case = Case(0, 0, ("float16",))
    assert case.floats
    monkeypatch.setattr(Interpreter, "run", fail)
    case.run()
    assert [(f.kind, f.said[:8]) for f in case.findings] == [("exception", "KeyError")]


# ------------------------------------------------------------------------------------- the judge
def test_errors_are_compared_in_power_beyond_a_step() -> None:
    floats = [np.ones(4)]
    assert not list(judging.beyond([0.4], [0.1], 4, floats, [0.0]))
    assert not list(judging.beyond([0.5], [0.1], 4, floats, [0.4]))
    assert list(judging.beyond([0.5], [0.1], 4, floats, [0.0])) == [
        "output 0 has 3.0 dB instead of 10.0"
    ]
    assert list(judging.beyond([np.nan], [0.1], 4, floats, [0.0]))


def test_outputs_differ_by_steps_or_by_nan() -> None:
    one = [np.array([1.0, np.nan, 3.0])]
    assert not list(judging.unequal(one, [np.array([1.5, np.nan, 3.0])], [0.5]))
    assert list(judging.unequal(one, [np.array([1.6, np.nan, 3.0])], [0.5]))
    assert list(judging.unequal(one, [np.array([1.0, 2.0, 3.0])]))
    assert list(judging.infinite(one, [np.ones(3)]))
    assert not list(judging.infinite(one, one))


@pytest.mark.parametrize(("exponent", "mantissa"), [(3, 2), (4, 3), (5, 7)])
def test_minifloats_of_the_floor_are_those_of_the_format(exponent: int, mantissa: int) -> None:
    x = np.random.default_rng(0).normal(0, 3, 2000).astype(np.float32) ** 3
    ours = Minifloat(exponent, mantissa).round(x)
    np.testing.assert_array_equal(plainly.minifloat(x, exponent, mantissa), ours)


def test_even_steps_hold_both_limits_and_0() -> None:
    rounded = plainly.evenly(np.array([-9, -1, 0, 0.11, 3, 9], np.float32), (-1.0, 2.0), 8)
    step = 3 / 255
    np.testing.assert_allclose(rounded, [-1, -1, 0, 9 * step, 2, 2], atol=1e-6)
