"""Every integer of files of uniform integers, here and in LiteRT's reference kernels: counts those
that differ, tensor by tensor.

    python3 -m benchmarks.uniform_equality [--only NETWORKS] [--schemes NAMES] [--images N]

Each network is quantized by ``luciole.quantize`` on 32 records, by each scheme that LiteRT runs,
and both interpreters run the file on N other images (300): each tensor that an operator computes
is compared, integers and floats. Schemes without integers between operators have floats there: the
largest difference is printed, too. At last LiteRT's default kernels run the file once. Exits with 1
where an integer differs. LUCIOLE_DATA names the folder with cifar10_subset.npz and models/.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import luciole
from benchmarks.machine import machine
from benchmarks.uniform_latency import DATA, PACKAGES, RECORDS, Subject, chosen
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.interpreter.affine import as_input
from luciole.ir import Array, Model
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D

SCHEMES: dict[str, dict[str, Any]] = {
    "int8": {},
    "uint8": {},
    "int16x8": {},
    "w4a8": {},
    "mixed": {"target_drop": 1.0},
    "dynamic": {},
    "weights": {},
    "float16": {},
}
NO_DATA = ("dynamic", "weights", "float16")
NETWORKS = "resnet8,mbnet"
NEWEST_DEPTHWISE = 6
"""The newest version of DEPTHWISE_CONV_2D that LiteRT's reference resolver knows."""


@dataclass
class Found:
    """How many tensors and numbers were compared, how many integers and floats differ, the largest
    difference of floats, and which tensors have differing integers.
    """

    tensors: int = 0
    numbers: int = 0
    integers: int = 0
    floats: int = 0
    largest: float = 0.0
    where: dict[str, int] = field(default_factory=dict)

    def compare(self, name: str, ours: Array, theirs: Array) -> None:
        """Count what differs in a tensor."""
        self.numbers += ours.size
        differ = int(np.count_nonzero(ours != theirs))
        if ours.dtype.kind == "f":
            self.floats += differ
            self.largest = max(self.largest, float(np.abs(ours - theirs).max(initial=0)))
        elif differ:
            self.integers += differ
            self.where[name] = self.where.get(name, 0) + differ


def quantized(subject: Subject, scheme: str) -> Model:
    """Quantize a network, its operators as LiteRT's reference resolver knows them."""
    data = None if scheme in NO_DATA else {subject.model.graph.inputs[0].name: subject.records()}
    made = luciole.quantize(
        subject.model, data, scheme=scheme, proof=False, **SCHEMES[scheme]
    ).model
    for op in made.graph.ops:
        if isinstance(op, DepthwiseConv2D):
            op.version = min(op.version, NEWEST_DEPTHWISE)
    return made


def images(subject: Subject, count: int) -> Array:
    """Read test images as records are."""
    with np.load(DATA / "cifar10_subset.npz") as arrays:
        found = np.asarray(arrays["x_test"][:count], np.float32)
    return found if subject.name == "resnet8" else np.asarray(found / 127.5 - 1, np.float32)


def litert(content: bytes, reference: bool) -> Any:
    """Open a file in LiteRT."""
    from ai_edge_litert import interpreter as runtime

    resolver = runtime.OpResolverType
    kind = resolver.BUILTIN_REF if reference else resolver.AUTO
    opened = runtime.Interpreter(
        model_content=content,
        num_threads=1,
        experimental_op_resolver_type=kind,
        experimental_preserve_all_tensors=reference,
    )
    opened.allocate_tensors()
    return opened


def compared(model: Model, records: Array) -> Found:
    """Run both, image by image, and compare what operators compute."""
    content = to_bytes(model, "tflite")
    ours = Interpreter(from_bytes(content), keep_tensors=True)
    theirs = litert(content, reference=True)
    places = {detail["name"]: detail["index"] for detail in theirs.get_tensor_details()}
    given, found = ours.graph.inputs[0], Found()
    slots = [(number, name) for number, name in _computed(ours) if name in places]
    found.tensors = len(slots)
    for x in as_input(given, records):
        ours.run({given.name: x[None]})
        theirs.set_tensor(theirs.get_input_details()[0]["index"], x[None])
        theirs.invoke()
        for number, name in slots:
            found.compare(name, ours.get_tensor(number), theirs.get_tensor(places[name]))
    return found


def _computed(ours: Interpreter) -> Iterator[tuple[int, str]]:
    """Give the numbers and names of tensors that operators compute from data."""
    constant = {v for v in ours.graph.values if v.data is not None}
    for op in ours.graph.ops:
        if all(v is None or v in constant for v in op.operands):
            constant.update(op.results)
    for number, value in enumerate(ours.graph.values):
        if value.producer is not None and value not in constant:
            yield number, value.name


def runs_by_default(model: Model, record: Array) -> str:
    """Run a file once with LiteRT's default kernels, and say how that went."""
    try:
        opened = litert(to_bytes(model, "tflite"), reference=False)
        x = as_input(model.graph.inputs[0], record[None])
        opened.set_tensor(opened.get_input_details()[0]["index"], x)
        opened.invoke()
    except (ValueError, RuntimeError) as error:
        return str(error).splitlines()[0]
    return "yes"


def parser() -> argparse.ArgumentParser:
    """The program's arguments."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--only", default=NETWORKS, metavar="NETWORKS", help=f"({NETWORKS})")
    made.add_argument("--schemes", default=",".join(SCHEMES), help=", ".join(SCHEMES))
    made.add_argument("--images", type=int, default=300, help="(300)")
    return made


def main() -> int:
    """Print the table; the exit code."""
    arguments, differ = parser().parse_args(), 0
    print(f"{arguments.images} images, {RECORDS} records\n")
    print("network | scheme | tensors | numbers | integers differ | floats differ | by default |")
    print("---|---|---|---|---|---|---|")
    for subject in chosen(arguments.only):
        records = images(subject, arguments.images)
        for scheme in arguments.schemes.split(","):
            model = quantized(subject, scheme)
            found = compared(model, records)
            differ += found.integers
            floats = f"{found.floats}, by {found.largest:.1e}" if found.floats else "0"
            figures = f"{found.tensors} | {found.numbers} | {found.integers} | {floats}"
            default = runs_by_default(model, records[0])
            print(f"{subject.name} | {scheme} | {figures} | {default} |", flush=True)
            for name, count in list(found.where.items())[:5]:
                print(f"  {count} integers of {name}")
    print(f"\n{machine(PACKAGES)}")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
