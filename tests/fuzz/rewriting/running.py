"""Runs networks in processes of their own: what ends one of them is a finding."""

from __future__ import annotations

import multiprocessing
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from tests.fuzz.rewriting import networks, put_back
from tests.fuzz.rewriting.cases import NAMES, Case, Ends, Finding

SECONDS = 1800
"""For one network, however busy the machine."""


_Answer = tuple[list[Finding], Ends, Counter[str]]
"""What a process says of a network."""


@dataclass(frozen=True)
class Work:
    """Whose networks are rewritten, how, and with which repaired fault put back."""

    seed: int = 0
    only: tuple[str, ...] = NAMES
    share: float = 1.0
    fault: int | None = None


@dataclass
class Result:
    """What was found, and how often each scheme and job ended how."""

    findings: list[Finding] = field(default_factory=list)
    ends: Ends = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)


@dataclass
class _Worker:
    """A process, the networks that are left to it, and where it says what it saw."""

    process: BaseProcess
    left: list[int]
    answers: Connection


def run(work: Work, numbers: Sequence[int], workers: int, say: Callable[[str], None]) -> Result:
    """Run networks of all numbers, shared by some processes; say each finding in a line."""
    result = Result()
    shares = [list(numbers[place::workers]) for place in range(workers)]
    running = [_begun(work, share) for share in shares if share]
    while running:
        ready = wait([worker.answers for worker in running])
        for worker in [w for w in running if w.answers in ready]:
            if not _collect(work, worker, result, say):
                running.remove(worker)
                running += [_begun(work, worker.left)] if worker.left else []
    return result


def _collect(work: Work, worker: _Worker, result: Result, say: Callable[[str], None]) -> bool:
    """Take what a process says of its next network; False where it has ended."""
    try:
        answer = worker.answers.recv()
    except EOFError:
        worker.process.join()
        if not worker.left:
            return False
        code = worker.process.exitcode or 0
        why = "took too long" if code == -signal.SIGALRM else f"ended the process: {code}"
        finding = Finding(worker.left[0], ("all", "all"), "process", why)
        _note(work, worker, ([finding], Counter(), Counter()), result, say)
        return False
    _note(work, worker, answer, result, say)
    return True


def _note(
    work: Work,
    worker: _Worker,
    answer: _Answer,
    result: Result,
    say: Callable[[str], None],
) -> None:
    findings, ends, seconds = answer
    number = worker.left.pop(0)
    what = networks.network(work.seed, number).what if findings else ""
    for finding in findings:
        say(f"{number}: {what}: {finding}")
    result.findings += findings
    result.ends += ends
    result.seconds += seconds


def _begun(work: Work, numbers: list[int]) -> _Worker:
    """Start a process on networks of these numbers."""
    answers, said = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_work, args=(work, numbers, said), daemon=True)
    process.start()
    said.close()
    return _Worker(process, list(numbers), answers)


def _work(work: Work, numbers: Sequence[int], said: Connection) -> None:
    with put_back.fault(work.fault):
        for number in numbers:
            signal.alarm(SECONDS)
            case = Case(work.seed, number, work.only, work.share)
            case.run()
            said.send((case.findings, case.ends, case.seconds))
    signal.alarm(0)
