"""Tensors of UINT8 in C under weights with a zero point, beside the reference kernels: bit for
bit.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from luciole.ir import Array, Op, TensorType
from luciole.ir.ops import comparisons, reduce
from luciole.ir.ops.activations import HardSwish, Logistic, Relu6, Tanh
from luciole.ir.ops.concatenation import Concatenation
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add, Mul, Sub
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.pad import Pad
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D
from luciole.ir.ops.prelu import PRelu
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.softmax import Softmax
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.schema.enums import ActivationFunctionType as Act
from luciole.schema.enums import Padding
from tests.compiler.side_by_side import SideBySide, sound
from tests.compiler_support import needs_compiler
from tests.support import Affine

pytestmark = needs_compiler

RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 256, (2, 5, 6, 4), np.uint8)
GRID, OTHER = Affine(0.05, 131), Affine(0.03, 7)
TO = Affine(0.06, 120, dtype=TensorType.UINT8)
FLOATS = np.array([0.25, -0.25, 0.2499, 1e30, -1e30, np.nan, np.inf, -np.inf, 40], np.float32)


def filters(*shape: int) -> Array:
    return RNG.integers(0, 256, shape, np.uint8)


def test_layers(tmp_path: Path) -> None:
    every = SideBySide()

    def add(cls: type[Op], *operands: Array, data: int = 0, axis: int = 0, **options: Any) -> None:
        """Put a layer beside the others, with one zero point of its weights, and with several."""
        weights = operands[1]
        outputs = weights.shape[axis]
        bias = RNG.integers(-9999, 9999, (outputs,)).astype(np.int32)
        several = Affine([0.02] * outputs, RNG.integers(0, 256, outputs).tolist(), axis)
        for scales in (Affine(0.02, 77), *([several] if cls is FullyConnected else [])):
            forms: list[list[Array]] = [[*operands, bias], [*operands]]
            for form in forms:
                grids: list[Affine | None] = [GRID, scales, Affine(0.001)]
                if data:
                    grids = [None, scales, GRID, Affine(0.001)]
                constant = [k for k in range(len(form)) if k != data]
                to = Affine(2.0, 99, dtype=TensorType.UINT8)
                every.add(cls, form, constant, affine=grids, results=[to], **options)

    window: dict[str, Any] = {"stride_h": 2, "stride_w": 1, "padding": Padding.SAME}
    add(Conv2D, CODES, filters(3, 3, 2, 4), activation=Act.RELU, **window)
    add(Conv2D, CODES[..., :3], filters(5, 3, 3, 3), **window)
    for times in (1, 2):
        window["depth_multiplier"] = times
        add(DepthwiseConv2D, CODES, filters(1, 3, 2, 4 * times), axis=3, **window)
    del window["depth_multiplier"]
    add(FullyConnected, CODES.reshape(10, 24), filters(7, 24), activation=Act.RELU6)
    sizes = np.array([2, 10, 6, 3], np.int32)
    add(TransposeConv, sizes, filters(3, 3, 2, 4), CODES, data=2, **window)
    sound(every, tmp_path)


def test_other_operators(tmp_path: Path) -> None:
    every, x = SideBySide(), np.arange(256, dtype=np.uint8)
    for cls in (Add, Sub, Mul):
        every.add(cls, [CODES, CODES[::-1, :1]], affine=[GRID, OTHER], results=[TO])
    every.add(PRelu, [CODES, CODES[0, :1, :1]], (1,), affine=[GRID, OTHER], results=[TO])
    for test in comparisons.COMPARISONS:
        every.add(test, [CODES, CODES[::-1]], affine=[GRID, OTHER])
    same: dict[str, Any] = {"affine": [GRID], "results": [Affine(*GRID[:3], TO.dtype)]}
    for pool in (AveragePool2D, MaxPool2D):
        places: dict[str, Any] = {"stride_h": 2, "stride_w": 1, "padding": Padding.SAME}
        places |= {"filter_height": 3, "filter_width": 2, "activation": Act.RELU}
        every.add(pool, [CODES], **places, **same)
    for scaled in (reduce.Mean, reduce.Sum):
        every.add(scaled, [CODES, np.array([1, 2], np.int32)], (1,), affine=[GRID], results=[TO])
    every.add(Pad, [CODES, np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32)], (1,), **same)
    every.add(Concatenation, [CODES, CODES], affine=[GRID, OTHER], results=[TO], axis=1)
    for cls_ in (Relu6, HardSwish):
        every.add(cls_, [x], affine=[GRID], results=[TO])
    fixed = [Affine(1 / 256, dtype=TensorType.UINT8)]
    every.add(Logistic, [x], affine=[GRID], results=fixed)
    every.add(Tanh, [x], affine=[GRID], results=[Affine(1 / 128, 128, 0, TO.dtype)])
    every.add(Softmax, [CODES], beta=1.0, affine=[GRID], results=fixed)
    every.add(Quantize, [FLOATS], results=[TO], dtypes=TO[3:])
    every.add(Quantize, [CODES], affine=[GRID], results=[TO], dtypes=TO[3:])
    every.add(Dequantize, [CODES], affine=[GRID])
    sound(every, tmp_path)
