"""``luciole eval``: run a model over labelled records and say how often it is right."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from luciole.tools.common import console
from luciole.tools.common.command import (
    FINE,
    UsageError,
    a_model,
    add_common,
    add_custom,
    add_data_bounds,
    parser_for,
    run_program,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from luciole.interpreter.records import Progress
    from luciole.ir import Array, Model
    from luciole.tools.data import Data


def main(argv: Sequence[str] | None = None, program: str = "luciole eval") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument("model", metavar="MODEL", help=a_model())
    parser.add_argument(
        "--data",
        required=True,
        metavar="DATA",
        help="records: HDF5, .npz[:array], .npy, a folder, a list file; "
        "uint8 and floats are quantized for a quantized input, its own type fed as it is",
    )
    parser.add_argument(
        "--labels", metavar="NAME", help="the labels: an array of the data file, or FILE[:NAME]"
    )
    parser.add_argument(
        "--preprocess", metavar="EXPR", help='arithmetic on the records, for example "x/255"'
    )
    parser.add_argument("--limit", type=int, metavar="N", help="use the first N records")
    parser.add_argument(
        "--against", metavar="MODEL", help="also run this model and count equal answers"
    )
    parser.add_argument(
        "--per-class",
        action="store_true",
        help="also print, class by class, how often it is recognized and what it is taken for",
    )
    add_data_bounds(parser)
    add_custom(parser)
    add_common(parser)
    return run_program(argv, parser, _run)


def _run(arguments: argparse.Namespace) -> int:
    from luciole.importers import load
    from luciole.tools.confusion import confusion_of
    from luciole.tools.data import Bounds, load_data

    model = load(arguments.model)
    data = load_data(
        arguments.data,
        model.graph,
        limit=arguments.limit,
        preprocess=arguments.preprocess,
        labels=arguments.labels,
        bounds=Bounds.of(arguments),
    )
    for line in data.summary():
        console.say(f"data: {line}")
    if arguments.per_class and data.labels is None:
        raise UsageError("--per-class needs labels: the data has none, --labels gives them")
    with console.tracked(arguments.json) as track:
        begun = time.perf_counter()
        answers = answers_of(model, data, track("records", data.count))
        seconds = time.perf_counter() - begun
        other = load(arguments.against) if arguments.against else None
        others = (
            None
            if other is None
            else answers_of(other, for_other(data, model, other), track("against", data.count))
        )
    figures = {"model": arguments.model, **_figures(answers, data, others), "seconds": seconds}
    confusion = None if data.labels is None else confusion_of(data.labels, answers)
    if data.labels is None and not arguments.against:
        console.say("note: the data has no labels, so nothing is counted: --labels gives them")
    _print(figures, confusion, arguments)
    return FINE


def _figures(answers: Array, data: Data, others: Array | None) -> dict[str, Any]:
    """Count the records, and the shares of right and of equal answers."""
    what = "answers of the other model"
    return {
        "records": data.count,
        "top1": None if data.labels is None else share_equal(answers, data.labels, "labels"),
        "agreement": None if others is None else share_equal(answers, others, what),
    }


def answers_of(model: Model, data: Data, progress: Progress | None = None) -> Array:
    """Find the index of the largest entry of the first output, record by record: [records]."""
    from luciole.interpreter import Interpreter
    from luciole.interpreter.records import run_records

    name = model.graph.outputs[0].name
    parts = [
        out[name].reshape(len(out[name]), -1).argmax(1)
        for out in run_records(Interpreter(model), data.records, progress)
    ]
    import numpy as np

    return np.concatenate(parts)


def for_other(data: Data, model: Model, other: Model) -> Data:
    """Turn a model's records into those that another one takes: under its names, quantized or made
    real.
    """
    from luciole.interpreter.compare import second_inputs
    from luciole.tools.data import Data

    count = len(other.graph.inputs)
    if count != len(data.records):
        raise UsageError(f"the other model has {count} inputs, the data {len(data.records)}")
    return Data(dict(second_inputs(model.graph, other.graph, data.records)), data.labels)


def share_equal(answers: Array, wanted: Array, what: str) -> float:
    """Measure the share of equal entries. Raises UsageError when their number differs."""
    if wanted.shape != answers.shape:
        raise UsageError(f"{len(answers)} answers, but the {what} have shape {list(wanted.shape)}")
    return float((answers == wanted).mean())


def _print(
    figures: dict[str, Any], confusion: NDArray[np.int64] | None, arguments: argparse.Namespace
) -> None:
    from luciole.tools.confusion import class_figures

    if arguments.json:
        matrix = None if confusion is None else confusion.tolist()
        classes = None if confusion is None else [asdict(c) for c in class_figures(confusion)]
        console.print_json({**figures, "confusion": matrix, "classes": classes})
        return
    console.show(f"records    {figures['records']}")
    if figures["top1"] is not None:
        console.show(f"top-1      {100 * figures['top1']:.2f} %")
    if figures["agreement"] is not None:
        console.show(f"agreement  {100 * figures['agreement']:.2f} % with {arguments.against}")
    console.show(f"time       {figures['seconds']:.2f} s")
    if arguments.per_class:
        _print_classes(confusion)


def _print_classes(confusion: NDArray[np.int64] | None) -> None:
    from luciole.tools.confusion import MOST_CLASSES, class_rows

    if confusion is None:
        console.say(
            f"luciole: warning: no table: labels and answers must be class numbers "
            f"from 0 to {MOST_CLASSES - 1}"
        )
        return
    console.show()
    console.print_table(class_rows(confusion))
