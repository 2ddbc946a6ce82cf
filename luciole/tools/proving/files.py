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
    from luciole.ir import Array, Model
    from luciole.lquantizer import Report, Result
    from luciole.lquantizer.judging.metric import Metric
    from luciole.lquantizer.judging.records import Judges
    from luciole.lquantizer.proof import Proof
    from luciole.lquantizer.proving.prove import Runtime

_RUNTIMES = {
    ".tflite": ("LiteRT", "litert", "ai_edge_litert", ""),
    ".onnx": (
        *("ONNX Runtime", "onnxruntime", "onnxruntime"),
        "its int8 sums saturate on processors without VNNI unless session.x64quantprecision is 1, "
        "and it rounds what dynamic layers read to 8 bits",
    ),
}
"""Other runtimes for files of an extension: name, its word in ``luciole bench``, its package, and
why its results may be others.
"""


def write_proved(
    result: Result,
    reference: Model,
    judges: Judges | None,
    path: str,
    arguments: argparse.Namespace,
    metric: Metric | None = None,
) -> int:
    """Write the file of a result as ``write_judged`` does, and enter its proof and its size into
    the report. Returns the program's exit code.

    ``reference`` is the float network, which a ``metric`` measures, too; without ``judges`` records
    are made up.
    """
    from luciole.lquantizer.proving.simulation import simulation_of

    content = content_of(result.model, path)
    result.report.bytes_after = len(content)
    if not arguments.no_proof:
        simulation = simulation_of(result)
        result.report.proof = proved(content, path, reference, judges, simulation, metric=metric)
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
    metric: Metric | None = None,
) -> Proof:
    """Read a file's bytes back as a file of that name is read, run them here and in whatever else
    runs such files and is installed (or runs the ``source`` that they were made from), and judge
    all that as ``lquantizer.proving.prove.prove`` does. What shall compute the ``same`` runs only
    here: other runtimes round otherwise.
    """
    from luciole.files import write_file
    from luciole.importers import load
    from luciole.lquantizer.proving.prove import prove

    with tempfile.TemporaryDirectory(prefix="luciole-") as folder:
        file = Path(folder) / f"proof{Path(path).suffix or '.circle'}"
        write_file(file, content)
        runtimes = {} if same else _runtimes(file if source is None else Path(source))
        return prove(
            reference, partial(load, file), judges, simulation, runtimes, same=same, metric=metric
        )


def content_of(model: Model, path: str, *, opset: int | None = None, exact: bool = False) -> bytes:
    """Write a model as the bytes of a file of that name."""
    from luciole.exporters import to_bytes
    from luciole.exporters.writer import writer_of

    return to_bytes(model, writer_of(Path(path)).format, opset=opset, exact=exact)


def _runtimes(file: Path) -> dict[str, Runtime]:
    """Find other runtimes that are installed and run files of this kind."""
    name, kind, package, caveat = _RUNTIMES.get(file.suffix, ("", "", "", ""))
    if not name or find_spec(package) is None:
        return {}

    from luciole.lquantizer.proving.prove import Runtime

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


def show_judged(report: Report) -> bool:
    """Print the drop of a choice for a target, and the proof; return whether this one proves the
    file.
    """
    if report.judged is not None:
        console.show(f"chosen: {report.judged}")
    return show_proof(report.proof)


def show_proof(proof: Proof | None) -> bool:
    """Print the figures of the file, and return whether they prove it."""
    for line in [] if proof is None else proof.lines():
        console.show(line)
    return proof is None or proof.is_sound
