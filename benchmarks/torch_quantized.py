"""Torch networks quantized here and by onnxruntime, from one file and the same records.

    python3 -m benchmarks.torch_quantized [--only NAMES] [--schemes WORDS] [--keep FOLDER]

Each network of ``benchmarks.torch_subjects`` is trained for a minute (``benchmarks.torch_tasks``;
``--keep`` holds what was trained) and exported by torch for one record. Its file is quantized by
both from the same records of the training data, and judged by records held back: the share of
answers that are the float network's, and signal over noise of all outputs in dB. What is judged is
the file's bytes: ours through luciole's interpreter, the other's through onnxruntime. Bits are
those of weights and of what layers read. onnxruntime's static quantization is asked for channels,
and for the better of two ways to ranges (the extremes and its percentiles); its dynamic one for
channels. LUCIOLE_DATA names the folder with cifar10_subset.npz.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from onnxruntime import quantization  # type: ignore[import-untyped]  # it has no types

import luciole
from benchmarks.accuracy_table import markdown
from benchmarks.machine import machine
from benchmarks.torch_networks import PACKAGES, Reader, exported, quiet_session
from benchmarks.torch_subjects import SUBJECTS, Subject
from benchmarks.torch_tasks import class_axis, task, trained
from luciole.exporters import to_bytes
from luciole.importers.silence import silent
from luciole.interpreter import Interpreter
from luciole.interpreter.records import outputs_of
from luciole.ir import Array
from luciole.lquantizer.report import error_of
from luciole.tools.common.console import say

CALIBRATION, JUDGES = 256, 500
HEAD = ["network", "scheme", "agree %", "SNR dB", "KB", "onnxruntime", "agree %", "SNR dB", "KB"]
STATIC, DYNAMIC = "static", "dynamic"
LAYERS = ("Conv", "ConvTranspose", "MatMul", "Gemm")
"""What reads integers of 4 bits in onnxruntime."""
_UNMOVED = {"disable_quant_qdq": "1"}
"""Has QUANTIZE and DEQUANTIZE computed where they stand: onnxruntime moves them over pools, and
then refuses the pools' integers of 4 bits.
"""
INT4, INT8 = quantization.QuantType.QInt4, quantization.QuantType.QInt8


@dataclass(frozen=True)
class Case:
    """A network's file and its input's name, the records that it learns from and is judged by, and
    its answers to these; ``axis`` is that of its classes.
    """

    path: Path
    kind: str
    records: Array
    judges: Array
    exact: Array
    axis: int

    def figures(self, answers: Array, size: int) -> list[str]:
        """Say how many answers stay, how far away all numbers are, and how large the file is."""
        same = answers.argmax(self.axis) == self.exact.argmax(self.axis)
        ratio = error_of(self.exact, answers)[1]
        decibel = "exact" if ratio is None else f"{ratio:.1f}"
        return [f"{100 * same.mean():.1f}", decibel, f"{size / 1000:.1f}"]


@dataclass(frozen=True)
class Scheme:
    """A way to quantize: our options, and the kinds of files of onnxruntime that stand beside."""

    options: Mapping[str, Any]
    kind: str
    peer: str
    weights: Any = INT8
    inputs: Any = INT8
    operators: tuple[str, ...] | None = None
    """What onnxruntime quantizes; None for all that it can."""


SCHEMES = {
    "int8": Scheme({"scheme": "int8"}, STATIC, "static w8a8"),
    "w4a8": Scheme({"scheme": "w4a8"}, STATIC, "static w4a8", INT4),
    "dynamic": Scheme({"scheme": "dynamic"}, DYNAMIC, "dynamic w8a8"),
    "learned 4": Scheme({"encode_bits": 4}, STATIC, "static w4a4", INT4, INT4, LAYERS),
    "learned 4 of all": Scheme(
        {"encode_bits": 4, "all_layers": True}, STATIC, "static w4a4", INT4, INT4, LAYERS
    ),
}


def case_of(subject: Subject, keep: Path, folder: Path) -> Case:
    """Train a network, and export it for one record."""
    module, own = trained(subject, keep), task(subject)
    rng = np.random.default_rng(4)
    records = own.train[np.sort(rng.permutation(len(own.train))[:CALIBRATION])]
    alone = replace(subject, example=(1, *subject.example[1:]))
    vars(alone)["module"] = module
    path = exported(alone, folder, dynamo=True)
    judges = own.test[:JUDGES]
    exact = theirs(path, subject.kind, judges)
    return Case(path, subject.kind, records, judges, exact, class_axis(own.labels))


def theirs(path: Path, kind: str, records: Array, **entries: str) -> Array:
    """Compute onnxruntime's answers, record by record, with entries of its session."""
    session = quiet_session(path, **entries)
    return np.concatenate([session.run(None, {kind: x[None]})[0] for x in records])


