"""The accuracy of learned levels on kinds of networks: prints what each loses, and what it may.

    python3 -m benchmarks.accuracy_networks [--data FOLDER] [--keep FOLDER] [--only NAMES]
                                            [--seed N]

``--data`` (LUCIOLE_DATA) has mnist.npz and cifar10_subset.npz in Keras's layout, and models/ with
MLPerf Tiny's resnet8 and the networks mbnet and mbnet_bad, the same MobileNet with its channels
even and uneven. Five networks more are trained once and kept (benchmarks/accuracy_keras.py). All
are fitted on the same 1,000 unlabelled training records, and judged on the whole test set: top-1 in
percent, or the root mean squared error of an autoencoder. Tuned ones go on training without labels,
unless their name says so, on as many records as the table says; "uniform" are evenly spaced levels,
with integers of 8 bits around them. ``--seed`` draws other records and trains by other chances.
TensorFlow has one thread.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy_keras import KINDS, Records, cifar, network
from benchmarks.accuracy_table import markdown
from benchmarks.machine import machine
from luciole.api import finetune, quantize
from luciole.exporters import to_bytes
from luciole.importers import load
from luciole.importers.keras.convert import tensorflow
from luciole.interpreter import Interpreter
from luciole.interpreter.records import outputs_of
from luciole.ir import Array, Model
from luciole.lquantizer import Config, OutputAware, Result, quantize_records, with_integers
from luciole.lquantizer.assignment.options import FitOptions
from luciole.lquantizer.network.problem import Scope
from luciole.lquantizer.training import FinetuneSettings
from luciole.tools.common.command import UsageError
from luciole.tools.common.console import say

PACKAGES = ("luciole", "numba", "numpy", "tensorflow-cpu")
CALIBRATION = 1000
_SEED = 1000
"""Draws records, together with ``--seed``."""


@dataclass(frozen=True)
class Case:
    """A network and how it is quantized; ``may_lose`` are points of accuracy, ``may_err`` is an
    error. Tuning takes ``epochs`` over so many ``records`` of the training data.
    """

    name: str
    bits: int | str
    may_lose: float | None = None
    may_err: float | None = None
    epochs: int = 0
    records: int = CALIBRATION
    mirror: bool = False
    rescales: bool = True
    uniform: bool = False
    labelled: bool = False
    source: str = ""
    """The network, where the case has another name."""
    layers: list[dict[str, object]] = field(default_factory=list)
    """Rules for single layers."""

    @property
    def network(self) -> str:
        """The name of its network."""
        return self.source or self.name


def _uniform(source: str, bits: str, **how: Any) -> Case:
    """Describe a case of evenly spaced levels."""
    name = f"{source}, uniform" + ", labels" * how.get("labelled", False)
    return Case(name, bits, source=source, uniform=True, **how)


CASES = (
    Case("mbnet_bad", 4, may_lose=1.0),
    Case("mbnet", 4, may_lose=1.0),
    Case("mbnet, not rescaled", 4, rescales=False, source="mbnet"),
    Case(
        "mbnet, depthwise w4",
        4,
        source="mbnet",
        layers=[{"operator": "DEPTHWISE_CONV_2D", "weight_bits": 4}],
    ),
    Case("batchnorm", 2, may_lose=2.0, epochs=20, records=10_000, mirror=True),
    Case("transformer", 2, may_lose=1.5, epochs=6, records=20_000),
    Case("lstm", 2, may_lose=1.5, epochs=6, records=20_000),
    Case("autoencoder", 1, may_err=0.19, epochs=12, records=60_000),
    Case(
        "autoencoder, w1a4",
        "w1a4",
        may_err=0.19,
        epochs=6,
        records=20_000,
        source="autoencoder",
    ),
    Case("resnet8, preset", "w2a4", source="resnet8"),
    Case("resnet8, 1,000 records", 2, epochs=50, mirror=True, source="resnet8"),
    _uniform("resnet8", "w4a4", may_lose=0.32, epochs=3, records=10_000, mirror=True),
    _uniform("resnet8", "w4a4", epochs=2, records=10_000, mirror=True, labelled=True),
    _uniform("cnn", "w2a4", epochs=2, records=20_000),
    _uniform("cnn", "w2a4", epochs=2, records=20_000, labelled=True),
    Case("cnn", 2),
)
"""What is measured."""


def subject(name: str, data: Path, keep: Path) -> tuple[Model, Records]:
    """Get a float network and its records, which it trains where there is none."""
    if name in KINDS:
        return network(name, data, keep)
    records = cifar(data)
    if name == "resnet8":  # takes pixels of 0 to 255
        train, test = (_pixels(x) for x in (records.train, records.test))
        records = Records(train, records.wanted, test, records.judge)
    return load(data / "models" / f"{name}_fp32.tflite"), records


def _pixels(x: Array) -> Array:
    """Undo the scaling of pixels to -1 to 1."""
    return np.rint((x + 1) * np.float32(127.5)).astype(np.float32)


def drawn(x: Array, count: int, seed: int = 0) -> Array:
    """Draw training records, or what belongs to them, in order."""
    return x[np.sort(np.random.default_rng(_SEED + seed).permutation(len(x))[:count])]


def score(model: Model, records: Records) -> float:
    """Compute top-1 in percent, or the error of what is given back."""
    given = {model.graph.inputs[0].name: records.test}
    found = outputs_of(Interpreter(model), given)[model.graph.outputs[0].name]
    if records.judge.ndim > 1:
        return float(np.sqrt(np.mean(np.square(found - records.judge, dtype=np.float64))))
    return 100 * float(np.mean(found.argmax(-1) == records.judge))


def fitted(case: Case, model: Model, x: Array) -> Result:
    """Learn levels from records."""
    config = {"layers": case.layers} if case.layers else None
    if case.rescales:
        return quantize(
            model, x, encode_bits=case.bits, config=config, uniform=case.uniform, proof=False
        )
    choice = FitOptions(encode_bits=case.bits).default
    method = OutputAware(0, Scope(rescales=False))
    return quantize_records(model, {model.graph.inputs[0].name: x}, method, Config(choice))


def tuned(case: Case, model: Model, result: Result, records: Records, seed: int) -> Model:
    """Train the levels as ``lquantizer --finetune`` does."""
    return finetune(
        result,
        model,
        drawn(records.train, case.records, seed),
        epochs=case.epochs,
        labels=drawn(records.wanted, case.records, seed) if case.labelled else None,
        settings=FinetuneSettings(mirror=case.mirror, seed=seed),
        report=say,
    ).model


def measured(case: Case, data: Path, keep: Path, seed: int = 0) -> list[str]:
    """Measure one row of the table."""
    model, records = subject(case.network, data, keep)
    begun = time.process_time()
    some = drawn(records.train, CALIBRATION, seed)
    result = fitted(case, model, some)
    seconds = [time.process_time() - begun]
    scores = [score(model, records), score(result.model, records)]
    if case.epochs:
        begun = time.process_time()
        result.model = tuned(case, model, result, records, seed)
        seconds.append(time.process_time() - begun)
    if case.uniform:
        spared = FitOptions(spared="int8")
        result = with_integers(result, model, {model.graph.inputs[0].name: some}, spared)
    if case.epochs:
        scores.append(score(result.model, records))
    digits = 3 if records.judge.ndim > 1 else 2
    shown = [f"{s:.{digits}f}" for s in scores] + [""] * (3 - len(scores))
    trained = f"{case.epochs} x {case.records:,}" if case.epochs else ""
    sizes = " -> ".join(f"{len(to_bytes(m)) / 1000:.1f}" for m in (model, result.model))
    times = " + ".join(f"{s:.0f}" for s in seconds)
    return [case.name, str(case.bits), *shown, trained, *_verdict(case, scores), sizes, times]


def _verdict(case: Case, scores: Sequence[float]) -> list[str]:
    """Say what was lost, and what may be."""
    if case.may_err is not None:
        return [f"{scores[-1] / scores[0]:.2f} x", f"{case.may_err:g}"]
    return [f"{scores[0] - scores[-1]:.2f}", "" if case.may_lose is None else f"{case.may_lose:g}"]


HEAD = ["network", "bits", "float", "fit", "tuned", "epochs", "loss", "allowed", "KB", "CPU s"]


def chosen(only: str | None) -> list[Case]:
    """Choose cases by parts of their names. Raises UsageError for a part that none has."""
    parts = [""] if only is None else only.split(",")
    for part in parts:
        if not any(part in case.name for case in CASES):
            names = ", ".join(case.name for case in CASES)
            raise UsageError(f"{part!r} is in no name: there is {names}")
    return [case for case in CASES if any(part in case.name for part in parts)]


def parser() -> argparse.ArgumentParser:
    """Make the program's arguments."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    place = Path(os.environ.get("LUCIOLE_DATA", "data"))
    made.add_argument("--data", type=Path, default=place, metavar="FOLDER", help="see above")
    made.add_argument(
        "--keep", type=Path, default=Path("trained-networks"), metavar="FOLDER", help="networks"
    )
    made.add_argument("--only", metavar="NAMES", help="parts of names, with commas between")
    made.add_argument("--seed", type=int, default=0, metavar="N", help="of records and training")
    return made


def one_thread() -> None:
    """Let TensorFlow compute on one thread."""
    threading = tensorflow("networks of this benchmark").config.threading
    setters: tuple[Callable[[int], None], ...] = (
        threading.set_intra_op_parallelism_threads,
        threading.set_inter_op_parallelism_threads,
    )
    for setter in setters:
        setter(1)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    arguments = parser().parse_args(argv)
    try:
        cases = chosen(arguments.only)
    except UsageError as error:
        parser().exit(2, f"accuracy_networks: error: {error}\n")
    one_thread()
    rows = [HEAD]
    for case in cases:
        rows.append(measured(case, arguments.data, arguments.keep, arguments.seed))
        say(" | ".join(rows[-1]))
    print(f"{markdown(rows)}\n\n{machine(PACKAGES)}")


if __name__ == "__main__":
    main()
