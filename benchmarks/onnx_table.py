"""One network in all its forms, here, in onnxruntime and in LiteRT: size, accuracy, time.

    python3 -m benchmarks.onnx_table [--network resnet8] [--records 1000] [--output FILE.json]

The forms are float, dynamic int8 (int8 weights), static int8 (the whole network) and learned levels
of 4 to 1 bits for weights and inputs. Each is written as .circle, as .onnx, and as .tflite where it
has that form; every file is run by its own runtime on one thread, on the same records of the test
data, one at a time: share of right answers, and the median of warmed-up runs, taken turn by turn.
LUCIOLE_DATA names the folder of the data. onnxruntime computes learned levels from the bodies in
the file: it unpacks them once into floats, and computes with those.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import luciole
from benchmarks.accuracy_subjects import Subject, cifar, mnist
from benchmarks.accuracy_table import markdown
from benchmarks.machine import machine
from luciole.exporters import save
from luciole.files import write_file
from luciole.ir import LucioleError, Model
from luciole.tools.bench.compare import contenders
from luciole.tools.bench.inputs import data_inputs
from luciole.tools.bench.judging import Judge
from luciole.tools.bench.ours import Luciole
from luciole.tools.bench.peers import LiteRT, OnnxRuntime
from luciole.tools.bench.runtime import Runtime
from luciole.tools.common.console import say, to_json
from luciole.tools.common.timing import Limits
from luciole.tools.data import Data

PACKAGES = ("luciole", "numba", "numpy", "onnx", "onnxruntime", "ai-edge-litert")
DATA = Path(os.environ.get("LUCIOLE_DATA", "data"))
WIDTHS = (4, 3, 2, 1)
NETWORKS: dict[str, Callable[[], Subject]] = {
    "resnet8": lambda: cifar(DATA / "cifar10_subset.npz", DATA / "models" / "resnet8_fp32.tflite"),
    "mnist97": lambda: mnist("mnist97", DATA / "mnist.npz", Path(tempfile.gettempdir())),
}


@dataclass(frozen=True)
class Cell:
    """What one runtime made of one form: bytes of its file, percent of right answers, and the
    median of a run in microseconds.
    """

    form: str
    runtime: str
    bytes: int
    top1: float
    median_us: float


def forms(subject: Subject, calibration: int) -> Iterator[tuple[str, Model]]:
    """Make the network's forms, one after the other, from so many records."""
    data = subject.calibration(calibration, 0)
    yield "float", subject.model
    yield "dynamic int8", luciole.quantize(subject.model, scheme="dynamic", proof=False).model
    yield "static int8", luciole.quantize(subject.model, data, scheme="int8", proof=False).model
    for bits in WIDTHS:
        yield (
            f"learned {bits} bits",
            luciole.quantize(subject.model, data, encode_bits=bits, proof=False).model,
        )


def runtimes(model: Model, folder: Path) -> list[Runtime]:
    """Write a model's files and load each: ours first, LiteRT's where the format has the model."""
    for extension in ("circle", "onnx"):
        save(model, folder / f"m.{extension}")
    found = [Luciole(folder / "m.circle"), OnnxRuntime(folder / "m.onnx", 1, ())]
    try:
        save(model, folder / "m.tflite")
    except LucioleError:
        return found
    return [*found, LiteRT(folder / "m.tflite", 1, ())]


def measured(form: str, model: Model, data: Data, seconds: float) -> list[Cell]:
    """The cells of one form."""
    with tempfile.TemporaryDirectory() as folder:
        ours, *peers = runtimes(model, Path(folder))
        assert isinstance(ours, Luciole), "it comes first"
        limits = Limits(runs=20, min_seconds=seconds, max_seconds=60, warmup_seconds=0.1)
        batches = list(data_inputs(ours, data, 8))
        found = contenders(ours, peers, batches, limits)
        Judge(found, ours, data).run(lambda count: None)
        return [
            Cell(
                form,
                c.runtime.kind or "luciole",
                c.bytes,
                100 * (c.top1 or 0.0),
                c.invoke.median_us,
            )
            for c in found
        ]


RUNTIMES = ("luciole", "onnxruntime", "litert")


def lines(cells: Sequence[Cell]) -> list[list[str]]:
    """The table: a row for each form, and of each runtime bytes, accuracy and time."""
    columns = ("bytes", "top-1 %", "us")
    head = ["form", *(f"{runtime} {column}" for runtime in RUNTIMES for column in columns)]
    by_form: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        by_form.setdefault(cell.form, {})[cell.runtime] = cell
    return [head, *([form, *_figures(found)] for form, found in by_form.items())]


def _figures(found: dict[str, Cell]) -> Iterator[str]:
    for runtime in RUNTIMES:
        cell = found.get(runtime)
        if cell is None:
            yield from ("-", "-", "-")
        else:
            yield from (f"{cell.bytes:,}", f"{cell.top1:.1f}", f"{cell.median_us:.1f}")


def main() -> None:
    """Measure, print the table, write what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--network", choices=sorted(NETWORKS), default="resnet8")
    parser.add_argument("--records", type=int, default=1000, help="of the test data")
    parser.add_argument("--calibration", type=int, default=500, help="records to quantize with")
    parser.add_argument("--seconds", type=float, default=0.5, help="of timing each runtime")
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="also write the figures")
    given = parser.parse_args()
    subject = NETWORKS[given.network]()
    assert subject.labels is not None, "these networks have labels"
    chosen = np.asarray(subject.test[: given.records])
    data = Data({subject.model.graph.inputs[0].name: chosen}, subject.labels[: given.records])
    cells: list[Cell] = []
    for form, model in forms(subject, given.calibration):
        cells += measured(form, model, data, given.seconds)
        say(f"{form}: done")
    print(markdown(lines(cells)))
    facts = machine(PACKAGES)
    print(f"\n{facts}")
    if given.output:
        write_file(given.output, to_json({"machine": facts, "cells": [asdict(c) for c in cells]}))


if __name__ == "__main__":
    main()
