"""How long a large model takes to load, and how much memory: constants are mapped, not read.

    python3 -m benchmarks.large_file [--gigabytes 1.5]

The file is written for this, with holes: it takes no place on the disk. It holds one dense layer
whose constants lie behind the tables. A process of its own loads it, after one that only fills the
system's caches; its memory is what is resident in all, before and after.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.accuracy_table import markdown
from benchmarks.machine import machine
from luciole.exporters.circle.tables import export_model
from luciole.ir import Buffer, Graph, Model, TensorType, Value
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.schema.dialect import CIRCLE

PACKAGES = ("luciole", "numpy")
INPUTS = 1024
HOLE = 1 << 20
"""Bytes from which a part of the file, all zeros here, becomes a hole."""

LOAD = """
import json, resource, sys, time
begun = time.perf_counter()
from luciole.importers import load
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
before, imported = resident(), time.perf_counter()
model = load(sys.argv[1])
loaded = time.perf_counter()
print(json.dumps([1000 * (imported - begun), 1000 * (loaded - imported), before, resident()]))
"""


def write_sparse(path: Path, size: int) -> None:
    """Write a dense layer of some ``size`` bytes of weights, all of them zero and none on disk."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    outputs = size // (4 * INPUTS)
    weights = Value("weights", TensorType.FLOAT32, (outputs, INPUTS))
    weights.buffer = Buffer(np.zeros(outputs * INPUTS * 4, np.uint8))
    layer = FullyConnected(graph.add_input("x", (1, INPUTS)), graph.add_value(weights))
    graph.append(layer, "y")
    graph.outputs = [layer.output]
    with path.open("wb") as file:
        for part in export_model(model, CIRCLE, use_buffer_offset=True):
            if part.nbytes >= HOLE:
                file.seek(part.nbytes, 1)
            else:
                file.write(part)
        file.truncate()


def load(path: Path) -> list[float]:
    """Load a file in a new process: milliseconds of importing luciole and of loading, and the
    resident bytes between and after.
    """
    command = [sys.executable, "-c", LOAD, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: list[float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Write, load, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=1.5, metavar="N", help="default 1.5")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.circle"
        write_sparse(path, int(arguments.gigabytes * 1e9))
        load(path)
        importing, loading, before, after = load(path)
        size = path.stat().st_size
    head = ["file, MB", "importing, ms", "loading, ms", "resident before, MB", "after, MB"]
    numbers = (size / 1e6, importing, loading, before / 1e6, after / 1e6)
    print(f"{markdown([head, [f'{n:.0f}' for n in numbers]])}\n\n{machine(PACKAGES)}")


if __name__ == "__main__":
    main()
