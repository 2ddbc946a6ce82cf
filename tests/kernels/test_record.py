"""Records by name: laid out once, written by builders, read and written by compiled loops."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.kernels import jit
from luciole.kernels.jit.record import Record, reader, table


class Job(Record):
    """A row of a table."""

    start: int
    share: float


class Sum(Record):
    """What the kernel below is told."""

    jobs: int
    begin: int
    end: int
    factor: float
    total: int


job_at = reader(Job)


@jit.kernel
def add_jobs(r: Sum) -> None:
    """Add up the jobs from ``begin`` to before ``end``."""
    for number in range(r.begin, r.end):
        job = job_at(r.jobs, number)
        r.total += int(r.factor * job.share) + job.start


def run(words: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    jit.caller(np.array([[add_jobs.address, words.ctypes.data]], np.int64))()


def test_a_compiled_loop_reads_and_writes_fields_by_name() -> None:
    jobs = table([Job(start=100 * i, share=i + 0.5) for i in range(4)])
    record = Sum(jobs=jobs.ctypes.data, begin=1, end=4, factor=2.0, total=7)
    words = record.words()
    run(words)
    assert words[Sum.place("total")] == 7 + (3 + 5 + 7) + (100 + 200 + 300)


def test_every_field_is_one_word_and_floats_are_its_first_half() -> None:
    words = Job(start=-1, share=1.5).words()
    assert words.shape == (2,)
    assert words[0] == -1
    assert words[1:].view(np.float32)[0] == 1.5


def test_a_table_may_be_empty() -> None:
    assert table([], Job).shape == (0, 2)


def test_replaced_fields_change_in_the_copy_alone() -> None:
    first = Sum(jobs=0, begin=0, end=8, factor=1.0, total=0)
    half = first.replace(end=4)
    assert (first.end, half.end, half.factor) == (8, 4, 1.0)


def test_fields_of_a_base_class_come_first() -> None:
    class Longer(Job):
        count: int

    assert [Longer.place(n) for n in ("start", "share", "count")] == [0, 1, 2]


def test_a_record_refuses_unknown_and_missing_fields() -> None:
    with pytest.raises(TypeError, match="Job: share, wrong is unknown or missing"):
        Job(start=1, wrong=2)  # type: ignore[call-arg]  # that is the point


def test_a_record_refuses_a_field_of_another_kind() -> None:
    with pytest.raises(TypeError, match=r"Odd\.name is str: int and float are possible"):

        class Odd(Record):
            name: str
