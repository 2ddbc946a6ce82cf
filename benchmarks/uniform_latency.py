"""Networks as integers made and run here, beside TFLite's: prints a ratio table.

    python3 -m benchmarks.uniform_latency [--only NAMES] [--rounds N] [--files FOLDER]
                                          [--json FILE]

INT8 are the files that ``luciole.quantize`` makes, run here, and those that TFLite's converter
makes of the same float network and records, run by LiteRT; 16x8 are ours, run here, beside the
float network run by LiteRT. (The converter refuses the LSTM, of which LiteRT runs our file.)
Ratios are LiteRT's time over ours. Medians of interleaved calls of both interpreters' ``invoke`` on
one thread, batch 1; LiteRT has its default kernels and delegate.
FOLDER keeps the files, which another run takes as they are. Needs tensorflow, and LUCIOLE_DATA
names the folder with cifar10_subset.npz, mnist.npz and models/; the encoder has random weights.

What a processor without AVX-512 runs is measured as ``benchmarks.lq_conv_2d`` says; LiteRT runs
everywhere what the processor has.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np

import luciole
from benchmarks.kinds_keras import NETWORKS
from benchmarks.machine import machine
from benchmarks.networks import litert_call, our_call
from benchmarks.tflite_models import convert
from benchmarks.uniform_peers import converter
from luciole.exporters import to_bytes
from luciole.files import write_file
from luciole.importers.keras.convert import tensorflow
from luciole.interpreter.affine import as_input
from luciole.ir import Array, LucioleError, Model
from luciole.kernels.jit.processor import features
from luciole.lquantizer.network.float_network import float_network
from luciole.tools.common.command import UsageError
from luciole.tools.common.timing import interleaved_medians

DATA = Path(os.environ.get("LUCIOLE_DATA", "data"))
PACKAGES = ("luciole", "numba", "llvmlite", "numpy", "ai-edge-litert", "tensorflow-cpu")
RECORDS = 32
"""Records of calibration: how many there are changes no time."""

INT8, INT16 = "INT8", "16x8"


@dataclass(frozen=True)
class Subject:
    """A float network and the records that it is calibrated by, [n, ...]."""

    name: str
    read: Callable[[], Model]
    records: Callable[[], Array]
    converts: bool = True
    """Whether the converter takes it: it refuses LSTMs of files, of which LiteRT runs ours."""

    @cached_property
    def model(self) -> Model:
        """The network, its constants real numbers."""
        return float_network(self.read())

    def ours(self, scheme: str) -> bytes:
        """Quantize here."""
        data = {self.model.graph.inputs[0].name: self.records()}
        name = {INT8: "int8", INT16: "int16x8"}[scheme]
        return to_bytes(
            luciole.quantize(self.model, data, scheme=name, proof=False).model, "tflite"
        )

    def theirs(self, scheme: str) -> bytes:
        """Give the converter's integers, or the float network."""
        if scheme == INT16:
            return to_bytes(self.model, "tflite")
        return converter(self.model, self.records()) if self.converts else self.ours(scheme)


@dataclass(frozen=True)
class Row:
    """A network's file here beside LiteRT's: medians of a call in microseconds, and their ratio."""

    network: str
    scheme: str
    luciole_us: float
    litert_us: float
    ratio: float


def subjects() -> list[Subject]:
    """List the networks."""
    files = {"resnet8": 1.0, "mbnet": 1 / 127.5, "vww_96": 1 / 255}
    found = [
        Subject(name, _file(name), partial(_images, name, scale)) for name, scale in files.items()
    ]
    found.append(Subject("kws", _file("kws"), lambda: _normal(49, 10, 1)))
    found.append(Subject("mnist_lstm", _file("mnist_lstm"), _digits, converts=False))
    found.append(Subject("encoder", _encoder, lambda: _normal(64, 128)))
    return found


def _file(name: str) -> Callable[[], Model]:
    return lambda: luciole.load(DATA / "models" / f"{name}_fp32.tflite")


