"""How far files agree that are exported to ONNX and imported from it: prints three tables.

    python3 -m benchmarks.onnx_agreement [--only models,learned,qdq] [--records 100]

``models``: every model of LUCIOLE_DATA's ``models`` as .onnx, and ``--exact``, run by
onnxruntime beside the interpreter on random inputs: the largest difference as a share of the
largest number, or the percentage of equal codes and the largest difference; and whether what is
read back is written as the same bytes. ``learned``: a dense network for MNIST with learned levels
of 1 to 3 bits and ResNet-8 of 2, on test data: records beyond 1e-5, and how many of them have a
value of which one runtime says that it lies above a threshold, and the other below; bytes as a
share of the .circle file, and whether its constants come back. ``qdq``: ResNet-8 by onnxruntime's
static quantizer to .tflite: equal codes of LiteRT and onnxruntime, and accuracies.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import luciole
from benchmarks.accuracy_subjects import Subject, cifar, mnist
from benchmarks.accuracy_table import markdown
from benchmarks.machine import machine
from luciole.exporters import to_bytes
from luciole.importers.onnx.model import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Array, LucioleError, Model
from luciole.ir.dtypes import NUMPY, integer_range
from luciole.schema.onnx_dialect import DOMAIN
from tests.exporters.onnx_support import by_onnxruntime, constants, ours, session
from tests.onnx_nodes import without_softmax

PACKAGES = ("luciole", "numba", "numpy", "onnx", "onnxruntime", "ai-edge-litert")
DATA = Path(os.environ.get("LUCIOLE_DATA", "data"))
NEAR = 1e-5
CALIBRATION = 500

Rows = Iterator[list[str]]


def models(records: int) -> Rows:
    """Lines of the models: the default form, and the exact one where that is another."""
    yield ["model", "bytes", ".onnx", "agreement", "written again"]
    for path in sorted((DATA / "models").glob("*.tflite")):
        model = luciole.load(path)
        contents = {path.stem: to_bytes(model, "onnx")}
        exact = to_bytes(model, "onnx", exact=True)
        if exact != contents[path.stem]:
            contents[f"{path.stem} --exact"] = exact
        for name, content in contents.items():
            found = [_pair(model, content, seed) for seed in range(records)]
            said = agreement(*zip(*found, strict=True)), _again(content, name != path.stem)
            yield [name, f"{path.stat().st_size:,}", f"{len(content):,}", *said]


def _pair(model: Model, content: bytes, seed: int) -> tuple[Array, Array]:
    inputs = _inputs(model, np.random.default_rng(seed))
    return by_onnxruntime(content, inputs)[0], ours(model, inputs)[0]


def _inputs(model: Model, rng: np.random.Generator) -> list[Array]:
    """Random codes, or real numbers from 0 to 1."""
    found = []
    for value in model.graph.inputs:
        limits, shape = integer_range(value.dtype), [n or 1 for n in value.shape]
        real = rng.random(shape, np.float32)
        codes = rng.integers(limits[0], limits[1] + 1, shape) if limits else real
        found.append(codes.astype(NUMPY[value.dtype]))
    return found


def agreement(found: Sequence[Array], wanted: Sequence[Array]) -> str:
    """Say how far results are apart."""
    a, b = np.concatenate(found).astype(np.float64), np.concatenate(wanted).astype(np.float64)
    if wanted[0].dtype.kind == "f":
        return f"{np.abs(a - b).max() / np.abs(b).max():.1e} apart"
    return f"{100 * np.mean(a == b):.2f} % equal, {np.abs(a - b).max():.0f} at most"


def _again(content: bytes, exact: bool) -> str:
    """Say whether a file that is read is written as it was."""
    try:
        again = to_bytes(from_bytes(content).sound(), "onnx", exact=exact)
    except LucioleError as error:
        return f"refused: {error}"[:80]
    return "same bytes" if again == content else f"other names ({len(again):,} bytes)"


# ---------------------------------------------------------------------------------------- learned
def learned(records: int) -> Rows:
    """Lines of networks with learned levels."""
    yield ["network", "bytes", ".onnx", "ratio", "apart", "beyond 1e-5", "crossed", "constants"]
    for name, subject, options in _subjects():
        data = subject.calibration(CALIBRATION, 0)
        model = luciole.quantize(subject.model, data, proof=False, **options).model
        content, circle = to_bytes(model, "onnx"), to_bytes(model)
        sizes = [f"{len(circle):,}", f"{len(content):,}", f"{len(content) / len(circle):.3f}"]
        same = constants(from_bytes(content).sound()) == constants(model)
        yield [name, *sizes, *_differences(model, content, subject.test[:records]), str(same)]


def _subjects() -> Iterator[tuple[str, Subject, dict[str, Any]]]:
    digits = mnist("mnist97", DATA / "mnist.npz", Path(tempfile.gettempdir()))
    for bits in (1, 2, 3):
        yield f"MNIST K={bits}", digits, {"encode_bits": bits}
    photos = cifar(DATA / "cifar10_subset.npz", DATA / "models" / "resnet8_fp32.tflite")
    yield "ResNet-8 w2a2", photos, {"encode_bits": "w2a2"}


def _differences(model: Model, content: bytes, records: Array) -> list[str]:
    """The largest difference, records beyond ``NEAR``, and those in which a value's level differs:
    from there on both runtimes compute something else.
    """
    run, nodes = session(_with_inputs_of_layers(content)), _layers(content)
    runner, worst, beyond, crossed = Interpreter(model, keep_tensors=True), 0.0, 0, 0
    for record in records:
        found, *inputs = run([record[None]])
        (wanted,) = runner.run(record[None]).values()
        apart = float(np.abs(found - wanted).max() / np.abs(wanted).max())
        worst = max(worst, apart)
        if apart > NEAR:
            beyond += 1
            crossed += _crosses(content, nodes, inputs, runner)
    return [f"{worst:.1e}", f"{beyond} of {len(records)}", str(crossed)]


def _layers(content: bytes) -> list[Any]:
    return [n for n in onnx.load_from_string(content).graph.node if n.domain == DOMAIN]


def _with_inputs_of_layers(content: bytes) -> bytes:
    """A file that also gives what its layers with learned levels read."""
    proto = onnx.load_from_string(content)
    for node in _layers(content):
        proto.graph.output.append(onnx.helper.make_empty_tensor_value_info(node.input[0]))
    return bytes(proto.SerializeToString())


def _crosses(
    content: bytes, nodes: Sequence[Any], inputs: Sequence[Array], ran: Interpreter
) -> bool:
    """Tell whether any layer's input has a value between whose two forms lies a threshold, both
    within ``NEAR`` of each other in the first such layer.
    """
    held = {
        t.name: onnx.numpy_helper.to_array(t)
        for t in onnx.load_from_string(content).graph.initializer
    }
    layers = [op for op in ran.graph.ops if op.kind.startswith("LQ_")]
    for node, op, theirs in zip(nodes, layers, inputs, strict=True):
        (value, *_), thresholds = op.given_operands().values(), held[node.input[1]]
        mine = ran.get_tensor(ran.graph.values.index(value))
        mine = np.moveaxis(mine, -1, 1) if mine.ndim == 4 else mine
        levels = [np.searchsorted(thresholds, x, "left") for x in (mine, theirs)]
        if not np.array_equal(levels[0], levels[1]):
            return bool(np.abs(mine - theirs).max() <= NEAR * np.abs(mine).max())
    return False


# ------------------------------------------------------------------------------------------- qdq
def qdq(records: int) -> Rows:
    """Lines of what onnxruntime's static quantizer makes of ResNet-8, with its softmax and without:
    onnxruntime computes signed codes with floats where it may not fuse them.
    """
    yield [
        "output",
        "codes",
        "session",
        "equal",
        "at most",
        "onnxruntime %",
        "LiteRT %",
        "luciole %",
    ]
    photos = cifar(DATA / "cifar10_subset.npz", DATA / "models" / "resnet8_fp32.tflite")
    for output in ("logits", "probabilities"):
        for codes in ("QUInt8", "QInt8"):
            content = _quantized(photos, output, codes)
            test = photos.test[:records]
            runs = _runs(content, test)
            for name, entries in (("default", {}), ("fused", {FUSED: "1"})):
                theirs = _all(session(content, entries), test)
                yield [output, codes, name, *_compared(content, theirs, runs, photos.labels)]


FUSED = "session.qdqisint8allowed"
"""Lets onnxruntime fuse signed codes on x86, too, as its converter to unsigned ones does not."""


def _quantized(photos: Subject, output: str, codes: str) -> bytes:
    """The bytes of what the quantizer writes."""
    from onnxruntime import quantization  # type: ignore[import-untyped]  # it has no types

    proto = onnx.load_from_string(to_bytes(photos.model, "onnx"))
    proto = without_softmax(proto) if output == "logits" else proto
    name = proto.graph.input[0].name
    records = iter([{name: record[None]} for record in photos.calibration(CALIBRATION, 0)])

    class Records(quantization.CalibrationDataReader):  # type: ignore[misc]
        """Hands out the records."""

        def get_next(self) -> dict[str, Array] | None:
            return next(records, None)

    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "float.onnx", Path(folder) / "integers.onnx"
        source.write_bytes(proto.SerializeToString())
        kinds = quantization.QuantType
        options = {"activation_type": kinds[codes], "weight_type": kinds.QInt8, "per_channel": True}
        quantization.quantize_static(source, target, Records(), **options)
        return target.read_bytes()


def _runs(content: bytes, test: Array) -> dict[str, Array]:
    """What LiteRT's default kernels and luciole give for all records."""
    from ai_edge_litert.interpreter import Interpreter as LiteRT

    model = from_bytes(content).sound()
    peer = LiteRT(model_content=to_bytes(model, "tflite"), num_threads=1)
    peer.allocate_tensors()
    (given,), (taken,) = peer.get_input_details(), peer.get_output_details()
    found = []
    for record in test:
        peer.set_tensor(given["index"], record[None])
        peer.invoke()
        found.append(peer.get_tensor(taken["index"]))
    own = Interpreter(model)
    mine = [next(iter(own.run(record[None]).values())) for record in test]
    return {"LiteRT": np.concatenate(found), "luciole": np.concatenate(mine)}


