"""What networks take on boards that QEMU has: instructions, flash, memory and stack.

  python -m benchmarks.boards --boards m0plus,m4 --data mnist.npz:x_test \\
      --preprocess "(x/255 - 0.1307)/0.3081"
  python -m benchmarks.boards digits-int2.circle --boards microbit --data digits.npz:x_test

Without models: 784-690(tanh)-10(softmax) with learned levels of 1 to 3 bits, random weights, and
the same network in int8, plain C. Instructions are exact (QEMU counts one in each nanosecond; the
board's clock is read, to 62 of them); cycles are more, by how much depends on the part's memory.
Every result is compared bit by bit with that of the same C on this machine.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from subprocess import CalledProcessError

import numpy as np

import luciole
from luciole.compiler import Compiled, CompileOptions, Program, compile_model
from luciole.compiler.check import batches
from luciole.compiler.host import build_library
from luciole.compiler.options import FIXED, MODEL, OptionError
from luciole.compiler.self_test import random_records
from luciole.ir import Array, Model, TensorType
from luciole.tools.data.load import load_data
from luciole.tools.data.preprocess import transforms_of
from luciole.tools.random_models import dense, in_int8, lq_dense
from tests.boards import firmware
from tests.boards.firmware import BOARDS

SIZES = (784, 690, 10)
CMSIS_NN = {
    "ad01_int8": 529_920,
    "kws_int8": 6_907_840,
    "resnet8_int8": 23_725_760,
    "vww_96_int8": 22_858_480,
    "784-690-10 int8, plain C": 1_064_700,
}
"""Instructions that convolutions and dense layers take by CMSIS-NN's kernels on a Cortex-M4, by
model: each layer alone on the same board (-O3, gcc 12.2), its sizes known to the compiler; what
stands between them is not in it.
"""


def networks(paths: Sequence[str]) -> Iterator[tuple[str, Model]]:
    """Yield the models that are asked for, or those of the module's description."""
    for path in paths:
        yield Path(path).stem, luciole.load(path)
    if paths:
        return
    for bits in (1, 2, 3):
        yield f"784-690-10 K={bits}", lq_dense(SIZES, bits)
    yield "784-690-10 int8, plain C", in_int8(dense(SIZES))


def program_of(model: Model, preprocess: str, target: str) -> Program:
    """Compile for bytes, with scores in fixed point where there is some."""
    transforms = transforms_of(preprocess, model.graph)
    options = CompileOptions("net", "bytes", FIXED, preprocess=transforms, target=target)
    try:
        return compile_model(model, options)
    except OptionError:  # no learned layer's result
        return compile_model(model, replace(options, output=MODEL))


def records_of(
    program: Program, model: Model, data: str | None, count: int
) -> list[dict[str, Array]]:
    """Read bytes, or make random ones."""
    if data is None:
        return list(batches(program, random_records(program)))[:count]
    copy, values = model.graph.clone()
    for value in model.graph.inputs:
        values[value].dtype, values[value].quantization = TensorType.FLOAT32, None
    found = load_data(data, copy, limit=count).records
    return list(batches(program, {n: a.astype(np.uint8) for n, a in found.items()}))


def main(argv: Sequence[str] | None = None) -> int:
    """Print a row for each network and board; 1 where a board gives other bits."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.boards", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--boards", default=",".join(BOARDS))
    parser.add_argument("--optimize", default="-O3", help="the compiler's flag (default: -O3)")
    parser.add_argument("--data", help="records of bytes (default: random ones)")
    parser.add_argument("--preprocess", default="(x - 127.5) / 74")
    parser.add_argument("--records", type=int, default=4)
    given = parser.parse_args(argv)
    print(f"{'network':28s} board     instructions    flash      RAM  stack  bits   / CMSIS-NN")
    boards = given.boards.split(",")
    same = [_row(*row, board, given) for row in networks(given.models) for board in boards]
    return 0 if all(same) else 1


def _row(name: str, model: Model, board_name: str, given: argparse.Namespace) -> bool:
    board = BOARDS[board_name]
    if board.tools.missing:
        print(f"{name:28s} {board_name:8s}  {board.tools.missing}")
        return True
    program = program_of(model, given.preprocess, board.target)
    records = records_of(program, model, given.data, given.records)
    with tempfile.TemporaryDirectory() as made:
        build_library(program, Path(made) / "net.so")
        compiled = Compiled(Path(made) / "net.so")
        wanted = [array.tobytes() for record in records for array in compiled.run(record)]
        try:
            ran = firmware.run(program, records, board, Path(made), given.optimize)
        except CalledProcessError:
            print(f"{name:28s} {board_name:8s}  does not fit")
            return True
    same = ran.results == wanted
    numbers = f"{ran.instructions:12d} {ran.flash:8d} {ran.ram:8d} {ran.stack:6d}"
    peer = CMSIS_NN.get(name) if board_name == "m4" else None
    ratio = "" if peer is None else f"{ran.instructions / peer:.2f}"
    bits = "equal " if same else "DIFFER"
    print(f"{name:28s} {board_name:8s}  {numbers}  {bits} {ratio}".rstrip(), flush=True)
    return same


if __name__ == "__main__":
    raise SystemExit(main())
