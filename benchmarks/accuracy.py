"""The accuracy of quantized networks: methods down, widths across, means of calibration draws.

    python3 -m benchmarks.accuracy --mnist mnist.npz --lstm mnist_lstm_fp32.tflite
    python3 -m benchmarks.accuracy --cifar cifar10_subset.npz --resnet resnet8_fp32.tflite \\
        --ad01 ad01_fp32.tflite --widths 4,w4a8,w2a4 --seeds 1 --plot accuracy.png

Needs tensorflow for MNIST, whose two networks are trained once and kept beside the JSON file. A
seed draws the calibration records from the training data and starts everything random. Methods:
published (dense layers with learned inputs only), fit, fit + fine-tuning (label-free, on all
training data), and uniform affine quantization (benchmarks/affine.py) without and with bias
correction, the size of whose file is computed. The autoencoder ad01 is fed with made-up sounds
(benchmarks/machine_sound.py) and judged by its error of reconstruction. Rows are written to the
JSON file as they are measured.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.accuracy_subjects import DEFAULT_WIDTHS, Subject, ad01, cifar, lstm, mnist
from benchmarks.accuracy_table import FLOAT, Row, Width, figure_type, markdown, plot, tables
from benchmarks.affine import quantize_affine
from benchmarks.machine import machine
from luciole.api import finetune, quantize
from luciole.exporters import to_bytes
from luciole.files import write_file
from luciole.ir import Array, LucioleError, Model
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.passes.canonical.unroll_unidirseqlstm import unroll_unidirseqlstm
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.lquantizer import Choice, Config
from luciole.tools.common.command import UsageError
from luciole.tools.common.console import say, to_json

METHODS = ("published", "fit", "affine", "affine + bias")
TUNED = "fit + fine-tuning"
PACKAGES = ("luciole", "numba", "numpy", "tensorflow-cpu")


def parser() -> argparse.ArgumentParser:
    """The program's arguments."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--mnist", type=Path, metavar="mnist.npz", help="Keras's data")
    made.add_argument("--cifar", type=Path, metavar="FILE.npz", help="CIFAR-10 in the same layout")
    made.add_argument("--resnet", type=Path, metavar="FILE.tflite", help="the network for it")
    made.add_argument("--lstm", type=Path, metavar="FILE.tflite", help="an LSTM for MNIST")
    made.add_argument("--ad01", type=Path, metavar="FILE.tflite", help="MLPerf Tiny's autoencoder")
    made.add_argument("--only", metavar="NAMES", help=f"of {','.join(DEFAULT_WIDTHS)}")
    made.add_argument("--methods", metavar="NAMES", help=f"of {','.join(METHODS)}")
    made.add_argument("--widths", metavar="LIST", help="such as 1,2,w2a4 (default: by network)")
    made.add_argument("--seeds", type=int, default=3, metavar="N", help="draws (default 3)")
    made.add_argument("--calibration", type=int, default=1000, metavar="N", help="images (1000)")
    made.add_argument("--finetune", type=int, default=0, metavar="EPOCHS", help="also fine-tune")
    made.add_argument("--plot", type=Path, metavar="FILE.png", help="accuracy against file size")
    made.add_argument("--output", type=Path, default=Path("accuracy.json"), metavar="FILE.json")
    return made


def chosen(text: str | None, known: Sequence[str], what: str) -> list[str]:
    """Names from a list with commas. Raises UsageError for an unknown one."""
    names = list(known) if text is None else text.split(",")
    for name in names:
        if name not in known:
            raise UsageError(f"{name!r} is no {what}: there is {', '.join(known)}")
    return names


def networks(arguments: argparse.Namespace) -> list[str]:
    """The networks to measure: those whose data were given. Raises UsageError without any."""
    given = ["mnist97", "mnist98"] if arguments.mnist else []
    given += ["lstm"] if arguments.mnist and arguments.lstm else []
    given += ["cifar"] if arguments.cifar and arguments.resnet else []
    given += ["ad01"] if arguments.ad01 else []
    wanted = chosen(arguments.only, list(DEFAULT_WIDTHS), "network")
    found = [name for name in wanted if name in given]
    if not found or (arguments.only and found != wanted):
        raise UsageError(
            "give the networks' data: --mnist, also with --lstm, --cifar with --resnet, or --ad01"
        )
    return found


def widths(arguments: argparse.Namespace, network: str) -> list[Width]:
    """The widths to measure a network at."""
    return [Width.parse(w) for w in (arguments.widths or DEFAULT_WIDTHS[network]).split(",")]


