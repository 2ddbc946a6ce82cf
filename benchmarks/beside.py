"""How fast this checkout is beside another one: kernels and networks, in processes that take turns.

``python3 -m benchmarks --beside CHECKOUT`` measures and prints it. Both run the same files, which
this checkout writes: networks in float32 and int8 where LUCIOLE_DATA has them, layers of learned
levels, and operators on integers. A pair of processes holds them all, one with the luciole of each
checkout; they run a file in turns, the other one waits. Where a process has its memory decides some
percent of a time, so that several pairs are started: a ratio is the other's time over ours, the
median of the pairs, and counts as slower where every pair says so by more than SLOWER.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.kinds_elements import kinds
from benchmarks.networks import NETWORKS
from luciole.exporters import to_bytes
from luciole.files import write_file
from luciole.ir import LucioleError, Model
from luciole.tools.common.command import UsageError
from luciole.tools.common.console import say, to_json
from luciole.tools.common.machine import machine_facts, machine_text
from luciole.tools.random_models import lq_convolution, lq_dense

HERE = Path(__file__).resolve().parent.parent
PAIRS, ROUNDS = 5, 10
QUICK_PAIRS, QUICK_ROUNDS = 3, 3
SLOWER = 0.05


@dataclass(frozen=True)
class Row:
    """One file: microseconds of a run here and there, the other's over ours for each pair of
    processes, and whether results have the same bits.
    """

    name: str
    ours: float
    theirs: float
    ratios: tuple[float, ...]
    same: bool

    @property
    def ratio(self) -> float:
        """Return the other's time over ours, of the pair in the middle."""
        return median(self.ratios)

    @property
    def slower(self) -> bool:
        """Tell whether all pairs agree that it is slower here."""
        return max(self.ratios) < 1 - SLOWER

    def line(self) -> str:
        """Return its row of the table."""
        ratio = f"{self.ratio:.2f} ({min(self.ratios):.2f} to {max(self.ratios):.2f})"
        results = "same" if self.same else "differ"
        return f"{self.name} | {self.ours:.2f} | {self.theirs:.2f} | {ratio} | {results} |"


class Side:
    """A process that runs the files with the luciole of a checkout."""

    def __init__(self, checkout: Path, files: Sequence[Path]) -> None:
        self.checkout = checkout
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(HERE / "benchmarks" / "turns.py"), *map(str, files)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(checkout)},
        )

    def opened(self) -> tuple[list[str], list[str]]:
        """Wait until the files are loaded; digests of results, and refusals. Raises LucioleError
        where the process ended or imported another luciole.
        """
        facts: dict[str, Any] = json.loads(self._line())
        if Path(facts["luciole"]).resolve() != self.checkout:
            raise LucioleError(f"{self.checkout}: luciole came from {facts['luciole']}")
        return facts["digests"], facts["refusals"]

    def turn(self, place: int) -> float:
        """Time a file; microseconds a run."""
        assert self.process.stdin is not None, "a pipe was asked for"
        print(place, file=self.process.stdin, flush=True)
        return float(self._line())

    def _line(self) -> str:
        assert self.process.stdout is not None, "a pipe was asked for"
        line = self.process.stdout.readline()
        if not line:
            raise LucioleError(f"{self.checkout}: its process ended early")
        return line

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


def checkout_of(text: str) -> Path:
    """Read the folder of a checkout. Raises UsageError where luciole is not in it."""
    folder = Path(text).resolve()
    if not (folder / "luciole" / "__init__.py").is_file():
        raise UsageError(f"{text}: no checkout, there is no {folder / 'luciole' / '__init__.py'}")
    return folder


def models() -> Iterator[tuple[str, Model]]:
    """Yield names and models that need no data."""
    for bits in (1, 2, 3, 4):
        yield f"levels, dense 784-690-10, K={bits}", lq_dense((784, 690, 10), bits)
        yield f"levels, 3x3 16x16x32, K={bits}", lq_convolution(16, 32, bits)
    yield from kinds()