def ours(case: Case, options: Mapping[str, Any]) -> list[str]:
    """Quantize here, and judge the file."""
    found = luciole.quantize(case.path, case.records, proof=False, **options)
    content = to_bytes(found.model)
    (answers,) = outputs_of(Interpreter(luciole.load(content)), {case.kind: case.judges}).values()
    return case.figures(answers, len(content))


def peers(case: Case, scheme: Scheme) -> list[str]:
    """Quantize by onnxruntime, and judge the file that is nearer of those that it makes."""
    path = case.path.with_suffix(".quantized.onnx")
    entries = _UNMOVED if scheme.inputs == INT4 else {}
    rows = []
    for ranges in quantization.CalibrationMethod.MinMax, quantization.CalibrationMethod.Percentile:
        try:
            if scheme.kind == DYNAMIC:
                quantization.quantize_dynamic(case.path, path, per_channel=True)
            else:
                _static(case, path, scheme, ranges)
            answers = theirs(path, case.kind, case.judges, **entries)
            rows.append(case.figures(answers, path.stat().st_size))
        except Exception as error:  # of onnxruntime's own classes, which have no common base
            say(f"onnxruntime, {scheme.peer}, {ranges.name}: {error}"[:300])
        if scheme.kind == DYNAMIC:
            break
    return max(rows, key=lambda row: float(row[1]), default=["refused", "", ""])


def _static(case: Case, path: Path, scheme: Scheme, ranges: quantization.CalibrationMethod) -> None:
    """Quantize as onnxruntime's manual does: after its own shape inference, channel by channel."""
    prepared = path.with_suffix(".prepared.onnx")
    with silent():
        quantization.shape_inference.quant_pre_process(case.path, prepared)
        quantization.quantize_static(
            prepared,
            path,
            Reader(case.kind, case.records[:, None]),
            per_channel=True,
            calibrate_method=ranges,
            activation_type=scheme.inputs,
            weight_type=scheme.weights,
            op_types_to_quantize=scheme.operators,
        )


def rows(case: Case, name: str, schemes: Sequence[str]) -> Iterator[list[str]]:
    """Yield a network's lines, one for each scheme."""
    for word in schemes:
        scheme, begun = SCHEMES[word], time.process_time()
        mine = ours(case, scheme.options)
        seconds = time.process_time() - begun
        line = [name, word, *mine, scheme.peer, *peers(case, scheme)]
        say(f"{' | '.join(line)} ({seconds:.0f} s)")
        yield line


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", metavar="NAMES", help="parts of names, with commas")
    parser.add_argument("--schemes", default=",".join(SCHEMES), metavar="WORDS", help="(all)")
    parser.add_argument(
        "--keep", type=Path, default=Path("trained-networks"), metavar="FOLDER", help="networks"
    )
    arguments = parser.parse_args()
    parts, table = arguments.only.split(","), [HEAD]
    torch.set_num_threads(1)
    for subject in SUBJECTS:
        if any(part in subject.name for part in parts):
            with tempfile.TemporaryDirectory() as folder:
                case = case_of(subject, arguments.keep, Path(folder))
                table += rows(case, subject.name, arguments.schemes.split(","))
    print(f"{markdown(table)}\n\n{machine(PACKAGES)}")


if __name__ == "__main__":
    main()
