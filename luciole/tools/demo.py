"""``luciole demo``: quantize a model to 3, 2 and 1 bits and compare size, accuracy and time."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from luciole.tools.common import console
from luciole.tools.common.command import FINE, add_common, parser_for, run_program

if TYPE_CHECKING:
    from luciole.interpreter.records import Track
    from luciole.ir import Model
    from luciole.tools.data import Data

BITS = (3, 2, 1)
DIGITS_PREPROCESS = "(x - 4.884) / 6.017"
"""The bundled pixels' mean and standard deviation: one bit holds +a and -a, so values must lie
around 0.
"""


@dataclass
class Subject:
    """A float model, unlabelled records to learn levels from, and labelled ones to judge by."""

    name: str
    model: Model
    calibration: Data
    test: Data


def main(argv: Sequence[str] | None = None, program: str = "luciole demo") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument(
        "--mnist",
        metavar="mnist.npz",
        help="train 784-690(tanh)-10(softmax) on MNIST with Keras (extra tensorflow) and use that",
    )
    parser.add_argument(
        "--output", metavar="FOLDER", default="luciole-demo", help="the folder of the files"
    )
    parser.add_argument(
        "--calibration",
        type=int,
        default=1000,
        metavar="N",
        help="the number of records to learn levels from",
    )
    parser.add_argument(
        "--method",
        choices=("fit", "published"),
        default="fit",
        help="keep each layer's output close (default), or the published baseline",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of training and of the first bases"
    )
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    folder = _folder(arguments.output)
    with console.tracked(arguments.json) as track:
        subject = _mnist(arguments, track) if arguments.mnist else _digits(arguments)
        models = _quantized(subject, arguments, track)
        files = _save(subject.name, models, folder)
        rows = _rows(subject, models, files, track)
    if arguments.json:
        console.print_json({"rows": rows, "files": [str(f) for f in files]})
        return FINE
    _print(subject, rows, files)
    return FINE


def _folder(path: str) -> Path:
    from luciole.ir import LucioleError

    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LucioleError(f"cannot write into {folder}: {error.strerror or error}") from None
    return folder


def _digits(arguments: argparse.Namespace) -> Subject:
    """Load the bundled network and its data: UCI's 8 x 8 handwritten digits."""
    from luciole.importers import load

    with resources.as_file(resources.files("luciole") / "demo_data") as bundled:
        model = load(bundled / "digits.circle")
        return _subject(
            "digits", model, bundled / "digits.npz", DIGITS_PREPROCESS, arguments.calibration
        )


def _mnist(arguments: argparse.Namespace, track: Track) -> Subject:
    from luciole.importers.keras.convert import from_keras
    from luciole.tools import demo_mnist

    trained = demo_mnist.train(
        Path(arguments.mnist), arguments.seed, track("training", demo_mnist.EPOCHS)
    )
    path = Path(arguments.mnist)
    return _subject(
        "mnist", from_keras(trained), path, demo_mnist.PREPROCESS, arguments.calibration
    )


def _subject(name: str, model: Model, data: Path, preprocess: str, calibration: int) -> Subject:
    from luciole.tools.data import load_data

    learn = load_data(f"{data}:x_train", model.graph, limit=calibration, preprocess=preprocess)
    test = load_data(f"{data}:x_test", model.graph, preprocess=preprocess)
    return Subject(name, model, learn, test)


def _quantized(subject: Subject, arguments: argparse.Namespace, track: Track) -> dict[str, Model]:
    """Quantize the float model, and name it and the quantized ones by their rows."""
    from luciole.api import quantize

    models = {"fp32": subject.model}
    for bits in BITS:
        result = quantize(
            subject.model,
            subject.calibration.records,
            encode_bits=bits,
            method=arguments.method,
            seed=arguments.seed,
            proof=False,  # the files are judged by test records
            track=lambda what, total, bits=bits: track(f"int{bits}: {what}", total),  # type: ignore[misc]  # bound now
        )
        models[f"int{bits}"] = result.model
    return models


def _save(name: str, models: dict[str, Model], folder: Path) -> list[Path]:
    from luciole.exporters import save

    files = [folder / f"{name}-{row}.circle" for row in models]
    for model, file in zip(models.values(), files, strict=True):
        save(model, file)
    return files


def _rows(
    subject: Subject, models: dict[str, Model], files: Sequence[Path], track: Track
) -> list[dict[str, Any]]:
    """Write one row for each file as it was written: it is read again before it is judged."""
    from luciole.importers import load
    from luciole.interpreter.evaluation import answers_of, share_right
    from luciole.tools.common.timing import interleaved_medians

    labels = subject.test.labels
    assert labels is not None, "both data sets have labels"
    written = [load(file) for file in files]
    shares = []
    for row, model in zip(models, written, strict=True):
        answers = answers_of(
            model, subject.test.records, track(f"{row}: accuracy", subject.test.count)
        )
        shares.append(share_right(answers, labels))
    times = interleaved_medians([_invocation(model, subject) for model in written])
    return [
        {"name": row, "bytes": file.stat().st_size, "top1": share, "median_us": microseconds}
        for row, file, share, microseconds in zip(models, files, shares, times, strict=True)
    ]


def _invocation(model: Model, subject: Subject) -> Any:
    """Make a call for one inference of one record, arrays already in place."""
    from luciole.interpreter import Interpreter

    interpreter = Interpreter(model)
    name, records = next(iter(subject.test.records.items()))
    interpreter.run({name: records[:1]})
    return interpreter.invoke


def _print(subject: Subject, rows: Sequence[dict[str, Any]], files: Sequence[Path]) -> None:
    table = [("model", "file size", "smaller", "top-1", "time per inference")]
    table += [_cells(row, rows[0]["bytes"]) for row in rows]
    learned = f"levels learned from {subject.calibration.count} unlabelled records"
    console.print_table(table, f"{subject.name}: {subject.test.count} test records, {learned}")
    console.show()
    console.show("written:")
    for file in files:
        console.show(f"  {file}")
    console.show()
    console.show(f"look inside:  circle-view {files[0]} {files[-1]}")


def _cells(row: dict[str, Any], float_bytes: int) -> tuple[str, str, str, str, str]:
    return (
        row["name"],
        console.size_text(row["bytes"]),
        f"{float_bytes / row['bytes']:.1f}x",
        f"{100 * row['top1']:.2f} %",
        console.time_text(row["median_us"]),
    )