def written(folder: Path) -> dict[str, Path]:
    """Write models that need no data into a folder, and find the networks; files by name."""
    data = Path(os.environ.get("LUCIOLE_DATA", "data")) / "models"
    files = {name: data / f"{name}.tflite" for name in NETWORKS}
    files = {name: path for name, path in files.items() if path.is_file()}
    for place, (name, model) in enumerate(models()):
        files[name] = folder / f"{place}.circle"
        files[name].write_bytes(to_bytes(model, "circle"))
    return files


def pair_times(
    checkouts: tuple[Path, Path], files: dict[str, Path], rounds: int, swapped: bool
) -> tuple[dict[str, tuple[float, float]], set[str]]:
    """Run a pair of processes; for each file that both run its median times here and there, and
    the names of those whose results differ.
    """
    sides = [Side(checkout, list(files.values())) for checkout in checkouts]
    try:
        (ours, our_refusals), (theirs, their_refusals) = (side.opened() for side in sides)
        refusals = list(zip(our_refusals, their_refusals, strict=True))
        names = list(files)
        places = [place for place, both in enumerate(refusals) if not any(both)]
        for name, both in zip(names, refusals, strict=True):
            if any(both) and not swapped:
                say(f"{name}: left out: {both[0] or both[1]}")
        samples: dict[int, list[tuple[float, float]]] = {place: [] for place in places}
        for number in range(rounds):
            for place in places:
                first = (number + swapped) % 2
                took = {which: sides[which].turn(place) for which in (first, 1 - first)}
                samples[place].append((took[0], took[1]))
    finally:
        for side in sides:
            side.end()
    times = {
        names[place]: (median(t[0] for t in kept), median(t[1] for t in kept))
        for place, kept in samples.items()
    }
    return times, {names[place] for place in places if ours[place] != theirs[place]}


def rows_of(pairs: Sequence[dict[str, tuple[float, float]]], differing: set[str]) -> list[Row]:
    """Turn the times of all pairs into rows."""
    rows = []
    for name in pairs[0]:
        both = [times[name] for times in pairs]
        ratios = tuple(theirs / ours for ours, theirs in both)
        ours, theirs = median(t[0] for t in both), median(t[1] for t in both)
        rows.append(Row(name, ours, theirs, ratios, name not in differing))
    return rows


def verdict(rows: Sequence[Row]) -> str:
    """Say what is slower here, and what all ratios are together."""
    if not rows:
        return "nothing was measured"
    middle = median(row.ratio for row in rows)
    slower = [f"{row.name} ({row.ratio:.2f})" for row in rows if row.slower]
    listed = f"slower by over {SLOWER:.0%} in every pair: {', '.join(slower)}"
    nothing = f"nothing is slower by over {SLOWER:.0%} in every pair"
    return f"{listed if slower else nothing}; half of the {len(rows)} ratios are below {middle:.3f}"


def run(other: str, output: Path, quick: bool) -> int:
    """Measure, print and keep the table; how many rows are slower here."""
    checkouts = (HERE, checkout_of(other))
    count, rounds = (QUICK_PAIRS, QUICK_ROUNDS) if quick else (PAIRS, ROUNDS)
    pairs, differing = [], set[str]()
    with TemporaryDirectory() as folder:
        files = written(Path(folder))
        for number in range(count):
            times, names = pair_times(checkouts, files, rounds, bool(number % 2))
            pairs.append(times)
            differing |= names
    rows, facts = rows_of(pairs, differing), machine_facts()
    print("us of a run | here | there | there / here, of pairs | results |\n---|---|---|---|---|")
    for row in rows:
        print(row.line())
    print(f"\n{verdict(rows)}\n\n{machine_text(facts)}")
    output.mkdir(parents=True, exist_ok=True)
    content = {"other": other, "machine": facts, "rows": [asdict(row) for row in rows]}
    write_file(output / "beside.json", to_json(content))
    return sum(row.slower for row in rows)
