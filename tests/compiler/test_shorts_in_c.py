"""Tensors of 16 bits in C under weights of bytes, beside the reference kernels and LiteRT: bit for
bit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from luciole.ir import Array, Op, TensorType
from luciole.ir.ops import comparisons, elementwise_unary, reduce
from luciole.ir.ops.activations import Logistic, Relu, Relu6, Tanh
from luciole.ir.ops.batch_matmul import BatchMatMul
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add, Maximum, Minimum, Mul, Sub
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.gelu import Gelu
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.ops.pad import Pad
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.resize import ResizeBilinear
from luciole.ir.ops.softmax import Softmax
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from tests.compiler.side_by_side import SideBySide, sound
from tests.compiler_support import needs_compiler
from tests.support import Affine

pytestmark = needs_compiler

RNG = np.random.default_rng(0)
WHOLE = np.iinfo(np.int16)
CODES = RNG.integers(WHOLE.min, WHOLE.max, (2, 5, 6, 4), np.int16, endpoint=True)
CODES.flat[:3] = [WHOLE.min, WHOLE.max, WHOLE.min]
STEP = 0.001
GRID, OTHER = Affine(STEP), Affine(0.0007)
TO = Affine(0.0009, dtype=TensorType.INT16)
BIASES: tuple[Any, ...] = (np.int64, np.int32, None)


def layered(
    every: SideBySide,
    cls: type[Op],
    operands: list[Array],
    bias: type[np.signedinteger[Any]] | None,
    *,
    axis: int = 0,
    bits: TensorType = TensorType.INT8,
    **attributes: Any,
) -> None:
    """Put a layer beside the others: operands end with weights and data in the class's order."""
    weights = next(a for a in operands if a.dtype == np.int8)
    outputs = weights.shape[axis]
    steps = np.linspace(0.01, 0.03, outputs)
    scales = Affine(steps.tolist(), [0] * outputs, axis, bits)
    sums = Affine((STEP * steps).tolist(), [0] * outputs)
    size = abs(weights.astype(np.int64)).sum() // outputs * 5000
    to = Affine(STEP * 0.02 * int(size) / 2**15, dtype=TensorType.INT16)
    of = {np.dtype(np.int8): scales, np.dtype(np.int16): GRID}
    grids = [of.get(a.dtype) for a in operands]
    if bias is not None:
        operands = [*operands, RNG.integers(-(10**6), 10**6, outputs).astype(bias)]
    constant = [k for k, a in enumerate(operands) if a.dtype != np.int16]
    every.add(cls, operands, constant, affine=[*grids, sums], results=[to], **attributes)


def filters(*shape: int, most: int = 127) -> Array:
    return RNG.integers(-most, most + 1, shape, np.int8)


def test_layers(tmp_path: Path) -> None:
    every = SideBySide()
    for bias in BIASES:
        for bits, most in ((TensorType.INT8, 127), (TensorType.INT4, 7)):
            form: dict[str, Any] = {"bits": bits, "activation": Act.RELU}
            windows = {**form, "stride_h": 2, "stride_w": 1, "padding": Padding.SAME}
            layered(every, Conv2D, [CODES, filters(3, 3, 2, 4, most=most)], bias, **windows)
            layered(every, Conv2D, [CODES, filters(4, 3, 2, 2, most=most)], bias, **windows)
            layered(
                every, Conv2D, [CODES[..., :3], filters(5, 3, 2, 3, most=most)], bias, **windows
            )
            for times in (1, 2):
                windows["depth_multiplier"] = times
                by_channel = filters(1, 3, 2, 4 * times, most=most)
                layered(every, DepthwiseConv2D, [CODES, by_channel], bias, axis=3, **windows)
            rows = [CODES.reshape(10, 24), filters(7, 24, most=most)]
            layered(every, FullyConnected, rows, bias, **form)
            sizes = np.array([2, 10, 6, 3], np.int32)
            places: dict[str, Any] = {"stride_h": 2, "stride_w": 1, "padding": Padding.SAME}
            places["bits"] = bits
            spread = [sizes, filters(3, 3, 2, 4, most=most), CODES]
            layered(every, TransposeConv, spread, bias, **places)
    sound(every, tmp_path)


def test_sums_beyond_32_bits(tmp_path: Path) -> None:
    every = SideBySide()
    image = np.full((1, 3, 3, 80), WHOLE.min, np.int16)
    large = np.full((2, 3, 3, 80), -127, np.int8)
    same: dict[str, Any] = {"stride_h": 1, "stride_w": 1, "padding": Padding.SAME}
    layered(every, Conv2D, [image, large], np.int64, **same)
    layered(every, FullyConnected, [image.reshape(1, 720), large.reshape(2, 720)], np.int64)
    spread: list[Array] = [np.array([1, 3, 3, 2], np.int32), large, image]
    layered(every, TransposeConv, spread, np.int64, **same)
    sound(every, tmp_path)


