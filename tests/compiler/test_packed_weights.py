"""Weights of up to 4 bits stay codes in C, and are unpacked while a layer runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.compiler import CompileOptions, compile_model
from luciole.compiler.self_test import random_records, self_test
from luciole.ir import Array, Model, TensorType
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.levelsdecode import LevelsDecode
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.schema.enums import Padding
from tests.boards import firmware
from tests.boards.firmware import BOARDS
from tests.compiler.side_by_side import SideBySide, sound
from tests.compiler_support import built, needs_compiler, program_of, run_sound
from tests.support import Affine

pytestmark = needs_compiler

RNG = np.random.default_rng(0)
IMAGES = {
    np.int8: RNG.integers(-128, 128, (2, 5, 6, 20), np.int8),
    np.int16: RNG.integers(-(2**15), 2**15, (2, 5, 6, 20), np.int16),
}
ZEROS = {np.int8: 3, np.int16: 0}
BIASES = {np.int8: np.int32, np.int16: np.int64}
TYPES = {np.int8: TensorType.INT8, np.int16: TensorType.INT16}


def leveled(bits: int, shape: tuple[int, ...], axis: int = 0) -> Array:
    """Weights of 2^bits levels, other ones for each index of an axis."""
    outputs = shape[axis]
    levels = RNG.permuted(np.tile(np.arange(-128, 128), (outputs, 1)), axis=1)[:, : 2**bits]
    codes = RNG.integers(0, 2**bits, (outputs, int(np.prod(shape)) // outputs))
    rows = np.take_along_axis(levels, codes, 1)
    rest = [extent for k, extent in enumerate(shape) if k != axis]
    return np.moveaxis(rows.reshape(outputs, *rest), 0, axis).astype(np.int8)


WINDOW: dict[str, Any] = {"stride_h": 1, "stride_w": 2, "padding": Padding.SAME}


def add_layer(
    every: SideBySide, cls: Any, weights: Array, *before: Array, axis: int = 0, **attributes: Any
) -> None:
    """Add a layer of integers; the last array before its weights is its input."""
    outputs, kind = weights.shape[axis], before[-1].dtype.type
    grid, to = Affine(0.05, ZEROS[kind]), Affine(40.0, dtype=TYPES[kind])
    scales = Affine(np.linspace(0.01, 0.03, outputs).tolist(), [0] * outputs, axis)
    bias = RNG.integers(-9999, 9999, outputs).astype(BIASES[kind])
    sums = Affine([1.0] * outputs, [0] * outputs)
    operands = [*before, weights, bias]
    grids: list[Affine | None] = [grid, scales, sums]
    if cls is TransposeConv:
        operands, grids = [before[0], weights, before[1], bias], [None, scales, grid, sums]
    constant = [k for k, a in enumerate(operands) if a is not before[-1]]
    every.add(cls, operands, constant, affine=grids, results=[to], **attributes)


def add_layers(every: SideBySide, bits: int, kind: type[np.signedinteger[Any]]) -> None:
    """Put layers of all kinds under weights of few levels beside the others."""
    x = IMAGES[kind]
    window, add = WINDOW, partial(add_layer, every)
    add(Conv2D, leveled(bits, (7, 3, 3, 20)), x, **window)
    add(Conv2D, leveled(bits, (70, 3, 3, 20)), x, **window)
    add(Conv2D, leveled(bits, (6, 3, 3, 10)), x, **window)
    add(Conv2D, leveled(bits, (5, 5, 6, 20)), x, **{**window, "stride_w": 6, "stride_h": 5})
    by_channel = leveled(bits, (1, 9, 5, 20), 3)
    add(DepthwiseConv2D, by_channel, x, axis=3, depth_multiplier=1, **window)
    add(FullyConnected, leveled(bits, (9, 120)), x.reshape(10, 120))
    add(FullyConnected, leveled(bits, (9, 1199)), x.reshape(1, -1)[:, :1199])
    sizes = np.array([2, 5, 12, 4], np.int32)
    add(TransposeConv, leveled(bits, (4, 3, 3, 20)), sizes, x, **window)


def test_layers_unpack_their_weights(tmp_path: Path) -> None:
    every = SideBySide()
    for bits in (1, 2, 3, 4):
        add_layers(every, bits, np.int8)
        add_layers(every, bits, np.int16)
    sound(every, tmp_path)
    calls = program_of(every.model).calls
    # for 45 weights, 16 levels would be too many
    plain = [c.function for c in calls if "_packed_" not in c.function]
    assert len(plain) == len(IMAGES)
    assert all("depthwise" in function for function in plain)


@pytest.mark.parametrize("cls", [DepthwiseConv2D, TransposeConv])
def test_layers_that_unpack_all_at_once_have_room_for_an_odd_number(
    cls: Any, tmp_path: Path
) -> None:
    every, x = SideBySide(), IMAGES[np.int8][..., :9]
    if cls is TransposeConv:
        sizes = np.array([2, 5, 12, 5], np.int32)
        add_layer(every, cls, leveled(1, (5, 3, 3, 9)), sizes, x, **WINDOW)
    else:
        add_layer(every, cls, leveled(1, (1, 3, 3, 9), 3), x, axis=3, depth_multiplier=1, **WINDOW)
    program = program_of(every.model)
    assert all("_packed_" in call.function for call in program.calls)
    test = self_test(program, built(program, tmp_path), random_records(program))
    assert run_sound(program, tmp_path, test) == 0


def test_layers_of_floats_unpack_their_weights(tmp_path: Path) -> None:
    every = SideBySide()
    for bits in (1, 2, 3, 4):
        add_layers_of_floats(every, bits)
    sound(every, tmp_path)
    functions = [call.function for call in program_of(every.model).calls]
    # as above: one of 16 levels
    assert functions.count("luc_hybrid_packed") == len(every.graph.ops) - 1


def add_layers_of_floats(every: SideBySide, bits: int) -> None:
    x = RNG.normal(size=(2, 5, 6, 20)).astype(np.float32)

    def add(cls: Any, weights: Array, x: Array, axis: int = 0, **attributes: Any) -> None:
        outputs = weights.shape[axis]
        grid = Affine(np.linspace(0.01, 0.03, outputs).tolist(), [0] * outputs, axis)
        bias = RNG.normal(size=(outputs,)).astype(np.float32)
        affine = [None, grid, None]
        every.add(cls, [x, weights, bias], [1, 2], affine=affine, **attributes)

    add(Conv2D, leveled(bits, (7, 3, 3, 20)), x, **WINDOW)
    add(Conv2D, leveled(bits, (70, 3, 3, 20)), x[:1], **WINDOW)
    add(
        DepthwiseConv2D,
        leveled(bits, (1, 9, 5, 19), 3),
        x[..., :19],
        3,
        depth_multiplier=1,
        **WINDOW,
    )
    for rows in (x.reshape(10, 120), x.reshape(1, 1200)):
        add(FullyConnected, leveled(bits, (9, rows.shape[1])), rows)
        add(
            FullyConnected, leveled(bits, (9, rows.shape[1])), rows, asymmetric_quantize_inputs=True
        )


def network(bits: int) -> Model:
    """Make two convolutions of int8 whose weights a LevelsDecode reads from codes."""
    every = SideBySide()
    graph, x = every.graph, every.graph.add_input("x", (1, 12, 12, 16))
    x.dtype = TensorType.INT8
    grid = Affine(0.05, 3, dtype=TensorType.INT8)
    grid.give(x)
    for k in range(2):
        codes = RNG.integers(0, 256, -(-bits * 32 * 9 * x.dims[3] // 8)).astype(np.uint8)
        basis = RNG.integers(-20, 20, (32, bits)).astype(np.int8)
        offset = RNG.integers(-9, 9, 32).astype(np.int8)
        dims = np.array([32, 3, 3, x.dims[3]], np.int32)
        decode = LevelsDecode(
            graph.add_constant(f"codes{k}", codes),
            graph.add_constant(f"dims{k}", dims),
            graph.add_constant(f"basis{k}", basis),
            offsets=graph.add_constant(f"offsets{k}", offset),
        )
        graph.append(decode, f"weights{k}")
        Affine([0.01] * 32, [0] * 32).give(decode.output)
        bias = graph.add_constant(f"bias{k}", np.arange(32, dtype=np.int32))
        conv = Conv2D(x, decode.output, bias, padding=Padding.SAME, stride_h=1, stride_w=1)
        graph.append(conv, f"y{k}")
        x = conv.output
        Affine(0.7, -5, dtype=TensorType.INT8).give(x)
    graph.outputs = [x]
    return every.model


def test_learned_levels_take_little_flash_and_few_more_instructions(tmp_path: Path) -> None:
    board = BOARDS["m4"]
    if board.tools.missing:
        pytest.skip(board.tools.missing)
    model, results = network(2), []
    for unpack in (False, True):
        options = CompileOptions("net", target=board.target, unpack=unpack)
        program = compile_model(model, options)
        x = random_records(program)["x"][:1]
        results.append((program, firmware.run(program, [{"x": x}], board, tmp_path, "-O2")))
    (packed, ran), (whole, ran_whole) = results
    assert ran.results == ran_whole.results
    assert packed.table_bytes < 0.4 * whole.table_bytes
    assert ran.flash < ran_whole.flash
    assert ran.instructions < 1.2 * ran_whole.instructions
