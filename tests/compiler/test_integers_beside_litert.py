"""Layers of INT16 x INT8 and of UINT8 in C, straight beside LiteRT's reference kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.ir import Array, Op, TensorType
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.schema.enums import ActivationFunctionType as Activation
from luciole.schema.enums import Padding
from tests.compiler_support import needs_compiler, results
from tests.support import Affine, litert, one_op

pytestmark = needs_compiler

IMAGES: dict[str, Any] = {"stride_h": 1, "stride_w": 2, "padding": Padding.SAME}
LAYERS: dict[str, tuple[type[Op], tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "dense": (FullyConnected, (3, 37), (5, 37), {}),
    "conv": (Conv2D, (1, 5, 6, 7), (5, 3, 2, 7), IMAGES),
    "depthwise": (DepthwiseConv2D, (1, 5, 6, 5), (1, 3, 3, 5), {**IMAGES, "depth_multiplier": 1}),
}


def drawn(dtype: type[np.integer[Any]], shape: tuple[int, ...], seed: int) -> Array:
    """Draw all integers of a type alike."""
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("activation", [Activation.NONE, Activation.RELU6])
@pytest.mark.parametrize("kind", ["int16", "uint8"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_in_c_give_what_litert_gives(
    name: str, kind: str, activation: Activation, tmp_path: Path
) -> None:
    cls, shape, weights_shape, attributes = LAYERS[name]
    is_short = kind == "int16"
    x = drawn(np.int16 if is_short else np.uint8, shape, 1)
    weights = drawn(np.int8 if is_short else np.uint8, weights_shape, 2)
    weights = np.maximum(weights, -127) if is_short else weights
    bias = np.array([90, -400, 3000, 7, -1], np.int64 if is_short else np.int32)
    scale, step = (0.0004, 0.001) if is_short else (0.05, 0.003)
    grids = [Affine(scale, 0 if is_short else 121), Affine(step, 0 if is_short else 130)]
    to = (
        Affine(0.0005, 0, 0, TensorType.INT16)
        if is_short
        else Affine(0.1, 100, 0, TensorType.UINT8)
    )
    model = one_op(
        *(cls, [x, weights, bias], (1, 2)),
        affine=[*grids, Affine(scale * step)],
        results=[to],
        activation=activation,
        **attributes,
    )
    (wanted,) = litert(to_bytes(model, "tflite"), [x])
    (found,) = results(model, tmp_path, {model.graph.inputs[0].name: x})
    assert len(np.unique(wanted)) > 3
    np.testing.assert_array_equal(found, wanted)
