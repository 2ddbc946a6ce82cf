"""Programs on boards that QEMU has give the bits that they give here."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.compiler import Program
from luciole.compiler.check import batches
from luciole.compiler.self_test import random_records
from luciole.compiler.sizes import CALL_GRAPH, stack_of
from luciole.ir import Graph, Model, Op, TensorType
from luciole.ir.ops.activations import Elu, HardSwish, Logistic, Tanh
from luciole.ir.ops.elementwise_unary import Abs, Exp, Log, Neg, Rsqrt, Sqrt, Square
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLSTM
from luciole.tools.random_models import convolutions, in_int8, lq_convolution, lq_dense
from tests.boards import firmware
from tests.boards.firmware import BOARDS, Board, Ran
from tests.compiler_support import STRICT, built, program_of
from tests.lstm_support import integer_lstm
from tests.networks import network
from tests.support import Affine, data_path, one_op
from tests.windows_support import all_windowed

PLAIN = (*STRICT, "-O0", "-fPIC", "-shared")
"""How this machine's compiler takes little time."""


def ran(program: Program, name: str, folder: Path, optimize: str = "-Os") -> Ran:
    """Run on a board what was run here, and compare bit by bit."""
    return ran_on(program, BOARDS[name], folder, optimize)


def ran_on(program: Program, board: Board, folder: Path, optimize: str) -> Ran:
    if board.tools.missing:
        pytest.skip(board.tools.missing)
    records = list(batches(program, random_records(program)))[:2]
    found = firmware.run(program, records, board, folder, optimize)
    compiled = built(program, folder, flags=PLAIN)
    wanted = [array.tobytes() for record in records for array in compiled.run(record)]
    assert found.results == wanted
    return found


@pytest.mark.parametrize("board", ["microbit", "m0plus", "m3", "m7", "riscv32"])
def test_learned_levels_give_the_same_bits(board: str, tmp_path: Path) -> None:
    program = levels(BOARDS[board].target)
    assert_small(program, ran(program, board, tmp_path))


def levels(target: str) -> Program:
    return program_of(lq_dense((64, 50, 10), 3), target=target, input="bytes")


def assert_small(program: Program, found: Ran) -> None:
    """A board without a C library has little beside tables, and a stack without vectors."""
    assert 1000 < found.instructions < 1_000_000
    assert program.table_bytes < found.flash
    assert program.arena_bytes <= found.ram
    if program.options.target != "aarch64":
        assert found.flash < program.table_bytes + 8192
        assert 64 < found.stack < 1024


@pytest.mark.parametrize("board", ["m0plus", "m4", "m55", "riscv32", "aarch64"])
@pytest.mark.parametrize("name", ["bytes", "learned levels", "floats"])
def test_the_stack_is_as_deep_as_the_compiler_says(name: str, board: str, tmp_path: Path) -> None:
    """To 16 bytes, for those of library functions and those between ``main`` and the paint; never
    deeper without library functions.
    """
    machine = BOARDS[board]
    make = {
        "bytes": lambda: program_of(in_int8(convolutions(8, 4)), target=machine.target),
        "learned levels": lambda: levels(machine.target),
        "floats": lambda: program_of(convolutions(8, 4), target=machine.target),
    }
    program = make[name]()
    machine = replace(machine, flags=f"{machine.flags} {CALL_GRAPH}")
    found = ran_on(program, machine, tmp_path, "-O2")
    (graph,) = tmp_path.glob("*net.ci")
    stack = stack_of(graph.read_text(), ["net_run"])
    assert stack.bytes is not None
    assert stack.bytes - 16 <= found.stack <= stack.bytes + (16 if stack.outside else 0)
    if name == "learned levels":
        assert_small(program, found)


@pytest.mark.parametrize("board", ["m0plus", "riscv32"])
def test_small_code_gives_the_same_bits(board: str, tmp_path: Path) -> None:
    ran(program_of(in_int8(convolutions(8, 4))), board, tmp_path)


@pytest.mark.parametrize("board", ["m4", "m55"])
def test_windows_of_bytes_give_the_same_bits_by_dsp_instructions_and_helium(
    board: str, tmp_path: Path
) -> None:
    ran(program_of(all_windowed(in_int8)), board, tmp_path)


@pytest.mark.parametrize(
    ("scheme", "channels", "optimize"),
    [
        ("int8", 5, "-O3"),
        ("int8", 8, "-Os"),
        ("uint8", 8, "-Os"),
        ("int16x8", 5, "-O3"),
        ("int:w2a8", 5, "-O3"),
    ],
)
@pytest.mark.parametrize("board", ["m4", "m55"])
def test_layers_give_the_same_bits_by_dsp_instructions_and_helium(
    board: str, scheme: str, channels: int, optimize: str, tmp_path: Path
) -> None:
    ran(program_of(quantized(scheme, channels)), board, tmp_path, optimize)


