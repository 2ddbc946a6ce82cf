"""Networks that compute with floats of a few bits: accuracy and size, format by format.

    python3 -m benchmarks.minifloats [--only resnet8,lstm] [--formats 5,5:4,4s:4,3l]

A format is its bits of exponent and mantissa; with an s every tensor has a power of two of its own,
learned from 500 training records, with an l only what layers read is rounded. Without --formats
those of the documentation are measured. All test records are judged; "agree" is the share that gets
the float network's answer. LUCIOLE_DATA names the folder with mnist.npz, cifar10_subset.npz and
models/.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import luciole
from benchmarks.accuracy_keras import Records, mnist
from benchmarks.accuracy_networks import drawn, subject
from benchmarks.accuracy_table import markdown
from benchmarks.machine import machine
from luciole.exporters import to_bytes
from luciole.importers import load
from luciole.interpreter.answers import answers_of
from luciole.interpreter.records import first_output
from luciole.ir import Array, Model
from luciole.lquantizer import MinifloatOptions
from luciole.tools.common.command import UsageError
from luciole.tools.common.console import say

DATA = Path(os.environ.get("LUCIOLE_DATA", "data"))
PACKAGES = ("luciole", "numba", "numpy")
CALIBRATION = 500
FORMATS = {
    "mbnet": "5,5:4,4s:3,5s:3,4s",
    "resnet8": "5,5:4,5:4,5s:3,6s",
    "lstm": "4,3l:4,3:4,3s:3,4s:4,4",
}
"""What each network is measured with."""
_FORMAT = re.compile(r"(\d),(\d+)(s?)(l?)")


def options_of(text: str) -> MinifloatOptions:
    """Read a format. Raises UsageError for what is none."""
    found = _FORMAT.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is no format: 5,5 has 5 bits of each; 4,4s is scaled")
    exponent, mantissa, scaled, layers = found.groups()
    return MinifloatOptions(int(exponent), int(mantissa), bool(scaled), bool(layers))


def network(name: str) -> tuple[Model, Records]:
    """Get a float network with its records."""
    if name == "lstm":
        return load(DATA / "models" / "mnist_lstm_fp32.tflite"), mnist(DATA)
    return subject(name, DATA, Path())


def rows(name: str, formats: Sequence[str]) -> list[list[str]]:
    """Measure a network in its formats."""
    model, records = network(name)
    source = model.graph.inputs[0].name
    test, some = {source: records.test}, drawn(records.train, CALIBRATION)
    wanted = answers_of(first_output(model, test))
    found = [_row(name, "float", model, wanted, wanted, records.judge)]
    for text in formats:
        options = options_of(text)
        result = luciole.quantize(model, some if options.scaled else None, options, proof=False)
        answers = answers_of(first_output(result.model, test))
        found.append(_row(name, _shown(options), result.model, answers, wanted, records.judge))
    return found


def _row(
    name: str, form: str, model: Model, answers: Array, wanted: Array, labels: Array
) -> list[str]:
    shares = (100 * float(np.mean(answers == other)) for other in (labels, wanted))
    row = [name, form, *(f"{share:.2f}" for share in shares), f"{len(to_bytes(model)):,}"]
    say(" | ".join(row))
    return row


def _shown(options: MinifloatOptions) -> str:
    """Say a format in words."""
    words = [f"{options.numbers}, {options.numbers.bits} bits"]
    words += ["scaled"] * options.scaled + ["layers only"] * options.layers_only
    return ", ".join(words)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="NAMES", help=f"of {','.join(FORMATS)}")
    parser.add_argument("--formats", metavar="LIST", help="with colons between")
    arguments = parser.parse_args(argv)
    table = [["network", "numbers", "top-1", "agree", "bytes"]]
    for name in (arguments.only or ",".join(FORMATS)).split(","):
        if name not in FORMATS:
            parser.exit(2, f"minifloats: error: {name!r} is none of {', '.join(FORMATS)}\n")
        table += rows(name, (arguments.formats or FORMATS[name]).split(":"))
    print(f"{markdown(table)}\n\n{machine(PACKAGES)}")


if __name__ == "__main__":
    main()
