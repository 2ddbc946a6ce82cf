"""Read the options of a proof, and the records that judge."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from luciole.tools.common import console
from luciole.tools.common.command import UsageError

if TYPE_CHECKING:
    from luciole.ir import Graph
    from luciole.lquantizer.judging.metric import Metric
    from luciole.lquantizer.judging.records import Split
    from luciole.tools.data import Data


def add_proof(parser: argparse._ActionsContainer, *, learns: bool = False) -> None:
    """Declare ``--no-proof`` and ``--keep``, for programs that run a file before it is written;
    ``learns`` says that they hold records back for it.
    """
    learning = "learn from all records, and " if learns else ""
    parser.add_argument(
        "--no-proof",
        action="store_true",
        help=f"{learning}write the file without running it first",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="where the proof fails, write the file all the same, as NAME.unproven.EXTENSION",
    )


def check_proof(arguments: argparse.Namespace, *names: str) -> None:
    """Refuse ``--keep``, and options of these ``names``, beside ``--no-proof``. Raises
    UsageError.
    """
    for name in ("keep", *names):
        if arguments.no_proof and vars(arguments)[name]:
            raise UsageError(f"--{name} goes with a proof: leave --no-proof out")


def asked_split(
    arguments: argparse.Namespace, graph: Graph, path: str, labels: str | None = None
) -> Split:
    """Read the records of ``--data``, and part those that judge the file from the others: behind
    the first ``--calibration`` where there are more. Raises what ``load_data`` does.
    """
    from luciole.interpreter.samples import Selection
    from luciole.lquantizer.judging.records import Split, judges_beside
    from luciole.tools.data import asked_data

    most: int | None = arguments.calibration
    check_count("calibration", most)
    beside = 0 if arguments.no_proof or not most else judges_beside(most)
    limit = None if most is None else most + beside
    data = asked_data(arguments, graph, path, limit=limit, labels=labels)
    known = None if labels is None else data.labels
    records = {name: Selection.all(array) for name, array in data.records.items()}
    if arguments.no_proof:
        return Split.same(records, known)
    split = Split.of(records, most, known)
    learned = len(next(iter(split.learned.values())))
    if learned < data.count:
        console.say(f"data: {learned} records teach, {split.judges.count} judge the file")
    return split


def asked_metric(arguments: argparse.Namespace) -> Metric | None:
    """Load the metric of ``--metric``, None without one. Raises QuantizeError."""
    from luciole.lquantizer.judging.metric import Metric

    return None if arguments.metric is None else Metric.of(arguments.metric)


def check_count(option: str, count: int | None) -> None:
    """Raise UsageError where an option asks for less than one record."""
    if count is not None and count < 1:
        raise UsageError(f"--{option.replace('_', '-')} is {count}: at least 1 record is needed")


def asked_training(
    arguments: argparse.Namespace, graph: Graph, split: Split, option: str, note: str
) -> Data:
    """Read the records to train on, none of which judges the file: what an ``option`` names, else
    those that there are to learn from; a number asks for the first so many of these. Raises
    UsageError for fewer than one, and what ``load_data`` does.
    """
    from luciole.lquantizer.judging.records import HELD_BACK
    from luciole.tools.data import Data, asked_data

    named: str = vars(arguments)[option] or ""
    own = arguments.data if "data" in arguments else arguments.input_data
    count = int(named) if named.lstrip("-").isdecimal() else None
    check_count(option, count)
    judging = split.judges.count if split.judges.origin == HELD_BACK else 0
    limit = None if count is None else count + judging
    source = own if count is not None else named or own
    read = asked_data(
        arguments, graph, source, limit=limit, labels=arguments.labels, note=f" ({note})"
    )
    data = without(read, split)
    if count is None or data.count <= count:
        return data
    labels = None if data.labels is None else data.labels[:count]
    return Data({name: array[:count] for name, array in data.records.items()}, labels)


def without(data: Data, split: Split) -> Data:
    """Leave the records that judge out of those to train on; all of them train where nothing else
    is there.
    """
    from luciole.interpreter.records import digest, digests
    from luciole.lquantizer.judging.records import HELD_BACK
    from luciole.tools.data import Data

    if split.judges.origin != HELD_BACK:
        return data
    known = digests(split.judges.records)
    places = [n for n in range(data.count) if digest(data.records, n) not in known]
    if not places or len(places) == data.count:
        return data
    labels = None if data.labels is None else data.labels[places]
    return Data({name: array[places] for name, array in data.records.items()}, labels)
