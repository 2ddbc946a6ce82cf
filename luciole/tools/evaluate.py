"""``luciole eval``: run a model over labelled records and say how often it is right."""

from __future__ import annotations

import argparse
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
    add_labelled,
    add_metric,
    parser_for,
    run_program,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from luciole.ir import Model
    from luciole.judging import Evaluation
    from luciole.tools.data import Data


def main(argv: Sequence[str] | None = None, program: str = "luciole eval") -> int:
    """Run the program."""
    parser = parser_for(program, __doc__ or "")
    parser.add_argument("model", metavar="MODEL", help=a_model())
    _add_records(parser)
    parser.add_argument(
        "--against", metavar="MODEL", help="also run this model and count equal answers"
    )
    parser.add_argument(
        "--output",
        metavar="NAME",
        help="judge this output (default: all that score classes)",
    )
    parser.add_argument(
        "--per-class",
        action="store_true",
        help="also print, class by class, how often it is recognized and what it is taken for",
    )
    add_metric(parser)
    add_data_bounds(parser)
    add_custom(parser)
    add_common(parser)
    return run_program(argv, parser, _run)


def _add_records(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data",
        required=True,
        metavar="DATA",
        help="records: HDF5, .npz[:array], .npy, a folder, a list file; "
        "uint8 and floats are quantized for a quantized input, its own type fed as it is",
    )
    add_labelled(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Count right and equal answers, or measure by a metric of the user's own."""
    from luciole.importers import load
    from luciole.judging import evaluate
    from luciole.tools.proving.options import asked_metric

    if arguments.metric and (arguments.per_class or arguments.output):
        raise UsageError("--metric judges all outputs: leave --per-class and --output out")
    if arguments.metric and arguments.ignore_label is not None:
        raise UsageError("--metric takes all labels: leave --ignore-label out")
    metric, model = asked_metric(arguments), load(arguments.model)
    other = load(arguments.against) if arguments.against else None
    data = _data(arguments, model)
    nothing = data.labels is None and other is None
    if nothing and metric is not None:
        raise UsageError("--metric needs --labels, or --against a model whose outputs are right")
    with console.tracked(arguments.json) as track:
        evaluation = evaluate(
            model,
            data.records,
            data.labels,
            against=other,
            output=arguments.output,
            metric=metric,
            ignore_label=arguments.ignore_label,
            track=track,
        )
    if nothing:
        console.say("note: the data has no labels, so nothing is counted: --labels gives them")
    if metric is not None:
        _print_metric(evaluation, arguments)
    else:
        _print(evaluation, _confusion(evaluation, data, arguments), arguments)
    return FINE


def _confusion(
    evaluation: Evaluation, data: Data, arguments: argparse.Namespace
) -> NDArray[np.int64] | None:
    """Count the answers of an output alone, class by class. Raises UsageError where --per-class
    asks for that of several.
    """
    from luciole.tools.confusion import confusion_of

    if len(evaluation.outputs) == 1 and data.labels is not None:
        labels, answers = data.labels.reshape(-1), evaluation.outputs[0].answers.reshape(-1)
        if arguments.ignore_label is not None:
            counts = labels != arguments.ignore_label
            labels, answers = labels[counts], answers[counts]
        return confusion_of(labels, answers)
    if arguments.per_class:
        raise UsageError("--per-class tells the classes of one output: --output NAME says which")
    return None


def _data(arguments: argparse.Namespace, model: Model) -> Data:
    """Read the records and say what they are. Raises UsageError where --per-class or --ignore-label
    has no labels.
    """
    from luciole.tools.data import asked_data

    keywords = {"limit": arguments.limit, "labels": arguments.labels}
    data = asked_data(arguments, model.graph, arguments.data, **keywords)
    for option, is_given in (
        ("--per-class", arguments.per_class),
        ("--ignore-label", arguments.ignore_label is not None),
    ):
        if is_given and data.labels is None:
            raise UsageError(f"{option} needs labels: the data has none, --labels gives them")
    return data


def _print_metric(evaluation: Evaluation, arguments: argparse.Namespace) -> None:
    figure, against = evaluation.metric, evaluation.metric_against
    if arguments.json:
        told = {"model": arguments.model, "records": evaluation.records}
        metric = {"name": arguments.metric, "figure": figure, "against": against}
        console.print_json({**told, "metric": metric, "seconds": evaluation.seconds})
        return
    name = arguments.metric.rpartition(":")[2]
    by = f" by the outputs of {arguments.against}" if arguments.against and against is None else ""
    console.show(f"records    {evaluation.records}")
    console.show(f"{name:10} {figure:.6g}{by}")
    if against is not None:
        console.show(f"{name:10} {against:.6g} of {arguments.against}")
    console.show(f"time       {evaluation.seconds:.2f} s")


def _summary(evaluation: Evaluation, model: str) -> dict[str, Any]:
    rows = [
        {"output": row.output, "top1": row.top1, "agreement": row.agreement}
        for row in evaluation.outputs
    ]
    return {
        "model": model,
        "records": evaluation.records,
        "ignored": evaluation.ignored,
        "top1": evaluation.top1,
        "agreement": evaluation.agreement,
        "outputs": rows,
        "seconds": evaluation.seconds,
    }


def _print(
    evaluation: Evaluation, confusion: NDArray[np.int64] | None, arguments: argparse.Namespace
) -> None:
    from luciole.tools.confusion import class_figures

    figures = _summary(evaluation, arguments.model)
    if arguments.json:
        matrix = None if confusion is None else confusion.tolist()
        classes = None if confusion is None else [asdict(c) for c in class_figures(confusion)]
        console.print_json({**figures, "confusion": matrix, "classes": classes})
        return
    console.show(f"records    {figures['records']}")
    if figures["ignored"]:
        console.show(f"ignored    {figures['ignored']} labels")
    for row in figures["outputs"]:
        of = f" of {row['output']}" if len(figures["outputs"]) > 1 else ""
        if row["top1"] is not None:
            console.show(f"top-1      {100 * row['top1']:.2f} %{of}")
        if row["agreement"] is not None:
            console.show(f"agreement  {100 * row['agreement']:.2f} % with {arguments.against}{of}")
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
