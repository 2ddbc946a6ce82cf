"""Networks imported from ONNX against onnxruntime, batch 1 and one thread: prints a ratio table.

    python3 -m benchmarks.onnx_speed [--rounds N] [--operators N] [--output FILE.json] [NAME ...]

The networks are those that onnx's own package has without weights (``data/light``), with random
ones. Both runtimes are in one process and are called turn by turn; times are medians of the
process's own time, so that others on the machine count little. The ratio is onnxruntime's time
divided by ours, above 1 where luciole is faster. NAME picks networks by a part of their names.
``--operators`` also lists kinds of operators, and the slowest ones.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time_ns

import numpy as np

from benchmarks.accuracy_table import markdown
from benchmarks.machine import machine
from luciole.exporters import save
from luciole.files import write_file
from luciole.importers import load
from luciole.ir.value import shape_text
from luciole.tools.bench.operators import by_kind, profile
from luciole.tools.bench.ours import Luciole
from luciole.tools.bench.peers import OnnxRuntime
from luciole.tools.common.console import to_json
from luciole.tools.common.timing import Limits, measured
from tests.onnx_nodes import light_networks, with_weights

PACKAGES = ("luciole", "numba", "llvmlite", "numpy", "onnx", "onnxruntime")
NETWORKS = ("resnet50", "shufflenet", "squeezenet", "densenet121")
"""Those that are measured unless others are named."""


@dataclass(frozen=True)
class Row:
    """One network: operators, TRANSPOSE among them, medians in microseconds, and the largest
    difference of results as a share of the largest number.
    """

    network: str
    operators: int
    transposes: int
    luciole_us: float
    onnxruntime_us: float
    ratio: float
    apart: float


def runtimes(path: Path, folder: Path) -> tuple[Luciole, OnnxRuntime]:
    """Give a network weights, import it and load both files."""
    import onnx

    model = with_weights(onnx.load(path))
    source, imported = folder / "network.onnx", folder / "network.circle"
    source.write_bytes(model.SerializeToString())
    save(load(source), imported)
    return Luciole(imported), OnnxRuntime(source, 1, ())


def row(path: Path, rounds: int, slowest: int) -> Row:
    """Measure one network."""
    with tempfile.TemporaryDirectory() as folder:
        ours, peer = runtimes(path, Path(folder))
        given = [np.random.default_rng(1).random(port.shape, np.float32) for port in peer.inputs]
        for runtime in (ours, peer):
            runtime.feed(given)
            runtime.invoke()
        (got,), (want,) = ours.fetch(), peer.fetch()
        apart = float(np.abs(got - want).max() / np.abs(want).max())
        limits = Limits(runs=rounds, min_seconds=0, warmup_seconds=0.2)
        calls = [ours.invoke, peer.invoke]
        mine, theirs = (t.median_us for t in measured(calls, limits, clock=process_time_ns))
        if slowest:
            print(*operators(ours, slowest), sep="\n")
        kinds = [op.kind for op in ours.graph.ops]
    name = path.stem.removeprefix("light_")
    count = kinds.count("TRANSPOSE")
    return Row(name, len(kinds), count, mine, theirs, theirs / mine, apart)


def operators(ours: Luciole, slowest: int) -> Iterator[str]:
    """Lines of kinds of operators and of the slowest ones, in microseconds."""
    found = profile(ours, Limits(runs=10, min_seconds=0.5)).operators
    for kind in by_kind(found):
        yield f"{kind.median_us:10.0f}  {kind.share:4.0%}  {kind.count:4}  {kind.kind}"
    for op in sorted(found, key=lambda op: -op.median_us)[:slowest]:
        source = ours.plan.steps[op.index].source
        extents = " ".join(shape_text(v.shape) for v in source.operands[:2] if v is not None)
        yield f"{op.median_us:10.0f}  {op.kind} {extents} {op.name} {op.reason}"


def lines(found: Sequence[Row]) -> list[list[str]]:
    """The table: a row for each network."""
    head = ["network", "operators", "TRANSPOSE", "luciole ms", "onnxruntime ms", "ratio", "apart"]
    return [head, *map(_cells, found)]


def _cells(of: Row) -> list[str]:
    times = [f"{us / 1000:.2f}" for us in (of.luciole_us, of.onnxruntime_us)]
    counts = [str(of.operators), str(of.transposes)]
    return [of.network, *counts, *times, f"{of.ratio:.2f}", f"{of.apart:.1e}"]


def main() -> None:
    """Measure, print the table, write what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=NETWORKS, metavar="NAME")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--operators", type=int, default=0, metavar="N", help="list the N slowest")
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="also write the figures")
    given = parser.parse_args()
    chosen = [p for p in light_networks() if any(name in p.stem for name in given.names)]
    rows = [row(path, given.rounds, given.operators) for path in chosen]
    print(markdown(lines(rows)))
    facts = machine(PACKAGES)
    print(f"\n{facts}")
    if given.output:
        write_file(given.output, to_json({"machine": facts, "rows": [asdict(r) for r in rows]}))


if __name__ == "__main__":
    main()
