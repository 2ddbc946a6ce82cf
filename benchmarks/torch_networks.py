"""Networks from torch, imported by every door and compared with torch: prints a table.

    python3 -m benchmarks.torch_networks [--only NAMES] [--quantized] [--output FILE.json]

Each network of ``benchmarks.torch_subjects`` is loaded as a module and from a .pt2 file, and
exported by torch's two exporters (``dynamo`` and ``script``), with the example's extents and with
open ones. All are imported without an option. The largest difference from torch's answers, as a
share of the largest number, is of the example's size and, behind a slash, of another one; beside it
is that of onnxruntime where it is more than 1e-5. With ``--quantized`` onnxruntime's quantizers
make integers of each first, and what is imported is compared with onnxruntime on that file, as a
share of the range of the float network's answers. NumPy counts operators without a compiled form.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # it has no types
import torch
from onnxruntime import quantization

import luciole
from benchmarks.accuracy_table import markdown
from benchmarks.machine import machine
from benchmarks.torch_subjects import SUBJECTS, Subject
from luciole.files import write_file
from luciole.importers.silence import silent
from luciole.interpreter import Interpreter
from luciole.ir import Array, LucioleError, Model
from luciole.tools.common.console import say, to_json
from luciole.tools.common.declined import declined

PACKAGES = ("luciole", "numba", "numpy", "torch", "torchvision", "onnxscript", "onnxruntime")
OUTPUT = "scores"
NEAR = 1e-5
HEAD = ["network", "from", "extents", "luciole", "onnxruntime", "operators", "NumPy"]
QUANTIZED_HEAD = ["network", "quantizer", "luciole", "operators", "NumPy"]
_RECORDS = 64
"""Records that onnxruntime's static quantizer is calibrated with."""

Axes = Mapping[int, str] | None
"""Names of axes that stay open; None where all have the example's extents."""


def rows(subject: Subject, folder: Path) -> Iterator[list[str]]:
    """Yield a network's lines: one for each door and kind of extents."""
    for axes in (None, subject.open_axes(dynamo=True)):
        yield _line(subject, "module", axes, partial(module, subject, axes))
        path = program(subject, folder, axes)
        yield _line(subject, ".pt2", axes, partial(luciole.load, path))
    for dynamo, door in ((True, "dynamo"), (False, "script")):
        for axes in (None, subject.open_axes(dynamo)):
            path = exported(subject, folder, dynamo, axes)
            yield _line(subject, door, axes, partial(luciole.load, path), path)


def module(subject: Subject, axes: Axes) -> Model:
    """Load a network as a module."""
    return luciole.load(subject.module, subject.inputs(), dynamic_shapes=axes)


def program(subject: Subject, folder: Path, axes: Axes) -> Path:
    """Save a network as torch.export does."""
    open_ = None if axes is None else (dict.fromkeys(axes, torch.export.Dim.DYNAMIC),)
    path = folder / "network.pt2"
    inputs = (subject.inputs(),)
    with silent():
        torch.export.save(torch.export.export(subject.module, inputs, dynamic_shapes=open_), path)
    return path


def exported(subject: Subject, folder: Path, dynamo: bool, axes: Axes = None) -> Path:
    """Export a network by one of torch's exporters."""
    path = folder / "network.onnx"
    options: dict[str, Any] = {"input_names": [subject.kind], "output_names": [OUTPUT]}
    if dynamo:
        shapes = None if axes is None else (dict(axes),)
        options |= {"dynamic_shapes": shapes, "external_data": False}
    elif axes is not None:
        options |= {"dynamic_axes": {subject.kind: dict(axes), OUTPUT: {0: axes[0]}}}
    with silent(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            subject.module, (subject.inputs(),), path, dynamo=dynamo, verbose=False, **options
        )
    return path


def _line(
    subject: Subject, door: str, axes: Axes, load: Callable[[], Model], path: Path | None = None
) -> list[str]:
    """Import by one door, and compare with torch at the example's size and another one."""
    say(f"{subject.name}, {door} ...")
    begin = [subject.name, door, "fixed" if axes is None else ", ".join(axes.values())]
    sizes = [subject.inputs(), *([] if axes is None else [subject.inputs(axes)])]
    try:
        interpreter = Interpreter(load())
        ours = [_ours(interpreter, x.numpy()) for x in sizes]
    except LucioleError as error:
        return [*begin, f"refused: {error}"[:120], "", "", ""]
    exact = [subject.answers(x) for x in sizes]
    peers = [] if path is None else [theirs(path, x.numpy()) for x in sizes]
    shown = " / ".join(f"{_apart(y, z):.0e}" for y, z in zip(ours, exact, strict=True))
    far = [_apart(y, z) for y, z in zip(peers, exact, strict=False)]
    beside = "" if all(n <= NEAR for n in far) else " / ".join(f"{n:.0e}" for n in far)
    operators = len(interpreter.graph.ops)
    return [*begin, shown, beside, str(operators), str(len(declined(interpreter.plan)))]