def _all(run: Callable[[Sequence[Array]], list[Array]], test: Array) -> Array:
    return np.concatenate([run([record[None]])[0] for record in test])


def _compared(
    content: bytes, theirs: Array, runs: dict[str, Array], labels: Array | None
) -> list[str]:
    """Equal codes of onnxruntime and LiteRT, and right answers of all."""
    graph = onnx.load_from_string(content).graph
    held = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
    (last,) = (n for n in graph.node if n.output[0] == graph.output[0].name)
    steps = np.rint((theirs - runs["LiteRT"]) / held[last.input[1]])
    assert labels is not None, "photos have labels"
    answers = [theirs, runs["LiteRT"], runs["luciole"]]
    right = [f"{100 * np.mean(a.argmax(1) == labels[: len(a)]):.2f}" for a in answers]
    return [f"{100 * np.mean(steps == 0):.2f} %", f"{np.abs(steps).max():.0f}", *right]


PARTS: dict[str, tuple[Callable[[int], Rows], int]] = {
    "models": (models, 20),
    "learned": (learned, 100),
    "qdq": (qdq, 5000),
}
"""What is printed, and of how many records unless others are named."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--records", type=int)
    given = parser.parse_args()
    for name in given.only.split(","):
        part, usual = PARTS[name]
        print(markdown(list(part(given.records or usual))), end="\n\n", flush=True)
    print(machine(PACKAGES))


if __name__ == "__main__":
    main()
