"""A process that runs cases one after the other. What kills it is the parent's finding."""

from __future__ import annotations

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

from tests.fuzz import cases
from tests.fuzz.models import kinds

ROOM = 2 << 30
"""Bytes of address space beyond what the process has when it begins."""


def main() -> None:
    """Arguments: seed, first case, end, step, seconds for a case, and the file that holds the
    number of the case that runs. Prints a line of JSON for every case.
    """
    seed, first, end, step = map(int, sys.argv[1:5])
    seconds, place = float(sys.argv[5]), Path(sys.argv[6])
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # also while compiled code runs
    kinds()
    prepare()
    with place.open("r+b") as file, mmap.mmap(file.fileno(), 8) as shared:
        for number in _numbers(first, end, step):
            shared[:] = struct.pack("<q", number)
            signal.setitimer(signal.ITIMER_REAL, seconds)
            print(json.dumps(_try(seed, number)), flush=True)
    signal.setitimer(signal.ITIMER_REAL, 0)


def _numbers(first: int, end: int, step: int) -> list[int]:
    """Cases of every ``step``-th model, so that several workers share them."""
    block = first // cases.PER_MODEL
    return [n for n in range(first, end) if (n // cases.PER_MODEL - block) % step == 0]


def prepare() -> None:
    """Take warnings for errors, and so much more memory and no more: a hungry case must not stop
    the machine.
    """
    warnings.simplefilter("error")
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))


def _try(seed: int, number: int) -> Mapping[str, str | int]:
    """How a case ended, and where that is a finding, what was found."""
    case = cases.Case(number, b"", "being made")
    try:
        case = cases.make(seed, number)
        return {"end": cases.run(case, seed)}
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        said = f"{type(error).__name__}: {str(error)[:300]}"
        found = {"what": case.what, "where": where, "said": said}
        return {"end": "finding", "case": number, **found}


if __name__ == "__main__":
    main()