def _images(name: str, scale: float) -> Array:
    with np.load(DATA / "cifar10_subset.npz") as arrays:
        images = np.asarray(arrays["x_train"][:RECORDS], np.float32)
    if name == "vww_96":
        images = images.repeat(3, 1).repeat(3, 2)
    return np.asarray(images * scale - (name == "mbnet"), np.float32)


def _digits() -> Array:
    with np.load(DATA / "mnist.npz") as arrays:
        return np.asarray(arrays["x_train"][:RECORDS] / 255, np.float32)


def _normal(*shape: int) -> Array:
    return np.random.default_rng(0).normal(size=(RECORDS, *shape)).astype(np.float32)


def _encoder() -> Model:
    keras = tensorflow("uniform_latency").keras
    keras.utils.set_random_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        made = NETWORKS["transformer encoder"](keras)
        return luciole.load(convert(made, "float32", Path(folder) / "network.tflite"))


def kept(path: Path, make: Callable[[], bytes]) -> Path:
    """Make a file that is not there."""
    if not path.exists():
        write_file(path, make())
    return path


def measured(subject: Subject, scheme: str, folder: Path, rounds: int) -> Row:
    """Time our file here and theirs in LiteRT."""
    ours, theirs = (folder / f"{subject.name}-{scheme}-{who}.tflite" for who in ("ours", "theirs"))
    kept(ours, lambda: subject.ours(scheme))
    kept(theirs, lambda: subject.theirs(scheme))
    model, x = luciole.load(ours), subject.records()[:1]
    peer = as_input(luciole.load(theirs).graph.inputs[0], x)
    calls = [our_call(model, as_input(model.graph.inputs[0], x))[0], litert_call(theirs, peer)[0]]
    mine, other = interleaved_medians(calls, rounds)
    return Row(subject.name, scheme, mine, other, other / mine)


def line(row: Row) -> str:
    """One row of the table."""
    figures = f"{row.luciole_us:.1f} | {row.litert_us:.1f} | {row.ratio:.2f}x"
    return f"{row.network} | {row.scheme} | {figures} |"


def chosen(only: str) -> list[Subject]:
    """Pick networks by their names. Raises UsageError for a name that is none."""
    known = {subject.name: subject for subject in subjects()}
    names = only.split(",") if only else list(known)
    for name in names:
        if name not in known:
            raise UsageError(f"{name!r} is no network: there is {', '.join(known)}")
    return [known[name] for name in names]


def parser() -> argparse.ArgumentParser:
    """The program's arguments."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--only", default="", metavar="NAMES", help="networks, commas between")
    made.add_argument("--rounds", type=int, default=100, help="samples of each (100)")
    made.add_argument("--files", type=Path, metavar="FOLDER", help="where files are kept")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    return made


def run(found: Sequence[Subject], folder: Path, rounds: int) -> list[Row]:
    """Print the table; what somebody refuses is told in its row."""
    print("network | scheme | luciole us | LiteRT us | ratio |\n---|---|---|---|---|")
    rows = []
    for subject in found:
        for scheme in (INT8, INT16):
            try:
                rows.append(measured(subject, scheme, folder, rounds))
                print(line(rows[-1]), flush=True)
            except (LucioleError, ValueError, RuntimeError) as error:
                why = str(error).splitlines()[0]
                print(f"{subject.name} | {scheme} | | | {why} |", flush=True)
    return rows


def main() -> None:
    """Print the table."""
    arguments = parser().parse_args()
    found = chosen(arguments.only)
    with tempfile.TemporaryDirectory() as own:
        folder = arguments.files or Path(own)
        folder.mkdir(parents=True, exist_ok=True)
        rows = run(found, folder, arguments.rounds)
    vectors = "AVX-512" if "avx512f" in features() else "no AVX-512"
    print(f"\nkernels compiled for {vectors}; {machine(PACKAGES)}")
    if arguments.json is not None:
        content = {"machine": machine(PACKAGES), "rows": [asdict(row) for row in rows]}
        write_file(arguments.json, json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
