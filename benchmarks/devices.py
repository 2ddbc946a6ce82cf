"""What operators cost on microcontrollers, as a device file for ``luciole search --device``.

  python -m benchmarks.devices m4 > luciole/lquantizer/search/devices/cortex-m4.json

Each kind of operator is compiled alone, in each width that C is written for and in four shapes
with ``-O3``, and run by QEMU as ``benchmarks.boards`` does, which counts instructions exactly.
Costs by element read, by element given and by product are least squares of the relative error, none
below 0; the largest error is printed to standard error. Cycles are more than instructions.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from subprocess import CalledProcessError

import numpy as np

import luciole
from luciole.compiler import CompileOptions, compile_model
from luciole.compiler.check import batches
from luciole.compiler.self_test import random_records
from luciole.ir import Graph, LucioleError, Model, Op
from luciole.ir.analysis.figures import macs
from luciole.ir.ops.activations import Logistic, Relu, Tanh
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D
from luciole.ir.ops.reduce import Mean
from luciole.ir.ops.softmax import Softmax
from luciole.lquantizer.assignment.schemes import UniformOptions
from luciole.lquantizer.search.space import LEARNED_OPTIONS, recipe
from tests.boards import firmware
from tests.boards.firmware import BOARDS

_SIDES = ("input", "output")
NAMES = {"m0plus": "cortex-m0plus", "m4": "cortex-m4"}
WIDTHS = (*LEARNED_OPTIONS, "dynamic:int8", "int:w8a8", "int:w4a8", "float")
Make = Callable[[Graph, np.random.Generator, Sequence[int]], Op]


def layer(kind: type[Op]) -> Make:
    """Make layers of a kind: shapes are side, inputs, outputs and the side of a filter."""

    def make(graph: Graph, rng: np.random.Generator, shape: Sequence[int]) -> Op:
        side, inputs, outputs, filter_side = shape
        if kind is FullyConnected:
            x = graph.add_input("x", (1, inputs))
            dims: tuple[int, ...] = (outputs, inputs)
        elif kind is Conv2D:
            x = graph.add_input("x", (1, side, side, inputs))
            dims = (outputs, filter_side, filter_side, inputs)
        else:
            x = graph.add_input("x", (1, side, side, inputs))
            dims, outputs = (1, filter_side, filter_side, inputs), inputs
        scale = np.prod(dims[1:]) ** -0.5
        weights = graph.add_constant("w", (rng.normal(size=dims) * scale).astype(np.float32))
        bias = graph.add_constant("b", rng.normal(size=outputs).astype(np.float32))
        op = kind.from_operands([x, weights, bias], {})
        if isinstance(op, Conv2D | DepthwiseConv2D):
            op.stride_h = op.stride_w = 1
        if isinstance(op, DepthwiseConv2D):
            op.depth_multiplier = 1
        return op

    return make


def elements(kind: type[Op]) -> Make:
    """Make operators without weights: shapes are side and channels."""

    def make(graph: Graph, rng: np.random.Generator, shape: Sequence[int]) -> Op:
        side, channels = shape
        flat = kind is Softmax
        x = graph.add_input("x", (1, channels) if flat else (1, side, side, channels))
        more = [x] if kind in (Add, Mul) else []
        if kind is Mean:
            more = [graph.add_constant("axes", np.array([1, 2], np.int32))]
        op = kind.from_operands([x, *more], {})
        if isinstance(op, MaxPool2D | AveragePool2D):
            op.stride_h = op.stride_w = op.filter_height = op.filter_width = 2
        if isinstance(op, Softmax):
            op.beta = 1.0
        return op

    return make


LAYERS = {
    "FULLY_CONNECTED": (
        layer(FullyConnected),
        ((1, 64, 10, 1), (1, 128, 64, 1), (1, 400, 16, 1), (1, 32, 96, 1)),
    ),
    "CONV_2D": (layer(Conv2D), ((8, 3, 8, 3), (6, 16, 16, 3), (6, 32, 16, 1), (4, 64, 8, 1))),
    "DEPTHWISE_CONV_2D": (
        layer(DepthwiseConv2D),
        ((8, 8, 8, 3), (6, 16, 16, 5), (10, 4, 4, 3), (6, 8, 8, 1)),
    ),
}
REST = {
    kind: (elements(cls), ((4, 4), (8, 8), (12, 16)))
    for kind, cls in (
        ("ADD", Add),
        ("MUL", Mul),
        ("MEAN", Mean),
        ("LOGISTIC", Logistic),
        ("RELU", Relu),
        ("TANH", Tanh),
        ("MAX_POOL_2D", MaxPool2D),
        ("AVERAGE_POOL_2D", AveragePool2D),
        ("SOFTMAX", Softmax),
    )
}
_RULING = {kind: int(kind != "MEAN") for kind in REST}
"""Whether what is read or what is given rules the cost of an operator without weights."""


def model_of(make: Make, shape: Sequence[int]) -> Model:
    """Make a network of one operator."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    graph.append(make(graph, np.random.default_rng(0), shape), "y")
    graph.outputs = [graph.values[-1]]
    return model


