"""Whole networks against LiteRT (XNNPACK): prints ratios and where time goes.

    python3 -m benchmarks.networks FILE.tflite ... [--threads N] [--rounds N] [--json FILE]

Without files: ad01, vww, resnet8 and kws in float32 (kws has int8 weights under float activations)
and in int8, in the folder that LUCIOLE_DATA names, under models/. Medians of interleaved calls of
both interpreters' ``invoke``, batch 1, the same random input; with several threads, which spin for
a while behind a call, of interleaved blocks of BLOCK calls. Shares are of the sum of the operators'
own medians on one thread. Differences of int8 networks are in steps: XNNPACK rounds in another way
than TFLite's reference kernels, which luciole equals.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import luciole
from benchmarks.machine import machine
from luciole.files import write_file
from luciole.interpreter import Interpreter, compile_graph
from luciole.ir import Array, Model, Value
from luciole.ir.dtypes import NUMPY
from luciole.tools.common.timing import interleaved_medians

NETWORKS = tuple(
    f"{name}_{kind}" for kind in ("fp32", "int8") for name in ("ad01", "vww_96", "resnet8", "kws")
)
PACKAGES = ("luciole", "numba", "llvmlite", "numpy", "ai-edge-litert")
PROFILED = 200
"""Runs with the clock read between operators."""
BLOCK, AHEAD, PAUSE = 25, 5, 0.01
"""Calls of a block, calls before it, and seconds in which threads fall asleep."""


@dataclass(frozen=True)
class Row:
    """One network: medians of one run in microseconds, LiteRT's over ours, the largest difference
    of their results, and each operator kind's share of our time.
    """

    network: str
    luciole_us: float
    litert_us: float
    ratio: float
    difference: float
    shares: dict[str, float]


def measured(path: Path, rounds: int, threads: int = 1) -> Row:
    """Run both and compare."""
    model = luciole.load(path)
    x = random_input(model.graph.inputs[0])
    (ours, result), (theirs, wanted) = our_call(model, x, threads), litert_call(path, x, threads)
    ours()
    theirs()
    difference = float(np.abs(result() - wanted().astype(np.float64)).max())
    medians = interleaved_medians if threads == 1 else block_medians
    our_us, their_us = medians([ours, theirs], rounds)
    shares = kinds(model, x)
    return Row(path.stem, our_us, their_us, their_us / our_us, difference, shares)


def block_medians(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Measure the median duration of each call in microseconds, of blocks of calls in turn: the
    first of a block are not counted, since other threads spin in them still.
    """
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(-(-rounds // BLOCK)):
        for call, own in zip(calls, times, strict=True):
            time.sleep(PAUSE)
            for number in range(-AHEAD, BLOCK):
                begun = time.perf_counter_ns()
                call()
                own += [(time.perf_counter_ns() - begun) / 1000] * (number >= 0)
    return [float(np.median(own)) for own in times]


def random_input(value: Value) -> Array:
    """Normally distributed numbers, or any of the type's integers."""
    rng, shape = np.random.default_rng(0), tuple(n or 1 for n in value.shape)
    dtype = NUMPY[value.dtype]
    if dtype.kind == "f":
        return rng.normal(size=shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


Calls = tuple[Callable[[], object], Callable[[], Array]]
"""A run, and what reads its result."""


def our_call(model: Model, x: Array, threads: int = 1) -> Calls:
    """luciole's ``invoke``, and what reads its result."""
    interpreter = Interpreter(model, num_threads=threads)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    place = interpreter.get_output_details()[0]["index"]
    return interpreter.invoke, lambda: interpreter.get_tensor(place)


def litert_call(path: Path, x: Array, threads: int = 1) -> Calls:
    """LiteRT's."""
    from ai_edge_litert.interpreter import Interpreter as LiteRT

    interpreter = LiteRT(model_path=str(path), num_threads=threads)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    place = interpreter.get_output_details()[0]["index"]
    return interpreter.invoke, lambda: interpreter.get_tensor(place)


def kinds(model: Model, x: Array) -> dict[str, float]:
    """Each operator kind's share of the time, the largest first."""
    plan = compile_graph(model.graph, {model.graph.inputs[0]: x.shape})
    place = plan.array(model.graph.inputs[0])
    assert place is not None
    place[...] = x
    times = np.median([plan.run_timed() for _ in range(PROFILED)], axis=0)
    sums: dict[str, float] = {}
    for step, took in zip(plan.steps, times.tolist(), strict=True):
        sums[step.op.kind] = sums.get(step.op.kind, 0) + took / float(times.sum())
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def paths(given: Sequence[Path]) -> list[Path]:
    """The files asked for, else those of the networks."""
    models = Path(os.environ.get("LUCIOLE_DATA", "data")) / "models"
    return list(given) or [models / f"{name}.tflite" for name in NETWORKS]


def line(row: Row) -> str:
    """One row of the table."""
    shares = ", ".join(f"{kind} {share:.0%}" for kind, share in row.shares.items() if share > 0.005)
    figures = f"{row.luciole_us:.1f} | {row.litert_us:.1f} | {row.ratio:.2f}x"
    return f"{row.network} | {figures} | {row.difference:.0e} | {shares} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help=".tflite files with one input")
    parser.add_argument("--threads", type=int, default=1, help="threads of both (default 1)")
    parser.add_argument("--rounds", type=int, default=200, help="samples of each (default 200)")
    parser.add_argument("--json", type=Path, help="also write the figures to a file")
    arguments = parser.parse_args()
    print("us | luciole | LiteRT | ratio | difference | shares |")
    print("---|---|---|---|---|---|")
    rows = []
    for path in paths(arguments.files):
        rows.append(measured(path, arguments.rounds, arguments.threads))
        print(line(rows[-1]), flush=True)
    here = machine(PACKAGES, f"{arguments.threads} thread{'s' * (arguments.threads > 1)}")
    print(f"\n{here}")
    if arguments.json:
        found = {"machine": here, "networks": [asdict(row) for row in rows]}
        write_file(arguments.json, json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
