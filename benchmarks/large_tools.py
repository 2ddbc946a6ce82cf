"""What programs take for large networks: seconds of CPU, and memory beside the file's size.

    python3 -m benchmarks.large_tools [--megabytes 48] [--only compile]

Two networks of random weights are made: convolutions in front of dense layers, and an encoder of
texts, most of which is its embedding. Each program is a process of its own; what it starts, as a C
compiler, is counted with it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import luciole
from benchmarks.accuracy_table import markdown
from benchmarks.machine import machine
from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.gather import Gather
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.softmax import Softmax
from luciole.schema.enums import ActivationFunctionType, Padding

PACKAGES = ("luciole", "numpy")
RELU = ActivationFunctionType.RELU
WIDTH, TOKENS, BLOCKS, RECORDS = 256, 32, 4, 8
RNG = np.random.default_rng(0)

MEASURE = """
import json, os, sys
said, *command = sys.argv[1:]
flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
streams = [(os.POSIX_SPAWN_OPEN, stream, said, flags, 0o644) for stream in (1, 2)]
child = os.posix_spawn(command[0], command, os.environ, file_actions=streams)
_, status, usage = os.wait4(child, 0)
seconds = usage.ru_utime + usage.ru_stime
print(json.dumps([os.waitstatus_to_exitcode(status), seconds, 1024 * usage.ru_maxrss]))
"""
"""A small process between: for a moment a child has as much memory as its parent."""


class Taken(NamedTuple):
    """What a program took."""

    network: str
    program: str
    code: int
    seconds: float
    bytes: int


class Drawn:
    """A graph whose operators are appended in turn, with random weights."""

    def __init__(self) -> None:
        self.model = Model()
        self.graph = self.model.add_graph(Graph("main"))

    def constant(self, array: Array) -> Value:
        """Add a constant."""
        return self.graph.add_constant(self.graph.unique_name("c"), array)

    def weights(self, *shape: int) -> Value:
        """Add weights that keep the size of numbers."""
        inputs = int(np.prod(shape[1:]))
        return self.constant(RNG.standard_normal(shape, np.float32) * np.float32(inputs**-0.5))

    def add(self, op: Op) -> Value:
        """Append an operator."""
        return self.graph.append(op, self.graph.unique_name(op.kind.lower())).output

    def dense(self, x: Value, outputs: int) -> Value:
        """Append a dense layer that keeps axes."""
        weights = self.weights(outputs, x.dims[-1])
        return self.add(FullyConnected(x, weights, None, keep_num_dims=True, activation=RELU))


def images(size: int) -> tuple[Model, Array]:
    """Make convolutions whose last ones, and dense layers, hold about ``size`` bytes; and records
    for it.
    """
    drawn = Drawn()
    x = drawn.graph.add_input("x", (1, 32, 32, 3))
    most = max(8, int((size / 4 / 58) ** 0.5) // 8 * 8)
    for channels in (most // 8, most // 4, most // 2, most, most):
        filters = drawn.weights(channels, 3, 3, x.dims[-1])
        x = drawn.add(
            Conv2D(x, filters, None, padding=Padding.SAME, stride_w=2, stride_h=2, activation=RELU)
        )
    shape = (1, most)
    x = drawn.add(Reshape(x, drawn.constant(np.array(shape, np.int32)), new_shape=shape))
    for outputs in (8 * most, 4 * most, 100):
        x = drawn.dense(x, outputs)
    drawn.graph.outputs = [x]
    return drawn.model, RNG.random((RECORDS, 32, 32, 3), np.float32)


def texts(size: int) -> tuple[Model, Array]:
    """Make an encoder of texts of about ``size`` bytes, and records for it."""
    drawn = Drawn()
    words = max(100, (size // 4 - BLOCKS * 12 * WIDTH**2) // WIDTH)
    indices = drawn.graph.add_input("indices", (1, TOKENS), TensorType.INT32)
    x = drawn.add(Gather(drawn.weights(words, WIDTH), indices, axis=0))
    for _ in range(BLOCKS):
        query, key, value = (drawn.dense(x, WIDTH) for _ in range(3))
        scores = drawn.add(Softmax(drawn.add(BatchMatMul(query, key, adjoint_rhs=True)), beta=1.0))
        x = drawn.add(Add(x, drawn.dense(drawn.add(BatchMatMul(scores, value)), WIDTH)))
        x = drawn.add(Add(x, drawn.dense(drawn.dense(x, 4 * WIDTH), WIDTH)))
    drawn.graph.outputs = [x]
    return drawn.model, RNG.integers(0, words, (RECORDS, TOKENS)).astype(np.int32)


NETWORKS: dict[str, Callable[[int], tuple[Model, Array]]] = {"images": images, "texts": texts}


def write(folder: Path, size: int) -> None:
    """Write networks of about ``size`` bytes, and records for them."""
    for name, make in NETWORKS.items():
        model, records = make(size)
        luciole.save(model, folder / f"{name}.circle")
        np.save(folder / f"{name}.npy", records)


def commands(folder: Path, name: str) -> dict[str, list[str]]:
    """List the words of each program by its title."""
    model, other = (str(folder / f"{name}{end}.circle") for end in ("", "_8"))
    out, data = str(folder / f"{name}_out"), str(folder / f"{name}.npy")
    return {
        "quantize": ["quantize", model, "--scheme", "weights", "-o", other],
        "dump": ["dump", model],
        "view, a page": ["view", model, "-o", f"{out}.html"],
        "view, a picture": ["view", model, "-o", f"{out}.svg"],
        "verify": ["verify", "--performance", model],
        "diff": ["diff", model, other, "--data", data],
        "optimize": ["optimize", model, "-o", f"{out}.circle"],
        "chef": ["chef", "--reverse", model, "-o", f"{out}.recipe"],
        "import": ["import", model, "-o", f"{out}.onnx"],
        "compile": ["compile", model, "-o", out],
    }


def run(words: Sequence[str], said: Path) -> tuple[int, float, int]:
    """Run a program; its exit code, seconds of CPU and largest resident bytes, those of what it
    started included.
    """
    command = [sys.executable, "-m", "luciole", *words]
    between = [sys.executable, "-c", MEASURE, str(said), *command]
    done = subprocess.run(between, check=True, capture_output=True, text=True)
    code, seconds, peak = json.loads(done.stdout)
    return code, seconds, peak


def measured(folder: Path, size: int, only: str = "") -> Iterator[Taken]:
    """Run programs on both networks."""
    write(folder, size)
    for name in NETWORKS:
        for title, words in commands(folder, name).items():
            if only in title or title == "quantize":
                yield Taken(name, title, *run(words, folder / "said"))


def main() -> int:
    """Run and print; exit code 1 where a program fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=float, default=48, metavar="N", help="default 48")
    parser.add_argument("--only", default="", metavar="TITLE", help="programs with this in a title")
    arguments = parser.parse_args()
    size = int(arguments.megabytes * 1e6)
    grid = [["network", "program", "CPU, s", "memory, MB", "times the file"]]
    with tempfile.TemporaryDirectory() as folder:
        rows = list(measured(Path(folder), size, arguments.only))
    for row in rows:
        times = f"{row.bytes / size:.1f}" + (f", exit code {row.code}" if row.code else "")
        grid.append(
            [row.network, row.program, f"{row.seconds:.1f}", f"{row.bytes / 1e6:.0f}", times]
        )
    print(f"{markdown(grid)}\n\n{machine(PACKAGES)}")
    return 1 if any(row.code for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
