"""Networks quantized to uniform integers: size, accuracy, agreement and latency, scheme by scheme.

    python3 -m benchmarks.uniform [--quick] [--network resnet8,mbnet,uneven] [--draws 0,1,2]
                                  [--peer-draws 0] [--output FILE.json]

The first table is that of a thesis on dynamic, static and learned quantization (float, dynamic,
static; bytes of the file and of the weights alone, accuracy, its change, time) for MLPerf Tiny's
ResNet-8; others are of a RELU6 network of depthwise convolutions, and of the same after its
channels were made uneven, its float answers unchanged. Beside ours are TFLite's
converter and AI Edge Quantizer, where they are installed, on the same records: unlabelled training
images drawn by each seed. All files are judged on all test images by luciole, whose integers equal
LiteRT's reference kernels; "agree" is the share of images that a file answers as the float network
does. LUCIOLE_DATA names the folder with cifar10_subset.npz and models/. Times are medians of
interleaved calls of both interpreters, batch 1, one thread, taken of the first draw.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import luciole
from benchmarks.accuracy_table import markdown
from benchmarks.machine import machine
from benchmarks.networks import litert_call, our_call
from benchmarks.uniform_peers import (
    AI_EDGE,
    CONVERTER,
    ai_edge,
    converter,
    dynamic,
    missing,
    static,
)
from luciole.exporters import to_bytes
from luciole.files import write_file
from luciole.interpreter import Interpreter
from luciole.interpreter.affine import as_input
from luciole.interpreter.records import outputs_of
from luciole.ir import Array, LucioleError, Model, Op, Value
from luciole.ir.analysis.weights import has_weights
from luciole.ir.passes.fuse_quantization import integers_behind
from luciole.tools.common.command import UsageError
from luciole.tools.common.console import say, to_json
from luciole.tools.common.timing import interleaved_medians

DATA = Path(os.environ.get("LUCIOLE_DATA", "data"))
PACKAGES = ("luciole", "numpy", "numba", "tensorflow-cpu", "ai-edge-quantizer", "ai-edge-litert")
OURS = "luciole"
FEW = 10
"""Records of the row that shows how few are enough."""
QUICK = (200, 500, 20)
"""Calibration records, test images and rounds of the short form."""

WITHOUT_DATA = ("float16", "weights", "weights4", "dynamic", "dynamic4")
"""Schemes that see no data."""

Make = Callable[[Model, Array], bytes]


@dataclass(frozen=True)
class Way:
    """One way to a file: what it is called, who makes it, and how; whether it sees data, and
    whether LiteRT runs what it makes.
    """

    name: str
    maker: str
    make: Make
    drawn: bool = True
    in_litert: bool = True


@dataclass(frozen=True)
class Row:
    """One file: its bytes and those of its weights, answers that are right and that are the float
    network's in percent, how long it took to make in seconds, and microseconds of a call here and
    in LiteRT.
    """

    network: str
    maker: str
    name: str
    draw: int
    bytes: int
    weights: int
    top1: float
    delta: float
    agree: float
    seconds: float
    luciole_us: float | None = None
    litert_us: float | None = None


def _ours(**options: Any) -> Make:
    """Quantize here; schemes that see no data take none."""
    takes_data = options["scheme"] not in WITHOUT_DATA

    def make(model: Model, records: Array) -> bytes:
        data = {model.graph.inputs[0].name: records} if takes_data else None
        return to_bytes(luciole.quantize(model, data, proof=False, **options).model, "tflite")

    return make


def _as_it_is(model: Model, records: Array) -> bytes:
    return to_bytes(model, "tflite")


def _few_bits(model: Model, records: Array) -> bytes:
    """Quantize to evenly spaced levels of 4 bits, which have no form in TFLite."""
    data = {model.graph.inputs[0].name: records}
    return to_bytes(luciole.quantize(model, data, scheme="w4a4", proof=False).model)


def _few(model: Model, records: Array) -> bytes:
    return _ours(scheme="int8")(model, records[:FEW])


def ways(network: str) -> list[Way]:
    """List the ways of a network's table."""
    found = [Way(name, OURS, _ours(scheme=name), drawn=False) for name in WITHOUT_DATA]
    found += [Way(name, OURS, _ours(scheme=name)) for name in ("int8", "w4a8", "mixed", "int16x8")]
    found.append(Way("w4a4", OURS, _few_bits, in_litert=False))
    found.append(Way("int8 per tensor", OURS, _ours(scheme="int8", granularity="tensor")))
    if network == "uneven":
        plain = {"scheme": "int8", "rescale": "none"}
        found.append(Way("int8, no rescaling", OURS, _ours(**plain)))
        found.append(
            Way("int8 per tensor, no rescaling", OURS, _ours(**plain, granularity="tensor"))
        )
    else:
        found.append(Way(f"int8, {FEW} images", OURS, _few))
    return found + list(_peer_ways())