def test_functions_of_two(tmp_path: Path) -> None:
    every = SideBySide()
    for cls in (Add, Sub, Mul):
        for y in (CODES[::-1], CODES[:1, :1, :1]):
            every.add(cls, [CODES, y], affine=[GRID, OTHER], results=[TO], activation=Act.RELU6)
    powers = [Affine(2.0**-9), Affine(2.0**-12)]
    to = Affine(2.0**-9, dtype=TensorType.INT16)
    every.add(Add, [CODES, CODES[::-1]], affine=powers, results=[to], pot_scale_int16=True)
    for plain in (Add, Mul, Maximum, Minimum):
        every.add(plain, [CODES, CODES[::-1]])
    for test in comparisons.COMPARISONS:
        every.add(test, [CODES, CODES[::-1]], affine=[GRID, OTHER])
        every.add(test, [CODES, CODES[:, ::-1]])
    grids: dict[str, Any] = {"affine": [GRID, OTHER], "results": [Affine(0.03, 0, 0, TO.dtype)]}
    columns = np.swapaxes(CODES, -1, -2)[:1, :, :, :3]
    every.add(BatchMatMul, [CODES, columns], **grids)
    few = filters(1, 5, 4, 3)
    every.add(BatchMatMul, [CODES, few], (1,), **grids)
    sound(every, tmp_path)


def test_functions_of_one(tmp_path: Path) -> None:
    every = SideBySide()
    x = np.arange(-(2**15), 2**15, 37, dtype=np.int16)
    on: dict[str, Any] = {"affine": [Affine(0.0004)], "results": [TO]}
    for cls in (Relu, Relu6, elementwise_unary.Abs, elementwise_unary.Exp, elementwise_unary.Log):
        every.add(cls, [x], **on)
    every.add(elementwise_unary.Rsqrt, [x[x >= 0]], **on)
    every.add(elementwise_unary.Abs, [x])
    every.add(LeakyRelu, [x], alpha=0.2, **on)
    every.add(LeakyRelu, [x], alpha=-0.3, **on)
    every.add(Gelu, [x], approximate=False, **on)
    every.add(Gelu, [x], approximate=True, **on)
    fixed = [Affine(2.0**-15, dtype=TensorType.INT16)]
    for scale in (2.0**-12, 2.0**-11, 0.0003, 3.0, 0.05):
        every.add(Logistic, [x], affine=[Affine(scale)], results=fixed)
        every.add(Tanh, [x], affine=[Affine(scale)], results=fixed)
    for scale in (0.0003, 0.01):
        every.add(
            Softmax, [x[:1771].reshape(23, 77)], beta=0.7, affine=[Affine(scale)], results=fixed
        )
    sound(every, tmp_path)


def test_images_and_sums(tmp_path: Path) -> None:
    every = SideBySide()
    same: dict[str, Any] = {"affine": [GRID], "results": [Affine(STEP, dtype=TO.dtype)]}
    for cls in (AveragePool2D, MaxPool2D):
        places: dict[str, Any] = {
            "stride_h": 2,
            "stride_w": 1,
            "filter_height": 3,
            "filter_width": 2,
        }
        every.add(cls, [CODES], padding=Padding.SAME, activation=Act.RELU, **places, **same)
    for half in (False, True):
        sizes = np.array([7, 5], np.int32)
        every.add(ResizeBilinear, [CODES, sizes], (1,), half_pixel_centers=half, **same)
    for scaled in (reduce.Mean, reduce.Sum):
        for over in (np.array([1, 2], np.int32), np.array([3], np.int32)):
            every.add(scaled, [CODES, over], (1,), affine=[GRID], results=[TO])
    every.add(Pad, [CODES, np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32)], (1,), **same)
    every.add(Concatenation, [CODES, CODES], affine=[GRID, GRID], results=same["results"], axis=1)
    sound(every, tmp_path)


def test_conversions(tmp_path: Path) -> None:
    every = SideBySide()
    floats = np.array([0.25, -0.25, 0.2499, 1e30, -1e30, np.nan, np.inf, -np.inf, 40], np.float32)
    every.add(Quantize, [floats], results=[Affine(0.5, dtype=TensorType.INT16)], dtypes=TO[3:])
    every.add(Dequantize, [CODES], affine=[GRID])
    for to in (TO, Affine(0.3, -7, dtype=TensorType.INT8), Affine(0.3, 9, dtype=TensorType.UINT8)):
        every.add(Quantize, [CODES], affine=[GRID], results=[to], dtypes=to[3:])
    few = CODES.astype(np.int8)
    every.add(Quantize, [few], affine=[Affine(0.2, 5)], results=[TO], dtypes=TO[3:])
    sound(every, tmp_path)
