"""A process that runs cases one after the other. What kills it is the parent's finding."""

from __future__ import annotations

import gc
import importlib
import json
import mmap
import resource
import signal
import struct
import sys
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path

from tests.fuzz.models import kinds
from tests.fuzz.subjects import Subject
from tests.guard.memory import watch

WAITING = 12
"""Seconds of waiting, for each that a case may compute."""

ROOM = 2 << 30
"""Bytes of address space beyond what the process has when it begins."""


def main() -> None:
    """Arguments: the module that cases are of, where a guard stands or nothing, seed, first case,
    end, step, seconds for a case, and the file that holds the number of the case that runs. Prints
    a line of JSON for every case.
    """
    source, end_of_arrays = sys.argv[1:3]
    seed, first, end, step = map(int, sys.argv[3:7])
    seconds, place = float(sys.argv[7]), Path(sys.argv[8])
    cases: Subject = importlib.import_module(source)
    if end_of_arrays:
        watch(end_of_arrays)
    for kind in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(kind, signal.SIG_DFL)  # also while compiled code runs
    kinds()
    gc.collect()
    gc.freeze()  # what there is by now is not looked through again for every case
    prepare()
    with place.open("r+b") as file, mmap.mmap(file.fileno(), 8) as shared:
        for number in _numbers(first, end, step, cases.PER_MODEL):
            shared[:] = struct.pack("<q", number)
            _limit(seconds)
            print(json.dumps(_try(cases, seed, number)), flush=True)
    _limit(0)


def _limit(seconds: float) -> None:
    """Let the process end after so many seconds of computing, or when it has waited far longer: a
    machine that others use is not a finding.
    """
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, WAITING * seconds)


def _numbers(first: int, end: int, step: int, per_model: int) -> list[int]:
    """Cases of every ``step``-th model, so that several workers share them."""
    block = first // per_model
    return [n for n in range(first, end) if (n // per_model - block) % step == 0]


def prepare() -> None:
    """Take warnings for errors, and so much more memory and no more: a hungry case must not stop
    the machine.
    """
    warnings.simplefilter("error")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))


def _try(cases: Subject, seed: int, number: int) -> Mapping[str, str | int]:
    """How a case ended, and where that is a finding, what was found."""
    what = "being made"
    try:
        case = cases.make(seed, number)
        what = case.what
        return {"end": cases.run(case, seed)}
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        said = f"{type(error).__name__}: {str(error)[:300]}"
        found = {"what": what, "where": where, "said": said}
        return {"end": "finding", "case": number, **found}


if __name__ == "__main__":
    main()