def _peer_ways() -> Iterator[Way]:
    yield Way("int8", CONVERTER, converter)
    yield Way("int8 per tensor", CONVERTER, partial(converter, channels=False))
    recipes = {
        "int8": static(),
        "int8 per tensor": static(granularity="TENSORWISE"),
        "w4a8": static(bits=4),
        "int16x8": static(activations=16),
    }
    for name, recipe in recipes.items():
        yield Way(name, AI_EDGE, partial(ai_edge, recipe=recipe))
    yield Way("dynamic", AI_EDGE, partial(ai_edge, recipe=dynamic()), drawn=False)


@dataclass(frozen=True)
class Subject:
    """A float network, training images to draw from, and test images with labels."""

    name: str
    model: Model
    train: Array
    test: Array
    labels: Array

    @classmethod
    def read(cls, name: str, images: int | None) -> Subject:
        """Read a network and its data; of test images the first so many."""
        arrays = np.load(DATA / "cifar10_subset.npz")
        train, test = (arrays[k].astype(np.float32) for k in ("x_train", "x_test"))
        if name != "resnet8":
            train, test = train / np.float32(127.5) - 1, test / np.float32(127.5) - 1
        file = {"resnet8": "resnet8_fp32", "mbnet": "mbnet_fp32", "uneven": "mbnet_bad_fp32"}[name]
        model = luciole.load(DATA / "models" / f"{file}.tflite")
        labels = arrays["y_test"].reshape(-1)[:images]
        return cls(name, model, train, test[:images], labels)

    def draw(self, seed: int, count: int) -> Array:
        """Draw training images: [count, ...]."""
        order = np.random.default_rng(seed).permutation(len(self.train))
        return self.train[order[:count]]

    def answers(self, model: Model) -> Array:
        """Find the class that each test image gets."""
        given = model.graph.inputs[0]
        records = {given.name: as_input(given, self.test)}
        (found,) = outputs_of(Interpreter(model), records).values()
        return np.asarray(found.reshape(len(found), -1).argmax(1))


@dataclass(frozen=True)
class Judge:
    """What files are judged by: a network's own answers, and the rounds that a call is timed."""

    subject: Subject
    answers: Array
    rounds: int

    @classmethod
    def of(cls, subject: Subject, rounds: int) -> Judge:
        """Let the float network answer."""
        return cls(subject, subject.answers(subject.model), rounds)

    def row(self, way: Way, draw: int, records: Array) -> Row:
        """Make a file and judge it; the first draw's is timed."""
        subject, begun = self.subject, time.process_time()
        content = way.make(subject.model, records)
        seconds = time.process_time() - begun
        model = luciole.load(content)
        answers = subject.answers(model)
        top1, right = (100 * float(np.mean(a == subject.labels)) for a in (answers, self.answers))
        agree = 100 * float(np.mean(answers == self.answers))
        timed = draw == 0 and self.rounds
        times = self._times(content, way.in_litert) if timed else (None, None)
        kept = (len(content), weight_bytes(model), top1, top1 - right, agree, seconds, *times)
        return Row(subject.name, way.maker, way.name, draw, *kept)

    def _times(self, content: bytes, in_litert: bool) -> tuple[float, float | None]:
        """Time a call here and, where it runs there, in LiteRT, in microseconds."""
        model = luciole.load(content)
        x = as_input(model.graph.inputs[0], self.subject.test[:1])
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.tflite"
            path.write_bytes(content)
            calls = [our_call(model, x)[0]]
            calls += [litert_call(path, x)[0]] if in_litert else []
            ours, *theirs = interleaved_medians(calls, self.rounds)
        return ours, theirs[0] if theirs else None


def weight_bytes(model: Model) -> int:
    """Count the bytes of layers' constant weights."""
    found = {constant(op) for graph in model.graphs for op in graph.ops if has_weights(op)}
    return sum(len(value.buffer or ()) for value in found if value is not None)


