"""Write pools and other operators on images."""

from __future__ import annotations

import numpy as np

from luciole.exporters.onnx.building import Building, to_first
from luciole.exporters.onnx.errors import RefusedError
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.operators.activations import activated
from luciole.exporters.onnx.operators.convolutions import padded
from luciole.exporters.onnx.rules import rule
from luciole.ir.ops.depth_to_space import DepthToSpace, SpaceToDepth
from luciole.ir.ops.local_response_normalization import LocalResponseNormalization
from luciole.ir.ops.pool_2d import AveragePool2D, L2Pool2D, MaxPool2D, Pool2D
from luciole.ir.ops.resize import ResizeBilinear, ResizeNearestNeighbor


def _pooled(k: Building, op: Pool2D, kind: str, x: Term) -> Term:
    kernel, strides = (op.filter_height, op.filter_width), (op.stride_h, op.stride_w)
    options = padded(op.value.shape, kernel, strides, (1, 1), op.padding)
    return k.add(kind, x, kernel_shape=list(kernel), **options)


@rule(AveragePool2D, MaxPool2D)
def pool(k: Building, op: Pool2D) -> None:
    kind = "MaxPool" if isinstance(op, MaxPool2D) else "AveragePool"
    y = _pooled(k, op, kind, k.channels_first(op.value))
    k.put_first(op.output, activated(k, y, op.activation))


@rule(L2Pool2D)
def l2_pool(k: Building, op: L2Pool2D) -> None:
    if k.is_first(op.value):
        x = k.channels_first(op.value)
        squares = k.add("Mul", x, x)
    else:
        x = k.of(op.value)
        squares = k.add("Transpose", k.add("Mul", x, x), perm=to_first(len(op.value.shape)))
    y = k.add("Sqrt", _pooled(k, op, "AveragePool", squares))
    k.put_first(op.output, activated(k, y, op.activation))


@rule(DepthToSpace)
def depth_to_space(k: Building, op: DepthToSpace) -> None:
    x = k.channels_first(op.input)
    k.put_first(op.output, k.add("DepthToSpace", x, blocksize=op.block_size, mode="DCR"))


@rule(SpaceToDepth)
def space_to_depth(k: Building, op: SpaceToDepth) -> None:
    x = k.channels_first(op.input)
    k.put_first(op.output, k.add("SpaceToDepth", x, blocksize=op.block_size))


@rule(ResizeBilinear, ResizeNearestNeighbor)
def resize(k: Building, op: ResizeBilinear | ResizeNearestNeighbor) -> None:
    """Round nearest pixels down where the corners are the pixels' own, else halves up."""
    names = ((op.align_corners, "align_corners"), (op.half_pixel_centers, "half_pixel"))
    mode = next((name for chosen, name in names if chosen), "asymmetric")
    nearest = "floor" if mode == "asymmetric" else "round_prefer_ceil"
    linear = isinstance(op, ResizeBilinear)
    if op.align_corners and op.half_pixel_centers:
        raise RefusedError("align_corners and half_pixel_centers at once")
    whole = {"mode": "linear"} if linear else {"mode": "nearest", "nearest_mode": nearest}
    x = k.channels_first(op.input)
    shape = k.add("Slice", k.add("Shape", x), k.ints(0), k.ints(2))
    sizes = k.add("Concat", shape, k.int64(op.size), axis=0)
    options = {"coordinate_transformation_mode": mode, **whole}
    k.put_first(op.output, k.add("Resize", x, None, None, sizes, **options))


@rule(LocalResponseNormalization)
def local_response_normalization(k: Building, op: LocalResponseNormalization) -> None:
    """Multiply alpha by the number of neighbours, by which ONNX divides it."""
    size = 2 * op.radius + 1
    x = k.channels_first(op.input)
    options = {"alpha": float(np.float32(op.alpha) * size), "beta": op.beta, "bias": op.bias}
    k.put_first(op.output, k.add("LRN", x, size=size, **options))