def _ours(interpreter: Interpreter, x: Array) -> Array:
    return next(iter(interpreter.run(x).values()))


def theirs(path: Path, x: Array) -> Array:
    """Compute onnxruntime's answers; what it refuses to run is not a number."""
    try:
        session = quiet_session(path)
        answers: Array = session.run(None, {session.get_inputs()[0].name: x})[0]
    except Exception:  # of onnxruntime's own classes, which have no common base
        return np.array(np.nan)
    return answers


def quiet_session(path: Path, **entries: str) -> Any:
    """Load a file into onnxruntime, for one thread and without its messages, with entries of its
    session's configuration.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    for name, value in entries.items():
        options.add_session_config_entry(f"session.{name}", value)
    return onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])


def _apart(y: Array, exact: Array, span: float | None = None) -> float:
    """Compute the largest difference, as a share of the largest number or of a span."""
    if y.shape != exact.shape:
        return float("nan")
    return float(np.abs(y - exact).max() / (np.abs(exact).max() if span is None else span))


# ------------------------------------------------------------------------------------- quantized
def quantized_rows(subject: Subject, folder: Path) -> Iterator[list[str]]:
    """Yield a network's lines: one for each of onnxruntime's quantizers and each exporter."""
    for door in ("dynamo", "script"):
        source = exported(subject, folder, door == "dynamo")
        for kind, quantize in QUANTIZERS.items():
            say(f"{subject.name}, {kind} ...")
            path = folder / "quantized.onnx"
            with silent():
                quantize(source, path, subject)
            yield [subject.name, f"{kind}, {door}", *_compared(subject, path)]


def _compared(subject: Subject, path: Path) -> list[str]:
    x = subject.inputs().numpy()
    try:
        interpreter = Interpreter(luciole.load(path))
        ours = _ours(interpreter, x)
    except LucioleError as error:
        return [f"refused: {error}"[:160], "", ""]
    exact = subject.answers(subject.inputs())
    apart = _apart(ours, theirs(path, x), float(np.ptp(exact)))
    in_numpy = len(declined(interpreter.plan))
    return [f"{apart:.4f}", str(len(interpreter.graph.ops)), str(in_numpy)]


def dynamic(source: Path, path: Path, subject: Subject) -> None:
    """Quantize by onnxruntime's ``quantize_dynamic`` as its manual does."""
    quantization.quantize_dynamic(source, path)


def static(source: Path, path: Path, subject: Subject, **options: Any) -> None:
    """Quantize by onnxruntime's ``quantize_static``, channel by channel, as its manual does: after
    its own shape inference.
    """
    prepared = path.with_suffix(".prepared.onnx")
    quantization.shape_inference.quant_pre_process(source, prepared, skip_symbolic_shape=True)
    size = subject.example[0]
    batches = subject.records(_RECORDS, 7).numpy().reshape(-1, *subject.example)
    assert len(batches) * size == _RECORDS, "batches make up the records"
    reader = Reader(subject.kind, batches)
    quantization.quantize_static(prepared, path, reader, per_channel=True, **options)


class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]  # it has no types
    """Hands batches to onnxruntime."""

    def __init__(self, name: str, batches: Array) -> None:
        self._left = iter([{name: batch} for batch in batches])

    def get_next(self) -> dict[str, Array] | None:
        """Return the next batch, None behind the last."""
        return next(self._left, None)


QUANTIZERS = {"dynamic": dynamic, "static": static}


def main() -> None:
    """Measure, print the table, write what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="NAMES", help="parts of names, with commas between")
    parser.add_argument("--quantized", action="store_true", help="onnxruntime's integers")
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="also write the figures")
    arguments = parser.parse_args()
    head, lines = (QUANTIZED_HEAD, quantized_rows) if arguments.quantized else (HEAD, rows)
    parts = (arguments.only or "").split(",")
    chosen = [s for s in SUBJECTS if any(part in s.name for part in parts)]
    with tempfile.TemporaryDirectory() as folder:
        table = [line for subject in chosen for line in lines(subject, Path(folder))]
    print(markdown([head, *table]))
    facts = machine(PACKAGES)
    print(f"\n{facts}")
    if arguments.output:
        write_file(arguments.output, to_json({"machine": facts, "head": head, "rows": table}))


if __name__ == "__main__":
    main()