def measured(subject: Subject, arguments: argparse.Namespace) -> Iterator[Row]:
    """The float network's row, then one for each method, width and seed."""
    size = len(to_bytes(subject.model))
    yield _row(subject, FLOAT, None, 0, (subject.model, size), time.perf_counter())
    for method in chosen(arguments.methods, METHODS, "method"):
        for width in widths(arguments, subject.name):
            if method != "published" or _can_be_published(subject, width):
                for seed in range(arguments.seeds):
                    yield from _rows(subject, method, width, seed, arguments)


def _can_be_published(subject: Subject, width: Width) -> bool:
    """Whether the published method quantizes the layers that the others do."""
    dense = not any(isinstance(op, Conv2D) for op in subject.model.graph.ops)
    return dense and not subject.has_lstm and width.inputs is not None


def _rows(
    subject: Subject, method: str, width: Width, seed: int, arguments: argparse.Namespace
) -> Iterator[Row]:
    """One row, and for the fit another one after fine-tuning."""
    records = subject.calibration(arguments.calibration, seed)
    begun = time.perf_counter()
    made = _quantized(subject, method, width, seed, records)
    yield _row(subject, method, width, seed, made, begun)
    if method == "fit" and arguments.finetune and width.inputs is not None:
        tuned = _finetuned(subject, made[0], seed, arguments.finetune)
        yield _row(subject, TUNED, width, seed, (tuned, len(to_bytes(tuned))), begun)


def _row(
    subject: Subject,
    method: str,
    width: Width | None,
    seed: int,
    made: tuple[Model, int],
    begun: float,
) -> Row:
    """What a model and the bytes of its file are worth."""
    seconds = time.perf_counter() - begun
    text, (model, size) = None if width is None else str(width), made
    score = subject.score(model)
    return Row(subject.name, subject.metric, method, text, seed, score, size, seconds)


def _quantized(
    subject: Subject, method: str, width: Width, seed: int, records: Array
) -> tuple[Model, int]:
    """A quantized model and the bytes of its file."""
    config = width.config(subject.model)
    if method.startswith("affine"):
        model = subject.model.clone()
        if unroll_unidirseqlstm(model.graph):
            remove_dead(model.graph)
        given = {model.graph.inputs[0].name: records}
        return quantize_affine(model, given, Config.parse(config, Choice()), method != "affine")
    result = quantize(
        subject.model,
        records,
        config=config,
        method="fit" if method == "fit" else "published",
        unroll_lstms=subject.has_lstm,
        seed=seed,
        proof=False,  # test records judge
    )
    return result.model, result.report.bytes_after


def _finetuned(subject: Subject, student: Model, seed: int, epochs: int) -> Model:
    from luciole.lquantizer.training import FinetuneSettings

    settings = FinetuneSettings(seed=seed)
    teacher, images = subject.model, subject.images
    tuned = finetune(student, teacher, images, epochs=epochs, settings=settings, proof=False)
    return tuned.model


def _subject(name: str, arguments: argparse.Namespace) -> Subject:
    if name == "ad01":
        return ad01(arguments.ad01)
    if name == "lstm":
        return lstm(arguments.mnist, arguments.lstm)
    if name == "cifar":
        return cifar(arguments.cifar, arguments.resnet)
    return mnist(name, arguments.mnist, arguments.output.parent)


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """What the figures depend on."""
    threads = f"OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'unset')}"
    names = ("seeds", "calibration", "finetune")
    return {"machine": machine(PACKAGES, threads), **{n: vars(arguments)[n] for n in names}}


def check(arguments: argparse.Namespace) -> None:
    """Refuse before long work what would fail behind it. Raises LucioleError."""
    chosen(arguments.methods, METHODS, "method")
    for name in networks(arguments):
        widths(arguments, name)
    if arguments.plot:
        figure_type()


def run(arguments: argparse.Namespace) -> None:
    """Measure everything, write the JSON file and print the tables."""
    check(arguments)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    settings, rows = _settings(arguments), list[Row]()
    for name in networks(arguments):
        for row in measured(_subject(name, arguments), arguments):
            rows.append(row)
            content = {**settings, "rows": [asdict(r) for r in rows]}
            write_file(arguments.output, to_json(content))
            say(
                f"{row.network} {row.method} {row.width or ''} seed {row.seed}: {row.score:.2f} %, "
                f"{row.seconds:.1f} s"
            )
        for title, grid in tables(rows, name):
            print(f"{title}\n\n{markdown(grid)}\n", flush=True)
    print(", ".join(f"{n}: {v}" for n, v in settings.items()))
    if arguments.plot:
        plot(rows, arguments.plot)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program."""
    arguments = parser().parse_args(argv)
    try:
        run(arguments)
    except LucioleError as error:
        parser().exit(1, f"accuracy: error: {error}\n")


if __name__ == "__main__":
    main()
