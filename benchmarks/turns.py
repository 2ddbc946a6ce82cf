"""The process that runs models with the luciole of one checkout, and times a turn when asked.

    PYTHONPATH=CHECKOUT python3 -P benchmarks/turns.py FILE ...

``benchmarks.beside`` starts two. It needs only luciole's public names, since the checkout may be
old, and nothing of ``benchmarks``. The first line that it writes is a JSON object: the folder that
luciole was imported from, and for each file a digest of its results on random inputs, or why it
does not run. Then it answers each line, the number of a file, by a line with microseconds a run.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import luciole

UNTIMED_NS, TURN_NS, SAMPLE_NS = 2_000_000, 8_000_000, 100_000
"""How long a turn runs untimed and timed, and how long a sample takes at the least."""

LARGEST_INTEGER = 100
"""Random integers of inputs go from 0 to it."""


def opened(path: str) -> tuple[Callable[[], Any], str]:
    """Load a model, run it once on random inputs; its run, and a digest of its results."""
    interpreter = luciole.Interpreter(path)
    interpreter.allocate_tensors()
    rng = np.random.default_rng(0)
    for detail in interpreter.get_input_details():
        dtype, shape = np.dtype(detail["dtype"]), tuple(detail["shape"])
        floats = dtype.kind == "f"
        x = rng.normal(size=shape) if floats else rng.integers(0, LARGEST_INTEGER, shape)
        interpreter.set_tensor(detail["index"], x.astype(dtype))
    interpreter.invoke()
    digest = hashlib.sha256()
    for detail in interpreter.get_output_details():
        digest.update(np.ascontiguousarray(interpreter.get_tensor(detail["index"])).tobytes())
    return interpreter.invoke, digest.hexdigest()


def turn(call: Callable[[], Any]) -> float:
    """Run a call until caches hold what it reads, then time it: the median of samples, in
    microseconds for a run.
    """
    begun, runs = time.perf_counter_ns(), 0
    while not runs or time.perf_counter_ns() - begun < UNTIMED_NS:
        call()
        runs += 1
    each = (time.perf_counter_ns() - begun) / runs
    size = max(1, round(SAMPLE_NS / each))
    samples = []
    begun = before = time.perf_counter_ns()
    while before - begun < TURN_NS:
        for _ in range(size):
            call()
        now = time.perf_counter_ns()
        samples.append((now - before) / size / 1000)
        before = now
    return statistics.median(samples)


def main(files: Sequence[str]) -> None:
    """Open the files, then answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not get among the answers
    calls, digests, refusals = [], [], []
    for path in files:
        call, digest, refusal = None, "", ""
        try:
            call, digest = opened(path)
        except Exception as error:  # whatever an old checkout raises
            refusal = f"{type(error).__name__}: {error}".splitlines()[0]
        calls.append(call)
        digests.append(digest)
        refusals.append(refusal)
    gc.collect()
    gc.disable()
    folder = str(Path(luciole.__file__ or "").parent.parent)
    print(json.dumps({"luciole": folder, "digests": digests, "refusals": refusals}), file=answers)
    answers.flush()
    for request in sys.stdin:
        call = calls[int(request)]
        assert call is not None, "files that do not run are not asked for"
        print(turn(call), file=answers, flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        main(sys.argv[1:])
