"""``luciole eval``: run a model over labelled records and say how often it is right."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
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

    from luciole.interpreter import Interpreter
    from luciole.ir import Array, Model, Value
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
    return _run_classes(arguments) if arguments.metric is None else _run_metric(arguments)


def _run_metric(arguments: argparse.Namespace) -> int:
    """Measure a model, and another one beside it, by a metric of the user's own: by labels, or else
    by the other model's outputs.
    """
    from luciole.importers import load
    from luciole.lquantizer.judging.judge import Judge
    from luciole.lquantizer.judging.records import Judges
    from luciole.tools.proving.options import asked_metric

    if arguments.per_class or arguments.output:
        raise UsageError("--metric judges all outputs: leave --per-class and --output out")
    metric, model = asked_metric(arguments), load(arguments.model)
    data = _data(arguments, model)
    other = load(arguments.against) if arguments.against else None
    if data.labels is None and other is None:
        raise UsageError("--metric needs --labels, or --against a model whose outputs are right")
    begun = time.perf_counter()
    judges = Judges(data.records, "", data.labels)
    figures: dict[str, Any] = {"name": arguments.metric, "figure": None, "against": None}
    if data.labels is not None:
        judge = Judge(model, judges, metric)
        figures["figure"] = judge.before
        figures["against"] = None if other is None else judge.measured(other).file
    elif other is not None:
        records = for_other(data, model, other).records
        figures["figure"] = Judge(other, Judges(records), metric).measured(model).file
    seconds = time.perf_counter() - begun
    _print_metric(figures, data.count, seconds, arguments)
    return FINE


def _print_metric(
    figures: dict[str, Any], records: int, seconds: float, arguments: argparse.Namespace
) -> None:
    if arguments.json:
        told = {"model": arguments.model, "records": records, "metric": figures}
        console.print_json({**told, "seconds": seconds})
        return
    name = arguments.metric.rpartition(":")[2]
    against = figures["against"]
    by = f" by the outputs of {arguments.against}" if arguments.against and against is None else ""
    console.show(f"records    {records}")
    console.show(f"{name:10} {figures['figure']:.6g}{by}")
    if against is not None:
        console.show(f"{name:10} {against:.6g} of {arguments.against}")
    console.show(f"time       {seconds:.2f} s")


def _run_classes(arguments: argparse.Namespace) -> int:
    """Count right and equal answers."""
    from luciole.importers import load
    from luciole.tools.confusion import confusion_of
    from luciole.tools.data.answers import judged_outputs, named_outputs

    model = load(arguments.model)
    outputs = named_outputs(model.graph, arguments.output)
    data = _data(arguments, model)
    subject = _Subject.begin(model, data)
    judged = judged_outputs(outputs, subject.numbers, data.first(subject.count).labels)
    if arguments.per_class and len(judged) > 1:
        raise UsageError("--per-class tells the classes of one output: --output NAME says which")
    answers, seconds = subject.answers(judged, "records", arguments.json)
    others = _other_answers(arguments, model, data, judged) if arguments.against else None
    if data.labels is None and not arguments.against:
        console.say("note: the data has no labels, so nothing is counted: --labels gives them")
    rows = _figures(judged, answers, data, others)
    confusion = None
    if data.labels is not None and len(judged) == 1:
        confusion = confusion_of(data.labels.reshape(-1), answers[0].reshape(-1))
    _print(_summary(arguments.model, data.count, rows, seconds), confusion, arguments)
    return FINE


def _summary(
    model: str, records: int, rows: list[dict[str, Any]], seconds: float
) -> dict[str, Any]:
    alone = rows[0] if len(rows) == 1 else {"top1": None, "agreement": None}
    return {
        "model": model,
        "records": records,
        "top1": alone["top1"],
        "agreement": alone["agreement"],
        "outputs": rows,
        "seconds": seconds,
    }


def _data(arguments: argparse.Namespace, model: Model) -> Data:
    """Read the records and say what they are. Raises UsageError where --per-class has no labels."""
    from luciole.tools.data import asked_data

    keywords = {"limit": arguments.limit, "labels": arguments.labels}
    data = asked_data(arguments, model.graph, arguments.data, **keywords)
    if arguments.per_class and data.labels is None:
        raise UsageError("--per-class needs labels: the data has none, --labels gives them")
    return data


@dataclass
class _Subject:
    """A model, the records that it answers, and the numbers of its outputs for the first ones."""

    interpreter: Interpreter
    data: Data
    batch: int
    numbers: dict[str, Array]

    @classmethod
    def begin(cls, model: Model, data: Data) -> _Subject:
        """Run a batch of each size, so that nothing is compiled later."""
        from luciole.interpreter import Interpreter
        from luciole.interpreter.records import batch_size, outputs_of

        interpreter = Interpreter(model)
        size = batch_size(interpreter, data.records)
        first = data.first(size + data.count % size)
        return cls(interpreter, data, size, outputs_of(interpreter, first.records, batch=size))

    @property
    def count(self) -> int:
        """The first records whose numbers are known."""
        return len(next(iter(self.numbers.values())))

    def answers(
        self, outputs: Sequence[Value], what: str, quiet: bool
    ) -> tuple[list[Array], float]:
        """Find the answers of each output under a progress bar, and how many seconds they took."""
        from luciole.tools.data.answers import all_answers

        with console.tracked(quiet) as track:
            progress, begun = track(what, self.data.count), time.perf_counter()
            answers = all_answers(self.interpreter, self.data, outputs, self.batch, progress)
            return answers, time.perf_counter() - begun


def _other_answers(
    arguments: argparse.Namespace, model: Model, data: Data, judged: list[Value]
) -> list[Array]:
    """Compute the answers of the model of --against to the same records."""
    from luciole.importers import load

    other = load(arguments.against)
    same = [other.graph.outputs[n] for n in _places(model, judged, other)]
    subject = _Subject.begin(other, for_other(data, model, other))
    return subject.answers(same, "against", arguments.json)[0]


def _places(model: Model, judged: list[Value], other: Model) -> list[int]:
    """Find which outputs of another model stand for those judged; UsageError without them."""
    places = [model.graph.outputs.index(v) for v in judged]
    count = len(other.graph.outputs)
    if max(places) >= count:
        raise UsageError(f"the other model has {count} outputs, number {max(places)} is judged")
    return places


def _figures(
    judged: list[Value], answers: list[Array], data: Data, others: list[Array] | None
) -> list[dict[str, Any]]:
    """Count, for each output, the shares of right and of equal answers."""
    from luciole.ir.names import called
    from luciole.tools.data.answers import share_equal, share_right

    labels = data.labels
    return [
        {
            "output": called(value),
            "top1": None if labels is None else share_right(array, labels),
            "agreement": None if others is None else share_equal(array, others[n]),
        }
        for n, (value, array) in enumerate(zip(judged, answers, strict=True))
    ]


def for_other(data: Data, model: Model, other: Model) -> Data:
    """Turn a model's records into what another one takes: under its names, quantized or real."""
    from luciole.interpreter.compare import second_inputs
    from luciole.tools.data import Data

    count = len(other.graph.inputs)
    if count != len(data.records):
        raise UsageError(f"the other model has {count} inputs, the data {len(data.records)}")
    return Data(dict(second_inputs(model.graph, other.graph, data.records)), data.labels)


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