def quantized(model: Model, width: str) -> Model:
    """Give its layer a width."""
    if width == "float":
        return model
    (x,) = model.graph.inputs
    data = np.random.default_rng(1).normal(size=(40, *x.dims[1:])).astype(np.float32)
    if width == "int:w8a8":
        how = UniformOptions(rounding="nearest", input_type="int8", output_type="int8")
        return luciole.quantize(model, data, how, proof=False).model
    return luciole.quantize(
        model, data, config=recipe({model.graph.ops[0].name: width}), proof=False
    ).model


def instructions(model: Model, board: str, integers: bool) -> int | None:
    """Count what a run takes, with ``integers`` at its ends or floats; None for what has no C, or
    does not fit.
    """
    try:
        ends = "quantized" if integers else "float"
        options = CompileOptions("net", ends, ends, target=NAMES[board])
        program = compile_model(model, options)
        records = list(batches(program, random_records(program)))[:1]
        with tempfile.TemporaryDirectory() as made:
            ran = firmware.run(program, records, BOARDS[board], Path(made), "-O3")
    except (LucioleError, CalledProcessError) as error:
        print(f"  {' '.join(str(error).split())[:100]}", file=sys.stderr)
        return None
    return ran.instructions


def fitted(rows: Sequence[tuple[float, ...]], counts: Sequence[int]) -> tuple[list[float], float]:
    """Fit costs by feature, none below 0, to counts; returns the largest relative error too."""
    wanted = np.array(counts, float)
    matrix = np.array(rows, float) / wanted[:, None]
    kept = list(range(matrix.shape[1]))
    while True:
        part = np.linalg.lstsq(matrix[:, kept], np.ones(len(wanted)), rcond=None)[0]
        if len(kept) == 1 or part.min() >= 0:
            break
        kept.pop(int(np.argmin(part)))
    found = np.zeros(matrix.shape[1])
    found[kept] = np.maximum(part, 0)
    return found.tolist(), float(np.abs(matrix @ found - 1).max())


def measured(board: str) -> Iterator[dict[str, object]]:
    """Yield the entries of a device file."""
    for kind, (make, shapes) in (*LAYERS.items(), *REST.items()):
        widths = WIDTHS if kind in LAYERS else ("float",)
        learns = kind != "DEPTHWISE_CONV_2D"  # which stays float
        for width in (w for w in widths if learns or w not in LEARNED_OPTIONS):
            entry = _entry(kind, width, make, shapes, board)
            if entry is not None:
                yield entry


def _entry(
    kind: str, width: str, make: Make, shapes: Sequence[Sequence[int]], board: str
) -> dict[str, object] | None:
    rows, counts = [], []
    for shape in shapes:
        model = model_of(make, shape)
        op = model.graph.ops[0]
        try:
            found = instructions(quantized(model, width), board, width == "int:w8a8")
        except LucioleError as refused:
            print(f"  {refused}", file=sys.stderr)
            found = None
        if found is None:
            return None
        sizes = [float(np.prod(value.dims)) for value in (*model.graph.inputs, op.results[0])]
        rows.append((*sizes, float(macs(op) or 0)) if kind in LAYERS else (sizes[_RULING[kind]],))
        counts.append(found)
    costs, error = fitted(rows, counts)
    print(
        f"{kind:18s} {width:12s} {counts}  error {100 * error:.0f} %", file=sys.stderr, flush=True
    )
    names = ("input", "output", "mac") if kind in LAYERS else (_SIDES[_RULING[kind]],)
    each = {name: round(cost, 3) for name, cost in zip(names, costs, strict=True) if cost}
    return {"kind": kind, "width": width, **each}


def main() -> int:
    """Print a board's file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("board", choices=list(NAMES))
    board = parser.parse_args().board
    if BOARDS[board].tools.missing:
        print(BOARDS[board].tools.missing, file=sys.stderr)
        return 1
    about = (
        f"python -m benchmarks.devices {board}: instructions counted by QEMU on the board "
        f"{BOARDS[board].machine} for {BOARDS[board].flags}, gcc -O3, each operator alone in four "
        "shapes, floats or int8 at both ends; linear in elements read and given, and products"
    )
    costs = list(measured(board))
    costs.append({"kind": "RESHAPE", "width": "*"})
    lines = ",\n  ".join(json.dumps(entry) for entry in costs)
    head = {"name": NAMES[board], "unit": "instructions", "about": about}
    print(json.dumps(head, indent=1)[:-2] + f',\n "costs": [\n  {lines}\n ]\n}}')
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