def constant(op: Op) -> Value | None:
    """Find a layer's constant weights, behind a DEQUANTIZE too."""
    weights = op.given_operands().get((op.quant and op.quant.weight) or "")
    return None if weights is None else integers_behind(weights) or weights


def measured(
    judge: Judge, ways: Sequence[Way], draws: Mapping[str, Sequence[int]], count: int
) -> Iterator[Row]:
    """Make each file, from each draw that its maker is asked for, and judge it. Makers that are not
    here, and what they refuse, are told on the way.
    """
    subject = judge.subject
    yield judge.row(
        Way("float32", "", lambda model, _: to_bytes(model, "tflite")), 0, subject.train[:1]
    )
    for way in ways:
        if way.maker != OURS and missing(way.maker):
            continue
        for draw in draws[way.maker][: None if way.drawn else 1]:
            try:
                yield judge.row(way, draw, subject.draw(draw, count))
            except (ValueError, RuntimeError, KeyError, NotImplementedError, LucioleError) as error:
                say(f"{way.maker}, {way.name}: {type(error).__name__}: {error}"[:300])


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Print one line for each way: means over draws, their number, the largest of the draws' files,
    and the first draw's times.
    """
    head = ["made by", "scheme", "draws", "bytes", "weights", "top-1", "delta", "agree", "s"]
    grid = [[*head, "luciole, us", "LiteRT, us"]]
    for key in dict.fromkeys((row.maker, row.name) for row in rows):
        some = [row for row in rows if (row.maker, row.name) == key]
        means = [np.mean([getattr(r, n) for r in some]) for n in ("top1", "delta", "agree")]
        sizes = [f"{max(getattr(row, name) for row in some):,}" for name in ("bytes", "weights")]
        cells = [*key, str(len(some)), *sizes, *(f"{mean:.2f}" for mean in means)]
        cells.append(f"{np.mean([row.seconds for row in some]):.1f}")
        times = (some[0].luciole_us, some[0].litert_us)
        grid.append([*cells, *("" if t is None else f"{t:.0f}" for t in times)])
    return grid


def _numbers(text: str, what: str) -> list[int]:
    """Read numbers between commas. Raises UsageError for anything else."""
    try:
        return [int(word) for word in text.split(",") if word]
    except ValueError:
        raise UsageError(f"{what} is {text!r}: write numbers, as 0,1,2") from None


def parser() -> argparse.ArgumentParser:
    """The program's arguments."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--network", default="resnet8,mbnet,uneven", help="(all three)")
    made.add_argument("--draws", default="0,1,2", metavar="SEEDS", help="of records (0,1,2)")
    made.add_argument(
        "--peer-draws", default="0,1,2", metavar="SEEDS", help="the same for other quantizers"
    )
    made.add_argument("--rounds", type=int, default=200, help="calls timed (200; 0 for none)")
    made.add_argument("--quick", action="store_true", help="one draw of few records, few images")
    made.add_argument("--output", type=Path, metavar="FILE.json", help="also write the rows")
    return made


def main() -> None:
    """Print the tables."""
    arguments = parser().parse_args()
    count, images, rounds = QUICK if arguments.quick else (1000, None, arguments.rounds)
    draws = {OURS: _numbers(arguments.draws, "draws")}
    draws |= dict.fromkeys((CONVERTER, AI_EDGE), _numbers(arguments.peer_draws, "peer draws"))
    if arguments.quick:
        draws = {maker: some[:1] for maker, some in draws.items()}
    for reason in filter(None, map(missing, (CONVERTER, AI_EDGE))):
        say(reason)
    rows: list[Row] = []
    for name in arguments.network.split(","):
        judge = Judge.of(Subject.read(name, images), rounds)
        found = []
        for row in measured(judge, ways(name), draws, count):
            say(f"{name}, {row.maker} {row.name}, draw {row.draw}: {row.agree:.2f} % agree")
            found.append(row)
        print(f"\n{name}, {count} records, {len(judge.subject.test)} images\n")
        print(markdown(table(found)), flush=True)
        rows += found
    print(f"\n{machine(PACKAGES)}")
    if arguments.output:
        content = {"machine": machine(PACKAGES), "rows": [asdict(row) for row in rows]}
        write_file(arguments.output, to_json(content) + "\n")


if __name__ == "__main__":
    main()
