"""Measure runtimes on the same inputs, turn by turn, and how far their outputs are apart."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from luciole.ir import Array
from luciole.ir.strings import OBJECTS, encode
from luciole.tools.bench.ours import Luciole
from luciole.tools.bench.runtime import CrashError, Runtime, translated
from luciole.tools.common.timing import Call, Limits, Timed, Timing, measured

Batch = Sequence[Array]
"""One array for each input, as luciole's model takes them."""


@dataclass
class Gaps:
    """How far a runtime's outputs are from luciole's: over so many ``runs``, ``unequal`` ones
    among them, the ``largest`` distance of two elements, None where they cannot be compared.
    """

    runs: int = 0
    unequal: int = 0
    largest: float | None = 0.0

    def add(self, gap: float | None) -> None:
        """Count the largest distance in one more run."""
        self.runs += 1
        self.unequal += gap != 0
        if gap is None or self.largest is None:
            self.largest = None
        else:
            self.largest = float(np.maximum(self.largest, gap))  # NaN stays

    def __str__(self) -> str:
        if self.largest is None:
            return "other shape"
        if self.runs == 1 or not self.unequal:
            return f"{self.largest:.2g}"
        return f"{self.largest:.2g}, {self.unequal:,} of {self.runs:,} runs"


@dataclass
class Contender:
    """A runtime and its measurements: ``invoke`` alone, and with copying arrays in and out.

    ``outputs`` are those of the first inputs, as numbers. ``top1`` is a share from 0 to 1.
    ``gaps`` are of the first inputs, or of all records where there are some.
    """

    runtime: Runtime
    invoke: Timing
    copies: Timing
    outputs: list[Array]
    checksum: str
    top1: float | None = None
    gaps: Gaps = field(default_factory=Gaps)

    @property
    def bytes(self) -> int:
        """The size of the model's file."""
        files = [self.runtime.path, *self.runtime.path.rglob("*")]
        return sum(file.stat().st_size for file in files if file.is_file())

    def to_json(self, ours: Contender) -> dict[str, Any]:
        """Return the figures of a peer; ratios are its figure divided by ours."""
        return {
            "name": self.runtime.name,
            "runtime": self.runtime.kind or "luciole",
            "file": str(self.runtime.path),
            "bytes": self.bytes,
            "bytes_ratio": self.bytes / ours.bytes,
            **self.invoke.to_json(),
            "ratio": self.invoke.median_us / ours.invoke.median_us,
            "with_copies": {
                **self.copies.to_json(),
                "ratio": self.copies.median_us / ours.copies.median_us,
            },
            "load_ms": sum(p.milliseconds for n, p in self.runtime.phases.items() if n != FIRST),
            "top1": self.top1,
            "checksum": self.checksum,
            "largest_difference": self.gaps.largest,
            "unequal_runs": self.gaps.unequal,
            "compared_runs": self.gaps.runs,
        }


FIRST = "first run"


def contenders(
    ours: Luciole, peers: Sequence[Runtime], batches: Sequence[Batch], limits: Limits
) -> list[Contender]:
    """Time luciole and its peers, who are all fed the next of ``batches`` in every round. Raises
    CrashError for a peer whose process ends.
    """
    runtimes = [ours, *peers]
    fed = [[translated(arrays, ours, r) for arrays in batches] for r in runtimes]
    outputs = [first_run(r, rows[0]) for r, rows in zip(runtimes, fed, strict=True)]
    feeder = _Feeder(runtimes, fed)
    calls = [call for i in range(len(runtimes)) for call in feeder.timed(i)]
    timings = measured(calls, limits, before=feeder.turn)
    pairs = zip(runtimes, timings[::2], timings[1::2], outputs, strict=True)
    timed = [Contender(r, i, c, numbers(r, out), checksum(out)) for r, i, c, out in pairs]
    for contender in timed:
        contender.gaps.add(largest_difference(contender.outputs, timed[0].outputs))
    return timed


class _Feeder:
    """Gives every runtime the same inputs, others in each round."""

    def __init__(self, runtimes: Sequence[Runtime], fed: Sequence[Sequence[Batch]]) -> None:
        self._runtimes = runtimes
        self._fed = fed
        self._current = [list(rows[0]) for rows in fed]

    def turn(self, number: int) -> None:
        """Feed all runtimes the inputs of round ``number``."""
        for runtime, rows, now in zip(self._runtimes, self._fed, self._current, strict=True):
            now[:] = rows[number % len(rows)]
            runtime.feed(now)

    def timed(self, i: int) -> tuple[Call | Timed, Call | Timed]:
        """Make the calls to time of a runtime, on the round's inputs."""
        return self._runtimes[i].timed(self._current[i])


def surviving(
    ours: Luciole,
    peers: Sequence[Runtime],
    batches: Sequence[Batch],
    limits: Limits,
    lost: list[str],
) -> list[Contender]:
    """Time luciole and its peers; of one whose process ends a line is added to ``lost``, and the
    others are timed without it.
    """
    while True:
        try:
            return contenders(ours, peers, batches, limits)
        except CrashError as crash:
            lost.append(str(crash))
            peers = [peer for peer in peers if peer is not crash.runtime]


def first_run(runtime: Runtime, arrays: Batch) -> list[Array]:
    """Feed and run a runtime for the first time; its outputs."""
    runtime.feed(arrays)
    if FIRST in runtime.phases:
        runtime.invoke()
    else:
        with runtime.phases.timed(FIRST):
            runtime.invoke()
    return runtime.fetch()


def checksum(outputs: Sequence[Array]) -> str:
    """Compute the CRC-32 of all outputs' bytes in order, in hexadecimal; of texts those that a file
    has.
    """
    crc = 0
    for array in outputs:
        is_text = array.dtype == OBJECTS
        stored = encode(list(array.flat)) if is_text else np.ascontiguousarray(array)
        crc = zlib.crc32(stored.tobytes(), crc)
    return f"{crc:08x}"


def numbers(runtime: Runtime, outputs: Sequence[Array]) -> list[Array]:
    """Decode a runtime's outputs into numbers."""
    return [port.numbers(a) for port, a in zip(runtime.outputs, outputs, strict=True)]


def largest_difference(results: Sequence[Array], expected: Sequence[Array]) -> float | None:
    """Measure the largest distance between two elements of two models' outputs, 1 between texts
    that are not the same; None where they cannot be compared.
    """
    if not expected or [a.size for a in results] != [a.size for a in expected]:
        return None
    pairs = zip(results, expected, strict=True)
    return max(_gap(a.reshape(-1), b.reshape(-1)) for a, b in pairs)


def _gap(a: Array, b: Array) -> float:
    if OBJECTS in (a.dtype, b.dtype):
        return float(a.tolist() != b.tolist())
    return float(np.abs(a.astype(np.float64) - b).max(initial=0.0))
