"""What luciole costs beside its kernels: starting processes, and getting from operator to operator.

    python3 -m benchmarks.cold_start [--quick] [--output FILE.json]

Whole processes, from their start to their end, turn by turn: medians of wall-clock time. Kernels
are in the cache unless the line says otherwise. The network is 784-690(tanh)-10(softmax) with 3
bits, run once on zeros. Then a chain of ADDs of one number, beside LiteRT where that is installed:
the time of ``invoke`` with one operator, and what each further one adds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from benchmarks.accuracy_table import markdown
from benchmarks.machine import machine
from luciole.exporters import save
from luciole.files import write_file
from luciole.ir import Graph, Model
from luciole.ir.ops.elementwise_binary import Add
from luciole.tools.bench.compare import contenders
from luciole.tools.bench.inputs import random_inputs
from luciole.tools.bench.ours import Luciole
from luciole.tools.bench.peers import open_peer
from luciole.tools.common.console import to_json
from luciole.tools.common.timing import Limits
from luciole.tools.random_models import dense, lq_dense

LENGTH = 200
"""Operators of the chain."""

PACKAGES = ("luciole", "numba", "numpy", "ai-edge-litert")
RUN_OURS = """
import sys, numpy, luciole
interpreter = luciole.Interpreter(sys.argv[1])
interpreter.run(numpy.zeros((1, 784), numpy.float32))
"""
RUN_LITERT = """
import sys, numpy
from ai_edge_litert.interpreter import Interpreter
interpreter = Interpreter(sys.argv[1], num_threads=1)
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], numpy.zeros((1, 784), "f"))
interpreter.invoke()
interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
"""


@dataclass(frozen=True)
class Process:
    """A line of the table: a command of Python, and whether its cache of kernels is empty."""

    name: str
    arguments: Sequence[str]
    empty_cache: bool = False


def processes(network: Path, other: Path) -> Iterator[Process]:
    """What is started; ``other`` is a .tflite file of a network of the same shape."""
    yield Process("python3, nothing", ["-c", "pass"])
    yield Process("python3, import numpy", ["-c", "import numpy"])
    yield Process("luciole --help", ["-m", "luciole", "--help"])
    yield Process("circle-dump", ["-m", "luciole", "dump", str(network)])
    yield Process("first result", ["-c", RUN_OURS, str(network)])
    yield Process("first result, nothing cached", ["-c", RUN_OURS, str(network)], empty_cache=True)
    if find_spec("ai_edge_litert"):
        yield Process("LiteRT, first result", ["-c", RUN_LITERT, str(other)])


def seconds(process: Process) -> float:
    """How long one run of a process takes. Raises CalledProcessError when it fails."""
    with tempfile.TemporaryDirectory() as empty:
        environment = {**os.environ, "LUCIOLE_CACHE": empty} if process.empty_cache else None
        command = [sys.executable, *process.arguments]
        begun = time.perf_counter()
        subprocess.run(command, env=environment, check=True, capture_output=True)
        return time.perf_counter() - begun


def start_times(rounds: int, folder: Path) -> dict[str, float]:
    """Milliseconds by the name of a process; the slow one runs in every fifth round alone."""
    network, other = folder / "network.circle", folder / "network.tflite"
    save(lq_dense((784, 690, 10), 3), network)
    save(dense((784, 690, 10)), other)
    started = list(processes(network, other))
    times: dict[str, list[float]] = {process.name: [] for process in started}
    for process in started:
        seconds(process)  # fills the cache and the system's files
    for number in range(rounds):
        for process in started:
            if not process.empty_cache or number % 5 == 0:
                times[process.name].append(1000 * seconds(process))
    return {name: median(found) for name, found in times.items()}


def chain(length: int) -> Model:
    """ADDs of one number to the sum so far, one behind the other."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    value = x = graph.add_input("x", (1, 1))
    for place in range(length):
        graph.append(Add(value, x), f"add_{place}")
        value = graph.values[-1]
    graph.outputs = [value]
    return model


@dataclass(frozen=True)
class Overhead:
    """``invoke`` of one operator and of LENGTH, in microseconds; how many of those are compiled."""

    runtime: str
    one_us: float
    chain_us: float
    native: int

    @property
    def operator_ns(self) -> float:
        """Nanoseconds for each further operator."""
        return 1000 * (self.chain_us - self.one_us) / (LENGTH - 1)


def overheads(limits: Limits, folder: Path) -> list[Overhead]:
    """luciole's and, where it is installed, LiteRT's."""
    times: dict[str, list[float]] = {}
    native = 0
    for length in (1, LENGTH):
        ours, other = folder / f"{length}.circle", folder / f"{length}.tflite"
        for path in (ours, other):
            save(chain(length), path)
        runtime = Luciole(ours)
        native = sum(step.native is not None for step in runtime.plan.steps)
        peers = [open_peer(f"litert:{other}", 1, ())] if find_spec("ai_edge_litert") else []
        records = random_inputs(runtime.inputs, seed=0)
        for found in contenders(runtime, peers, records, limits):
            name = found.runtime.kind or "luciole"
            times.setdefault(name, []).append(found.invoke.median_us)
    counts = {"luciole": native, "litert": LENGTH}
    return [Overhead(name, one, many, counts[name]) for name, (one, many) in times.items()]


def main() -> None:
    """Measure, print both tables, write the JSON file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="also write the figures")
    arguments = parser.parse_args()
    limits = Limits(runs=50, min_seconds=0.1 if arguments.quick else 1, warmup_seconds=0.1)
    with tempfile.TemporaryDirectory() as name:
        starts = start_times(2 if arguments.quick else 10, Path(name))
        print(markdown([["process", "ms"], *([k, f"{v:.0f}"] for k, v in starts.items())]))
        plans = overheads(limits, Path(name))
    head = ["runtime", "1 operator, us", f"{LENGTH} operators, us", "ns per operator", "compiled"]
    body = [
        [p.runtime, f"{p.one_us:.2f}", f"{p.chain_us:.2f}", f"{p.operator_ns:.1f}", str(p.native)]
        for p in plans
    ]
    facts = machine(PACKAGES)
    print(f"\n{markdown([head, *body])}\n\n{facts}")
    if arguments.output:
        rows = [{**asdict(p), "operator_ns": p.operator_ns} for p in plans]
        content = {"machine": facts, "start_ms": starts, "overheads": rows}
        write_file(arguments.output, to_json(content))


if __name__ == "__main__":
    main()
