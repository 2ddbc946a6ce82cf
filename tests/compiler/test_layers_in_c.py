"""Layers of floats and of bytes in C: bytes bit for bit, floats within rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.compiler import Compiled
from luciole.compiler.host import library_of
from luciole.compiler.self_test import random_records, self_test
from luciole.ir import Model, Op, TensorType
from luciole.ir.ops.activations import Logistic, Tanh
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add, Mul
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.pad import Pad
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.reduce import Mean
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from luciole.tools.random_models import convolutions, dense, in_int8
from tests.compiler_support import (
    STRICT,
    built,
    close,
    interpreted,
    needs_compiler,
    program_of,
    run_sound,
)
from tests.fuzz import in_c
from tests.fuzz.batches_in_c import MODES, run_batch
from tests.fuzz.in_c import given
from tests.support import Affine, data_path, one_op
from tests.windows_support import all_windowed

pytestmark = needs_compiler


def check(model: Model, folder: Path, runs: int = 2) -> Compiled:
    program = program_of(model)
    compiled = built(program, folder)
    for seed in range(runs):
        x = given(program, seed)
        for found, wanted in zip(compiled.run(x), interpreted(model, x), strict=True):
            if wanted.dtype.kind == "f":
                close(found, wanted.reshape(found.shape))
            else:
                np.testing.assert_array_equal(found, wanted.reshape(found.shape))
    return compiled


@pytest.mark.parametrize("make", [lambda m: m, in_int8], ids=["float", "int8"])
def test_a_network_of_the_usual_layers(make: object, tmp_path: Path) -> None:
    assert callable(make)
    check(make(convolutions(size=8, channels=5)), tmp_path)


@pytest.mark.parametrize(
    "scheme", ["int8", "uint8", "int16x8", "w4a8", "w4a16", "dynamic", "weights", "float16"]
)
def test_networks_of_uniform_integers(scheme: str, tmp_path: Path) -> None:
    model = convolutions(size=8, channels=5)
    shape = (16, *model.graph.inputs[0].dims[1:])
    records = {"x": np.random.default_rng(0).normal(size=shape).astype(np.float32)}
    asked: dict[str, Any] = {"ranges": "min_max", "rounding": "nearest"}
    if scheme in ("dynamic", "weights", "float16"):
        asked = {}
    check(luciole.quantize(model, records, scheme=scheme, proof=False, **asked).model, tmp_path)


def test_dense_layers_of_floats(tmp_path: Path) -> None:
    check(dense((20, 30, 7)), tmp_path)


def test_windows(tmp_path: Path) -> None:
    check(all_windowed(), tmp_path)
    check(all_windowed(in_int8), tmp_path)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_few_channels_are_compiled_without_warnings(dtype: type[np.integer[Any]]) -> None:
    """GCC once warned of four outputs at a time where there are fewer."""
    scales = Affine(0.1, 3 if dtype is np.uint8 else 0)
    operands = [np.zeros((1, 4, 4, 3), dtype), np.arange(12).reshape(1, 2, 2, 3).astype(dtype)]
    to = [Affine(0.2, dtype=TensorType[np.dtype(dtype).name.upper()])]
    grids = [Affine(0.1), scales, Affine(0.01)]
    model = one_op(
        DepthwiseConv2D,
        [*operands, np.arange(3, dtype=np.int32)],
        (1, 2),
        affine=grids,
        results=to,
        stride_h=1,
        stride_w=1,
        depth_multiplier=1,
    )
    assert library_of(program_of(model), [*STRICT, "-O3", "-fPIC", "-shared"])


@pytest.mark.parametrize("cls", [AveragePool2D, MaxPool2D])
def test_pools_at_borders(cls: type[AveragePool2D | MaxPool2D], tmp_path: Path) -> None:
    attributes: dict[str, Any] = {
        "stride_h": 2,
        "stride_w": 1,
        "filter_height": 3,
        "filter_width": 2,
    }
    image = np.zeros((2, 5, 6, 3), np.float32)
    model = one_op(cls, [image], (), **attributes, padding=Padding.SAME)
    check(model, tmp_path)
    check(in_int8(model), tmp_path)


BYTES = np.zeros((3, 50), np.int8)
FROM = Affine(0.06, 3)


def bytes_to(cls: type[Op], scale: float, zero: int) -> Model:
    to = Affine(scale, zero, dtype=TensorType.INT8)
    return one_op(cls, [BYTES], affine=[FROM], results=[to])


def test_functions_of_bytes(tmp_path: Path) -> None:
    check(bytes_to(Tanh, 1 / 128, 0), tmp_path)
    check(bytes_to(Logistic, 1 / 256, -128), tmp_path)
    check(bytes_to(Quantize, 0.11, -7), tmp_path)
    check(one_op(Dequantize, [BYTES], affine=[FROM]), tmp_path)


def test_halves_of_dense_layers_are_rounded_away_from_zero(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights = rng.integers(-1, 2, (9, 6), np.int8)
    bias = rng.integers(-9, 9, 9, np.int32)
    one = Affine(1.0)
    to = Affine(2.0, 3, dtype=TensorType.INT8)
    given_ = [np.zeros((4, 6), np.int8), weights, bias]
    model = one_op(FullyConnected, given_, (1, 2), affine=[one, one, one], results=[to])
    check(model, tmp_path)


def test_quantizing_floats(tmp_path: Path) -> None:
    to = Affine(0.5, 5, dtype=TensorType.INT8)
    model = one_op(Quantize, [np.zeros((1, 9), np.float32)], results=[to])
    x = np.array([[0.25, -0.25, 0.2499, 1e30, -1e30, np.nan, np.inf, -np.inf, 61.25]], np.float32)
    (found,) = built(program_of(model), tmp_path).run({model.graph.inputs[0].name: x})
    (wanted,) = interpreted(model, {model.graph.inputs[0].name: x})
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", ["ad01", "kws", "resnet8"])
def test_mlperf_tiny_is_bit_exact_and_clean(name: str, tmp_path: Path) -> None:
    model = luciole.load(data_path(f"models/{name}_int8.tflite"))
    program = program_of(model)
    test = self_test(program, check(model, tmp_path, 1), random_records(program))
    assert run_sound(program, tmp_path, test) == 0


NUMBERS = np.zeros((2, 3, 4, 5), np.float32)
CODES = np.zeros((2, 3, 4, 5), np.int8)


@pytest.mark.parametrize("axis", [0, 1, 3, -1])
def test_concatenation(axis: int, tmp_path: Path) -> None:
    shapes = [tuple(k + 1 if a == axis % 4 else 3 for a in range(4)) for k in range(3)]
    given_ = [np.zeros(shape, np.float32) for shape in shapes]
    check(one_op(Concatenation, given_, axis=axis), tmp_path, 1)
    same = [Affine(0.5, 3)] * 3
    bytes_ = [np.zeros(shape, np.int8) for shape in shapes]
    check(one_op(Concatenation, bytes_, affine=same, results=same[:1], axis=axis), tmp_path, 1)


PAIRS = [[[0, 0], [1, 2], [0, 1], [0, 0]], [[1, 0], [0, 0], [0, 0], [2, 3]]]


@pytest.mark.parametrize("pairs", PAIRS)
def test_padding(pairs: list[list[int]], tmp_path: Path) -> None:
    by = np.array(pairs, np.int32)
    check(one_op(Pad, [NUMBERS, by], (1,)), tmp_path, 1)
    same = Affine(0.5, -7)
    check(one_op(Pad, [CODES, by], (1,), affine=[same], results=[same]), tmp_path, 1)


@pytest.mark.parametrize("axes", [[1, 2], [3], [0, 1, 2, 3]])
def test_means(axes: list[int], tmp_path: Path) -> None:
    over = np.array(axes, np.int32)
    check(one_op(Mean, [NUMBERS, over], (1,)), tmp_path, 1)
    grids = {"affine": [Affine(0.5, 3)], "results": [Affine(0.3, -4, dtype=TensorType.INT8)]}
    check(one_op(Mean, [CODES, over], (1,), **grids), tmp_path, 1)


def test_products(tmp_path: Path) -> None:
    check(one_op(Mul, [NUMBERS, NUMBERS], activation=Act.RELU), tmp_path, 1)
    to = Affine(0.7, -4, dtype=TensorType.INT8)
    model = one_op(Mul, [CODES, CODES], affine=[Affine(0.1, 3), Affine(0.2, -9)], results=[to])
    check(model, tmp_path)


def test_bytes_of_other_shapes_are_repeated(tmp_path: Path) -> None:
    grids = [Affine(0.1, 3), Affine(0.2, -9)]
    to = [Affine(0.7, -4, dtype=TensorType.INT8)]
    for cls in (Add, Mul):
        check(one_op(cls, [CODES, CODES[0, 0, :1]], affine=grids, results=to), tmp_path, 1)


@pytest.mark.parametrize("first", range(0, 3 * in_c.BATCH, in_c.BATCH))
def test_random_models_are_compiled_rightly_or_refused(first: int, tmp_path: Path) -> None:
    found = in_c.check(range(first, first + 9), tmp_path, ["plain"])
    assert set(found.values()) <= set(in_c.ENDS)
    assert "equal" in found.values()


@pytest.mark.parametrize("seed", [1010, 1242, 1314])
def test_networks_that_are_given_no_numbers_give_what_the_interpreter_gives(
    seed: int, tmp_path: Path
) -> None:
    """They have a MAXIMUM or a MAX_POOL_2D, whose forms once differed on NaN."""
    assert in_c.checked(seed, tmp_path) == "equal"


@pytest.mark.parametrize("mode", sorted(MODES))
def test_random_models_are_right_in_every_mode(mode: str, tmp_path: Path) -> None:
    """The first one, of learned levels, is large: its sums are only for 32 bits another matter."""
    if MODES[mode].refusal:
        pytest.skip(MODES[mode].refusal)
    first = 343 if mode == "m32" else 344
    found = in_c.check(range(first, 348), tmp_path, [mode])
    assert set(found.values()) <= {*in_c.ENDS}
    assert "equal" in found.values()


def test_networks_of_a_batch_that_warn_or_fail_are_named(tmp_path: Path) -> None:
    made = [case for seed in range(336, 342) if (case := in_c.case_of(seed)) is not None]
    warns, right, fails, last = made[:4]
    writer = warns.program.writer
    writer.files = (writer.files[0], f"{writer.files[1]}static int unused(void) {{ return 1; }}\n")
    writer = fails.program.writer
    writer.files = (writer.files[0], writer.files[1].replace("return 0;\n}", "return 1;\n}"))
    ran = dict(run_batch(made[:4], MODES["plain"], ["-O1"], tmp_path))
    said = {case: written if isinstance(written, str) else "" for case, written in ran.items()}
    assert "unused" in said[warns]
    assert "it ends with 1" in said[fails]
    assert said[right] == said[last] == ""
