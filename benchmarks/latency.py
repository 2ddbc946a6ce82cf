"""The time of dense networks with learned levels beside LiteRT on one thread, as users see it.

    python3 -m benchmarks.latency [--quick] [--output FILE.json] [--plot FILE.png]

Needs tensorflow, which makes the peers' models. Every case is one ``circle-bench`` of the model
with 1 bit against those with 2 to 4 bits and against LiteRT's int8 (full integer), dynamic range
(int8 weights) and float32 models, all in one process, turn by turn, on one seeded record of normal
numbers. Weights are random. Medians of ``invoke``; ratios are LiteRT's time divided by luciole's.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.accuracy_table import figure_type, markdown
from benchmarks.machine import machine
from benchmarks.tflite_models import FORMS, convert, dense_network
from luciole.exporters import save
from luciole.files import write_file
from luciole.tools.bench.compare import contenders
from luciole.tools.bench.inputs import random_inputs
from luciole.tools.bench.ours import Luciole
from luciole.tools.bench.peers import LiteRT
from luciole.tools.common.console import say, to_json
from luciole.tools.common.timing import Limits
from luciole.tools.random_models import lq_dense

WIDTHS = (1, 2, 3, 4)
SQUARES = (64, 128, 256, 512, 1024, 2048, 4096)
PACKAGES = ("luciole", "numba", "llvmlite", "numpy", "ai-edge-litert", "tensorflow-cpu")


@dataclass(frozen=True)
class Case:
    """A network of dense layers and how many records it takes at once."""

    name: str
    sizes: tuple[int, ...]
    rows: int = 1


@dataclass(frozen=True)
class Row:
    """One case at one width: medians in microseconds, LiteRT's by form, without and with copying
    inputs and outputs.
    """

    case: str
    sizes: tuple[int, ...]
    rows: int
    bits: int
    median_us: float
    with_copies_us: float
    litert_us: dict[str, float]
    litert_with_copies_us: dict[str, float]


NETWORK = Case("784-690(tanh)-10(softmax)", (784, 690, 10))
BATCH = Case("784->690, 64 records", (784, 690), 64)


def square(n: int) -> Case:
    """One layer with as many inputs as outputs."""
    return Case(f"{n}->{n}", (n, n))


def measured(case: Case, limits: Limits, folder: Path) -> list[Row]:
    """The rows of one case."""
    ours = [_ours(case, bits, folder) for bits in WIDTHS]
    network = dense_network(case.sizes, case.rows)
    files = [convert(network, form, folder / f"{form}.tflite") for form in FORMS]
    peers = [LiteRT(file, 1, ()) for file in files]
    records = random_inputs(ours[0].inputs, seed=0)
    found = contenders(ours[0], [*ours[1:], *peers], records, limits)
    mine, others = found[: len(WIDTHS)], found[len(WIDTHS) :]
    invoke = {form: c.invoke.median_us for form, c in zip(FORMS, others, strict=True)}
    copies = {form: c.copies.median_us for form, c in zip(FORMS, others, strict=True)}
    return [
        Row(
            case.name,
            case.sizes,
            case.rows,
            b,
            c.invoke.median_us,
            c.copies.median_us,
            invoke,
            copies,
        )
        for b, c in zip(WIDTHS, mine, strict=True)
    ]


def _ours(case: Case, bits: int, folder: Path) -> Luciole:
    path = folder / f"K{bits}.circle"
    save(lq_dense(case.sizes, bits, case.rows), path)
    return Luciole(path)


def headings() -> list[str]:
    """The first row of the table that documents have."""
    times = ["network", "K", "us", *(f"LiteRT {form}" for form in FORMS)]
    return [*times, *(f"{form} / us" for form in FORMS), "with copies: us", "int8 / us"]


def cells(row: Row) -> list[str]:
    """One row of it."""
    peers = [row.litert_us[form] for form in FORMS]
    times = [f"{us:.2f}" for us in (row.median_us, *peers)]
    ratios = [f"{us / row.median_us:.2f}x" for us in peers]
    copies = row.litert_with_copies_us["int8"] / row.with_copies_us
    return [row.case, str(row.bits), *times, *ratios, f"{row.with_copies_us:.2f}", f"{copies:.2f}x"]


def plot(rows: Sequence[Row], path: Path) -> None:
    """Latency against the size of a square layer, one line for each width and each peer."""
    own = [row for row in rows if len(row.sizes) == 2 and len(set(row.sizes)) == 1]
    figure = figure_type()(figsize=(6.4, 4.8), layout="constrained")
    axes = figure.add_subplot()
    for bits in WIDTHS:
        line = [row for row in own if row.bits == bits]
        sizes = [row.sizes[0] for row in line]
        axes.plot(sizes, [row.median_us for row in line], marker="o", label=f"luciole K={bits}")
    line = [row for row in own if row.bits == WIDTHS[0]]
    for form in FORMS:
        times = [row.litert_us[form] for row in line]
        sizes = [row.sizes[0] for row in line]
        axes.plot(sizes, times, marker=".", linestyle="--", label=f"LiteRT {form}")
    labels = {"xlabel": "inputs and outputs of the layer", "ylabel": "us for one record"}
    axes.set(title="one dense layer, 1 thread", xscale="log", yscale="log", **labels)
    axes.set_xticks([row.sizes[0] for row in line], [str(row.sizes[0]) for row in line])
    axes.minorticks_off()
    axes.legend(fontsize=7)
    figure.savefig(path)


def main() -> None:
    """Measure, print the table, write what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer sizes, shorter")
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="also write the rows")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="also draw time against size")
    arguments = parser.parse_args()
    squares = (256, 1024) if arguments.quick else SQUARES
    seconds = 0.05 if arguments.quick else 0.3
    limits = Limits(runs=20, min_seconds=seconds, max_seconds=60, warmup_seconds=0.05)
    rows: list[Row] = []
    for case in (NETWORK, BATCH, *map(square, squares)):
        with tempfile.TemporaryDirectory() as folder:
            rows += measured(case, limits, Path(folder))
        say(f"{case.name}: done")
    print(markdown([headings(), *map(cells, rows)]))
    facts = machine(PACKAGES)
    print(f"\n{facts}")
    if arguments.output:
        write_file(arguments.output, to_json({"machine": facts, "rows": [asdict(r) for r in rows]}))
    if arguments.plot:
        plot(rows, arguments.plot)


if __name__ == "__main__":
    main()
