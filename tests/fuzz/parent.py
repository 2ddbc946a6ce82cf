"""Starts workers again where they end, and collects what they found."""

from __future__ import annotations

import json
import signal
import struct
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz import cases
from tests.fuzz.subjects import Subject

SECONDS = 5.0
"""Of computing, for one case."""
TOO_LONG = (-signal.SIGPROF, -signal.SIGALRM)
"""What a process answers that computed, or waited, longer than it may."""
_COMPILING = 120.0
"""For a case whose kernels must be compiled first."""


@dataclass
class Result:
    """How many cases ended how, and what must not be."""

    ends: Counter[str] = field(default_factory=Counter)
    findings: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Work:
    """Whose cases workers run, from which seed, at which end of arrays a guard stands, and how many
    seconds each may compute.
    """

    seed: int
    source: Subject = cases
    guard: str | None = None
    seconds: float = field(default_factory=lambda: SECONDS)


def fuzz(work: Work, first: int, end: int, workers: int = 1) -> Result:
    """Run cases ``first`` to ``end`` - 1, shared by some processes."""
    results = [Result() for _ in range(workers)]
    size = work.source.PER_MODEL
    starts = [first, *((first // size + i) * size for i in range(1, workers))]
    threads = [
        threading.Thread(target=_share, args=(work, start, end, workers, result))
        for start, result in zip(starts, results, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    total = Result()
    for result in results:
        total.ends += result.ends
        total.findings += result.findings
    return total


def _share(work: Work, first: int, end: int, step: int, result: Result) -> None:
    """Go on behind the case that ended a worker."""
    while first < end:
        died = _worker(work, first, end, step, work.seconds, result)
        if died is None:
            return
        case, why = died
        if why in TOO_LONG and _was_compiling(work, case):
            first = case
            continue
        if why > 0:
            result.findings.append({"case": case, "what": "no case", "said": "no worker starts"})
            return
        said = "it ran too long" if why in TOO_LONG else f"signal {-why} ended it"
        result.findings.append({"case": case, "what": _what(work, case), "said": said})
        result.ends["finding"] += 1
        first = _behind(case, step, work.source.PER_MODEL)


def _behind(case: int, step: int, size: int) -> int:
    """The next case of a share of every ``step``-th model of so many."""
    return case + 1 if (case + 1) % size else case + 1 + (step - 1) * size


def _was_compiling(work: Work, case: int) -> bool:
    """Whether the case is quick once everything is compiled."""
    ignored = Result()
    slow = _worker(work, case, case + 1, 1, _COMPILING, ignored)
    return slow is None and _worker(work, case, case + 1, 1, work.seconds, ignored) is None


def _worker(
    work: Work, first: int, end: int, step: int, seconds: float, result: Result
) -> tuple[int, int] | None:
    """Run a worker to its end; the case and the process's answer where it came too early."""
    with tempfile.NamedTemporaryFile() as place:
        place.write(struct.pack("<q", first))
        place.flush()
        numbers = [str(n) for n in (work.seed, first, end, step, seconds)]
        source = [work.source.__name__, work.guard or ""]
        command = [sys.executable, "-m", "tests.fuzz.worker", *source, *numbers, place.name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=_ROOT, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                _collect(json.loads(line), result)
        case = struct.unpack("<q", Path(place.name).read_bytes()[:8])[0]
    return None if process.returncode == 0 else (case, process.returncode)


def _collect(said: dict[str, Any], result: Result) -> None:
    result.ends[said["end"]] += 1
    if "case" in said:
        result.findings.append(said)


def _what(work: Work, case: int) -> str:
    try:
        return str(work.source.make(work.seed, case).what)
    except Exception as error:
        return f"cannot be made: {error}"


_ROOT = Path(__file__).parents[2]
