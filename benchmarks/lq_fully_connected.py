"""LQ_FULLY_CONNECTED against LiteRT and against what the machine can do, on one thread.

    python3 -m benchmarks.lq_fully_connected [--rounds N] [--json FILE] [--peers FOLDER]

Needs tensorflow, which makes the peer's models once and keeps them in FOLDER. Times are medians of
whole ``invoke`` calls, turn by turn in one process; LiteRT's int8 is the quicker one of full
integer (int8 in and out) and dynamic range (float in and out, as luciole). A ratio is LiteRT's time
divided by luciole's. Inputs are normal numbers, which use all levels, or like an image: 80 % of
them on one level, which layers make use of.

"Bound" is what one layer cannot beat on this machine while every pair of bits meets: the time to
count them at the rate of exclusive or, count and add from the nearest cache, or to read its weights
once, whichever is longer. Going level by level touches a bit of weights once for all bits of the
inputs, or not at all, and may be quicker.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks import limits
from benchmarks.machine import machine
from benchmarks.tflite_models import FORMS, convert, dense_network
from luciole.files import write_file
from luciole.interpreter import Interpreter
from luciole.ir import Array
from luciole.tools.common.console import to_json
from luciole.tools.common.timing import Call, interleaved_medians
from luciole.tools.random_models import lq_dense

WIDTHS = (1, 2, 3, 4)
PACKAGES = ("luciole", "numba", "llvmlite", "numpy", "ai-edge-litert", "tensorflow-cpu")
PEERS = Path.home() / ".cache" / "luciole" / "benchmarks"

PUBLISHED_US = {1: 44.8, 2: 84.8, 3: 152.7}
"""What the published kernel takes for 784-690-10, by bits."""

BACKGROUND = 0.8
"""The share of inputs on the lowest level in what is like an image."""


@dataclass(frozen=True)
class Work:
    """A network of dense layers, and how many rows it takes at once."""

    sizes: tuple[int, ...]
    rows: int = 1

    def __str__(self) -> str:
        name = "-".join(str(n) for n in self.sizes)
        return name if self.rows == 1 else f"{name}, {self.rows} rows"


NETWORK = Work((784, 690, 10))
WORKS = (
    NETWORK,
    Work((784, 690)),
    Work((1024, 1024)),
    Work((4096, 4096)),
    Work((640, 128)),
    Work((784, 690), 64),
)


@dataclass(frozen=True)
class Row:
    """One work at one width, in microseconds; the bounds are those of a single layer."""

    work: str
    bits: int
    litert_int8: float
    litert_float32: float
    normal: float
    image: float
    counting: float | None
    reading: float | None

    def cells(self) -> list[str]:
        """The row of the table."""
        times = [self.litert_int8, self.litert_float32, self.normal]
        ratios = [self.litert_int8 / self.normal, self.litert_float32 / self.normal]
        image = f"{self.image:.2f} | {self.litert_int8 / self.image:.2f}x"
        cells = [self.work, str(self.bits), *(f"{t:.2f}" for t in times)]
        cells += [f"{r:.2f}x" for r in ratios] + [image]
        if self.counting is None or self.reading is None:
            return [*cells, "", "", ""]
        bound = max(self.counting, self.reading)
        return [*cells, f"{self.counting:.2f}", f"{self.reading:.2f}", f"{bound / self.normal:.0%}"]


HEADINGS = (
    *("work", "K", "LiteRT int8", "LiteRT float32", "luciole", "vs int8", "vs float32"),
    *("like an image", "vs int8", "bound: counting", "reading", "share of bound"),
)


def inputs(work: Work, image: bool) -> Array:
    """Normal numbers, or mostly a background."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(work.rows, work.sizes[0])).astype(np.float32)
    if image:
        x[rng.random(x.shape) < BACKGROUND] = -9
    return x


def our_call(work: Work, bits: int, image: bool) -> Call:
    """luciole's ``invoke``."""
    interpreter = Interpreter(lq_dense(work.sizes, bits, work.rows))
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], inputs(work, image))
    return interpreter.invoke


def peer_calls(work: Work, folder: Path) -> list[Call]:
    """LiteRT's ``invoke`` of every form."""
    from ai_edge_litert.interpreter import Interpreter as LiteRT

    calls: list[Call] = []
    for form in FORMS:
        path = folder / f"{'-'.join(map(str, work.sizes))}-rows{work.rows}-{form}.tflite"
        if not path.exists():
            folder.mkdir(parents=True, exist_ok=True)
            convert(dense_network(work.sizes, work.rows), form, path)
        interpreter = LiteRT(model_path=str(path), num_threads=1)
        interpreter.allocate_tensors()
        detail = interpreter.get_input_details()[0]
        x = inputs(work, image=False)
        interpreter.set_tensor(
            detail["index"], (x * 30 if form == "int8" else x).astype(detail["dtype"])
        )
        calls.append(interpreter.invoke)
    return calls


def measured(work: Work, rounds: int, folder: Path, counted_per_us: float) -> Iterator[Row]:
    """The rows of one work."""
    calls = peer_calls(work, folder)
    calls += [our_call(work, bits, image) for bits in WIDTHS for image in (False, True)]
    int8, dynamic, float32, *ours = interleaved_medians(calls, rounds)
    for place, bits in enumerate(WIDTHS):
        counting = reading = None
        if len(work.sizes) == 2:
            n, o = work.sizes
            size = n * o * bits // 8
            counting = n * o * bits**2 * work.rows / counted_per_us
            reading = size / limits.bytes_per_us(size)
        normal, image = ours[2 * place : 2 * place + 2]
        int8_or_dynamic = min(int8, dynamic)
        yield Row(str(work), bits, int8_or_dynamic, float32, normal, image, counting, reading)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300, help="samples of each (default 300)")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--peers", type=Path, default=PEERS, help=f"default {PEERS}")
    arguments = parser.parse_args()
    counted = limits.counted_per_us()
    print(" | ".join(HEADINGS) + " |")
    print("---|" * len(HEADINGS))
    rows: list[Row] = []
    for work in WORKS:
        for row in measured(work, arguments.rounds, arguments.peers, counted):
            print(" | ".join(row.cells()) + " |", flush=True)
            rows.append(row)
    network = {row.bits: row.normal for row in rows if row.work == str(NETWORK)}
    pairs = [f"K={b} {us} us: {us / network[b]:.0f}x" for b, us in PUBLISHED_US.items()]
    print(f"\nagainst the published kernel, {NETWORK}: {', '.join(pairs)}")
    facts = machine(PACKAGES)
    print(f"{counted / 1e6:.2f} T pairs of bits/s counted from the nearest cache\n{facts}")
    if arguments.json:
        content = {"machine": facts, "rows": [asdict(row) for row in rows]}
        write_file(arguments.json, to_json(content))


if __name__ == "__main__":
    main()
