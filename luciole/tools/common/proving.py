"""Prove models on the way to their files: what is written is read back, run and judged first."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from luciole.tools.common import console
from luciole.tools.common.command import FAILED, FINE

if TYPE_CHECKING:
    from luciole.ir import Array, Graph, Model
    from luciole.lquantizer import Result
    from luciole.lquantizer.judging import Judges, Split
    from luciole.lquantizer.proof import Proof
    from luciole.lquantizer.proving import Runtime
    from luciole.tools.data import Data

_RUNTIMES = {
    ".tflite": ("LiteRT", "litert", "ai_edge_litert", ""),
    ".onnx": (
        *("ONNX Runtime", "onnxruntime", "onnxruntime"),
        "its int8 sums saturate on processors without VNNI unless session.x64quantprecision is 1",
    ),
}
"""What else runs files of an extension: its name, what ``luciole bench`` calls it, its package, and
why its results may be others.
"""


def add_proof(parser: argparse._ActionsContainer) -> None:
    """Declare ``--no-proof`` and ``--keep``, for programs that write what they quantized."""
    parser.add_argument(
        "--no-proof",
        action="store_true",
        help="learn from all records, and do not run the file on others before it is written",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="where the proof fails, write the file all the same, as NAME.unproven.EXTENSION",
    )


def asked_split(
    arguments: argparse.Namespace, graph: Graph, path: str, labels: str | None = None
) -> Split:
    """Read the records of ``--data``, and part those that judge the file from the others: behind
    the first ``--calibration`` where there are more. Raises what ``load_data`` does.
    """
    from luciole.lquantizer.judging import Split, judges_beside
    from luciole.tools.data import asked_data

    most: int | None = arguments.calibration
    beside = 0 if arguments.no_proof or not most else judges_beside(most)
    limit = None if most is None else most + beside
    data = asked_data(arguments, graph, path, limit=limit, labels=labels)
    if arguments.no_proof:
        return Split.same(data.records, data.labels)
    split = Split.of(data.records, most, data.labels)
    learned = len(next(iter(split.learned.values())))
    if learned < data.count:
        console.say(f"data: {learned} records teach, {split.judges.count} judge the file")
    return split


def without(data: Data, split: Split) -> Data:
    """Leave the records that judge out of those to train on; all of them train where nothing else
    is there.
    """
    from luciole.interpreter.records import digest, digests
    from luciole.lquantizer.judging import HELD_BACK
    from luciole.tools.data import Data

    if split.judges.origin != HELD_BACK:
        return data
    known = digests(split.judges.records)
    places = [n for n in range(data.count) if digest(data.records, n) not in known]
    if not places or len(places) == data.count:
        return data
    labels = None if data.labels is None else data.labels[places]
    return Data({name: array[places] for name, array in data.records.items()}, labels)


def write_proved(
    result: Result,
    reference: Model,
    judges: Judges | None,
    path: str,
    arguments: argparse.Namespace,
) -> int:
    """Write the file of a result as ``write_judged`` does, and enter its proof and its size into
    the report. Returns the program's exit code.

    ``reference`` is the float network; without ``judges`` records are made up.
    """
    from luciole.lquantizer.proving import simulation_of

    content = content_of(result.model, path)
    result.report.bytes_after = len(content)
    if not arguments.no_proof:
        simulation = simulation_of(result)
        result.report.proof = proved(content, path, reference, judges, simulation)
    return write_judged(content, path, result.report.proof, arguments.keep)


def write_judged(content: bytes, path: str, proof: Proof | None, keep: bool) -> int:
    """Write a file unless its proof found it wrong: then nowhere, or under a name of its own to be
    kept. Returns the program's exit code.
    """
    from luciole.files import write_file

    place = _place(path, proof, keep)
    if place is not None:
        write_file(place, content)
    return FINE if place == path else FAILED


def proved(
    content: bytes,
    path: str,
    reference: Model,
    judges: Judges | None = None,
    simulation: Model | None = None,
    *,
    source: str | None = None,
    same: bool = False,
) -> Proof:
    """Read a file's bytes back as a file of that name is read, run them here and in whatever else
    runs such files and is installed (or runs the ``source`` that they were made from), and judge
    all that as ``lquantizer.judging.prove`` does. What shall compute the ``same`` runs only here:
    other runtimes round otherwise.
    """
    from luciole.importers import load
    from luciole.lquantizer.proving import prove

    with tempfile.TemporaryDirectory(prefix="luciole-") as folder:
        file = Path(folder) / f"proof{Path(path).suffix or '.circle'}"
        file.write_bytes(content)
        runtimes = {} if same else _runtimes(file if source is None else Path(source))
        return prove(reference, partial(load, file), judges, simulation, runtimes, same=same)


def content_of(model: Model, path: str, *, opset: int | None = None, exact: bool = False) -> bytes:
    """Write a model as the bytes of a file of that name."""
    from luciole.exporters import to_bytes
    from luciole.exporters.writer import writer_of

    return to_bytes(model, writer_of(Path(path)).format, opset=opset, exact=exact)


def _runtimes(file: Path) -> dict[str, Runtime]:
    """Find what else is installed that runs such files."""
    name, kind, package, caveat = _RUNTIMES.get(file.suffix, ("", "", "", ""))
    if not name or find_spec(package) is None:
        return {}

    from luciole.lquantizer.proving import Runtime

    def run(records: Sequence[Array]) -> list[Array]:
        from luciole.tools.bench.process import RemoteRuntime

        shapes = [(1, *array.shape[1:]) for array in records]
        return RemoteRuntime(kind, file, 1, shapes).run_records(records)

    return {name: Runtime(run, caveat)}


def _place(path: str, proof: Proof | None, keep: bool) -> str | None:
    """Choose where a file goes: nowhere, unless it is sound or kept all the same."""
    if proof is None or proof.is_sound:
        return path
    for fault in proof.faults:
        console.say(f"luciole: error: {path}: the file is wrong, {fault}")
    if not keep:
        console.say("luciole: nothing was written: --keep writes the file under another name")
        return None
    file = Path(path)
    place = str(file.with_name(f"{file.stem}.unproven{file.suffix}"))
    console.say(f"luciole: written as {place}")
    return place


def show_proof(proof: Proof | None) -> bool:
    """Print the figures of the file, and return whether they prove it."""
    for line in [] if proof is None else proof.lines():
        console.show(line)
    return proof is None or proof.is_sound