@cache
def quantized(scheme: str, channels: int) -> Model:
    model = convolutions(size=8, channels=channels)
    shape = (16, *model.graph.inputs[0].dims[1:])
    records = {"x": np.random.default_rng(0).normal(size=shape).astype(np.float32)}
    return luciole.quantize(model, records, scheme=scheme, proof=False).model


@pytest.mark.parametrize("board", ["m0plus", "m4"])
def test_weights_of_blocks_give_the_same_bits(board: str, tmp_path: Path) -> None:
    model = luciole.quantize(network((128, 64, 10)), scheme="weights:int4/32").model
    ran(program_of(model), board, tmp_path)


@pytest.mark.parametrize("scale", [1.3e-9, 2.0, 5000.0])
def test_small_and_large_factors_give_the_same_bits(scale: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights, bias = rng.integers(-99, 99, (9, 6), np.int8), rng.integers(-999, 999, 9, np.int32)
    one, to = Affine(1.0), Affine(scale, 3, dtype=TensorType.INT8)
    given = [np.zeros((4, 6), np.int8), weights, bias]
    model = one_op(FullyConnected, given, (1, 2), affine=[one, one, one], results=[to])
    ran(program_of(model), "m4", tmp_path)


@pytest.mark.parametrize("board", ["m0plus", "m4"])
def test_learned_convolutions_give_the_same_bits(board: str, tmp_path: Path) -> None:
    ran(program_of(lq_convolution(8, 12, 2), output="fixed"), board, tmp_path)


def test_an_lstm_of_bytes_gives_the_same_bits(tmp_path: Path) -> None:
    model = integer_lstm(UnidirectionalSequenceLSTM, "everything but the input gate")
    ran(program_of(model), "m3", tmp_path)


FORMULAS: tuple[type[Op], ...] = (
    *(Abs, Exp, Log, Neg, Rsqrt, Sqrt, Square),
    *(Elu, Gelu, HardSwish, LeakyRelu, Logistic, Tanh),
)


@pytest.mark.parametrize("board", ["m0plus", "m4", "riscv32"])
def test_formulas_give_the_same_bits(board: str, tmp_path: Path) -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    x = graph.add_input("x", (1, 64))
    for k, cls in enumerate(FORMULAS):
        op = graph.append(cls.from_operands([x], {}), f"y{k}")
        graph.outputs = [*graph.outputs, op.results[0]]
    ran(program_of(model), board, tmp_path)


SIX = ("1 bit", "3 bits", "ad01_int8", "kws_int8", "resnet8_int8", "resnet8_fp32")
"""Learned levels of 256-70-10, and files."""


def model_of(name: str) -> Model:
    if name.endswith(("bit", "bits")):
        return lq_dense((256, 70, 10), int(name.split()[0]))
    return luciole.load(data_path(f"models/{name}.tflite"))


@pytest.mark.parametrize("name", SIX)
def test_six_models_give_the_same_bits_on_aarch64(name: str, tmp_path: Path) -> None:
    ran(program_of(model_of(name), target="aarch64"), "aarch64", tmp_path, "-O3")


def test_more_instructions_of_aarch64_give_the_same_bits(tmp_path: Path) -> None:
    board = replace(BOARDS["aarch64"], flags="-march=armv8.6-a")
    program = program_of(in_int8(convolutions(8, 4)), target="aarch64")
    ran_on(program, board, tmp_path, "-O3")


def test_another_input_gives_another_answer(tmp_path: Path) -> None:
    board = BOARDS["m3"]
    if board.tools.missing:
        pytest.skip(board.tools.missing)
    program = program_of(lq_dense((64, 50, 10), 3), input="bytes")
    records = [{"x": np.full((1, 64), byte, np.uint8)} for byte in (0, 255)]
    zeros, ones = firmware.run(program, records, board, tmp_path).results
    assert zeros != ones


@pytest.mark.parametrize("processor", ["cortex-r5", "arm946e-s"])
def test_arm_state_has_a_program_too(processor: str, tmp_path: Path) -> None:
    """Whose instructions of two halfwords differ from Thumb's, where there are some."""
    if BOARDS["m4"].tools.missing:
        pytest.skip(BOARDS["m4"].tools.missing)
    for file, text in program_of(in_int8(convolutions(6, 3))).files.items():
        (tmp_path / file).write_text(text)
    words = ["arm-none-eabi-gcc", "-std=c99", "-O2", f"-mcpu={processor}", "-marm", "-c", "net.c"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
