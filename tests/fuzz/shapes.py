"""Operands of operators whose rules chance alone would hardly meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from luciole.ir import Op
from luciole.ir.ops.mediapipe import StructPadding
from luciole.schema.enums import (
    ActivationFunctionType,
    FullyConnectedOptionsWeightsFormat,
    Padding,
)

Hints = dict[str, Any]
"""By operand its shape, or an array that it holds; by attribute its value. Where ``ALONE`` is among
them, optional operands without a hint are absent, and those with one are there.
"""

ALONE = "alone"


RANKS = (0, 1, 2, 3, 4, 4, 4, 5)
EXTENTS = (1, 1, 2, 2, 3, 3, 4, 4, 5, 8, 17, 0)


class Sizes:
    """Extents and attributes that fit each other, of a model that is small."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def upto(self, most: int) -> int:
        """A number from 1."""
        return int(self.rng.integers(1, most + 1))

    def extent(self, most: int) -> int:
        """The extent of an axis, of which ``most`` is usual."""
        return self.upto(most)

    def batch(self, most: int) -> int:
        """How many of something a model is given at a time."""
        return self.upto(most)

    def has_handles(self) -> bool:
        """Whether a resource is the handle of a variable; else somebody hands it in."""
        return True

    def near(self, extent: int) -> int:
        """An extent that another one may be, which would be usual."""
        return extent

    def shape(self) -> tuple[int, ...]:
        """Any shape; no element in a few."""
        rank = int(self.rng.choice(RANKS))
        some = EXTENTS[:-1] if self.rng.random() < 0.9 else EXTENTS
        return tuple(int(n) for n in self.rng.choice(some, rank))

    def windows(self) -> Hints:
        """Attributes of everything with a sliding window."""
        return {
            "padding": Padding(int(self.rng.integers(2))),
            "stride_w": self.upto(3),
            "stride_h": self.upto(3),
            "dilation_w_factor": 1 + int(self.rng.random() < 0.2),
            "dilation_h_factor": 1 + int(self.rng.random() < 0.2),
        }

    def image(self, channels: int) -> tuple[int, ...]:
        """[n, h, w, c]."""
        return (self.batch(2), self.extent(9), self.extent(9), channels)


def shapes_for(cls: type[Op], sizes: Sizes) -> Hints:
    """Hints for an operator; none for most, and now and then none for those that have some."""
    make = _HINTS.get(cls.__name__)
    return {} if make is None or sizes.rng.random() < 0.05 else make(sizes)


def _conv_2d(s: Sizes) -> Hints:
    c, o = s.extent(5), s.extent(20)
    groups = c if s.rng.random() < 0.8 else 1
    filter = (o, s.upto(3), s.upto(3), groups)
    return {"input": s.image(c), "filter": filter, "bias": (o,), **s.windows()}


def _depthwise(s: Sizes) -> Hints:
    c, times = s.extent(5), s.upto(3)
    filter = (1, s.upto(3), s.upto(3), c * times)
    given = {"input": s.image(c), "filter": filter, "bias": (c * times,), **s.windows()}
    return given | {"depth_multiplier": times}


def _transpose_conv(s: Sizes) -> Hints:
    c, o = s.extent(5), s.extent(5)
    n, h, w, _ = image = s.image(c)
    hints = s.windows()
    extents = (s.near(h * hints["stride_h"]), s.near(w * hints["stride_w"]))
    sizes = np.array([n, *extents, o])
    filter = (o, s.upto(3), s.upto(3), c)
    return {"input_sizes": sizes, "filter": filter, "out_backprop": image, "bias": (o,), **hints}


def _transpose_bias(s: Sizes) -> Hints:
    c, o = s.extent(5), s.extent(5)
    filter = (o, s.upto(3), s.upto(3), c)
    return {
        "input": s.image(c),
        "filter": filter,
        "bias": (o,),
        "padding": StructPadding(s.upto(2)),
        "stride_width": s.upto(3),
        "stride_height": s.upto(3),
    }


def _fully_connected(s: Sizes) -> Hints:
    n, o = s.extent(40), s.extent(20)
    hints: Hints = {"input": (s.batch(3), n), "weights": (o, n), "bias": (o,)}
    plain = s.rng.random() < 0.8
    return hints | ({"weights_format": FullyConnectedOptionsWeightsFormat.DEFAULT} if plain else {})


def _batch_matmul(s: Sizes) -> Hints:
    b, m, k, n = s.batch(2), s.extent(5), s.extent(5), s.extent(20)
    flip, turn = bool(s.rng.integers(2)), bool(s.rng.integers(2))
    left, right = (b, k, m) if flip else (b, m, k), (b, n, k) if turn else (b, k, n)
    return {"x": left, "y": right, "adjoint_lhs": flip, "adjoint_rhs": turn} | {
        "lhs": left,
        "rhs": right,
        "adj_x": flip,
        "adj_y": turn,
    }


def _pool(s: Sizes) -> Hints:
    window = {"filter_width": s.upto(3), "filter_height": s.upto(3)}
    return {"input": s.image(s.extent(20)), **window, **s.windows()}


def _lq_levels(s: Sizes, o: int) -> Hints:
    kx, kw = s.upto(4), s.upto(4)
    return {
        "input_scales": s.rng.normal(size=kx),
        "weights_scales": s.rng.normal(size=(o, kw)),
        "bias": (o,),
        "weights_offsets": (o,),
        "planes": kw,
    }


def _words(s: Sizes, *shape: int) -> Any:
    return s.rng.integers(-(2**31), 2**31, shape)


def _lq_fully_connected(s: Sizes) -> Hints:
    n, o = s.extent(70), s.extent(20)
    levels = _lq_levels(s, o)
    words = _words(s, o, levels["planes"], -(-n // 32))
    return {"input": (s.batch(3), n), "weights_binary": words, "hidden_size": n, **levels}


def _lq_conv_2d(s: Sizes) -> Hints:
    c, o = s.extent(40), s.extent(20)
    levels = _lq_levels(s, o)
    words = _words(s, o, levels["planes"], s.upto(3), s.upto(3), -(-c // 32))
    given = {"input": s.image(c), "weights_binary": words, "input_channels": c}
    return given | levels | s.windows()


def _bcq(s: Sizes) -> Hints:
    clusters = np.array([[s.upto(3), s.extent(5)] for _ in range(s.upto(3))])
    rows = int(clusters[:, 1].sum())
    planes, hidden = int(clusters.prod(1).sum()), 32 * s.upto(2)
    scales, words = s.rng.normal(size=planes), _words(s, planes, hidden // 32)
    dense = {"input": (hidden, s.batch(3)), "weights_scales": scales, "weights_binary": words}
    gather = {"input_scales": scales, "input_binary": words, "input_clusters": clusters}
    sizes = {"weights_hidden_size": hidden, "input_hidden_size": hidden}
    return {**dense, **gather, **sizes, "bias": (rows,), "weights_clusters": clusters}


def _lstm(s: Sizes) -> Hints:
    return _plain_lstm(s) if s.rng.random() < 0.5 else _any_lstm(s)


def _normal(s: Sizes, *shape: int) -> Any:
    return s.rng.normal(size=shape).astype(np.float32)


def _plain_lstm(s: Sizes) -> Hints:
    """What is compiled."""
    batch, time, inputs, cells = s.batch(2), s.upto(4), s.extent(5), s.extent(20)
    is_major = bool(s.rng.integers(2))
    hints: Hints = {ALONE: True, "time_major": is_major, "diagonal_recurrent_tensors": False}
    hints["input"] = (time, batch, inputs) if is_major else (batch, time, inputs)
    for gate in ("input", "forget", "cell", "output"):
        hints |= {
            f"input_to_{gate}_weights": _normal(s, cells, inputs),
            f"recurrent_to_{gate}_weights": _normal(s, cells, cells),
            f"{gate}_gate_bias": _normal(s, cells),
        }
    hints |= {"output_state": (batch, cells), "cell_state": (batch, cells)}
    clips = {"cell_clip": 0.5 * s.upto(2), "proj_clip": 0.0}
    return {**hints, **clips, "activation": ActivationFunctionType.TANH}


def _any_lstm(s: Sizes) -> Hints:
    batch, time, inputs, cells = s.batch(2), s.upto(4), s.extent(5), s.extent(20)
    hints: Hints = {"input": (batch, time, inputs), "time_major": False}
    for gate in ("input", "forget", "cell", "output"):
        hints |= {
            f"input_to_{gate}_weights": (cells, inputs),
            f"recurrent_to_{gate}_weights": (cells, cells),
            f"cell_to_{gate}_weights": (cells,),
            f"{gate}_gate_bias": (cells,),
            f"{gate}_layer_norm_coefficients": (cells,),
        }
    projection = {"projection_weights": (cells, cells), "projection_bias": (cells,)}
    state = {"output_state": (batch, cells), "cell_state": (batch, cells)}
    clips = {"cell_clip": 0.5 * s.upto(2), "proj_clip": 0.0, "diagonal_recurrent_tensors": False}
    return {**hints, **projection, **state, **clips}


def _blocks(s: Sizes) -> Hints:
    block, borders = [s.upto(3), s.upto(3)], s.rng.integers(0, 2, (2, 2))
    n, c = s.upto(2), s.upto(3)
    to_batch = [block[i] * s.upto(3) - int(borders[i].sum()) for i in range(2)]
    images = (n * block[0] * block[1], s.upto(4), s.upto(4), c)
    given = images if s.rng.random() < 0.5 else (n, *(max(m, 0) for m in to_batch), c)
    array = np.array(block)
    return {"input": given, "block_shape": array, "paddings": borders, "crops": borders}


def _conv_3d(s: Sizes) -> Hints:
    n, c, o, kernel = s.upto(2), s.upto(3), s.upto(4), (s.upto(3), s.upto(3), s.upto(2))
    extents = (s.upto(5), s.upto(5), s.upto(5))
    steps = {f"stride_{axis}": s.upto(2) for axis in "dhw"}
    steps |= {f"dilation_{axis}_factor": 1 for axis in "dhw"}
    same = {"padding": Padding.SAME, **steps}
    return {"input": (n, *extents, c), "filter": (*kernel, c, o), "bias": (o,), **same}


def _conv_3d_transpose(s: Sizes) -> Hints:
    hints = _conv_3d(s)
    (n, d, h, w, _), (*kernel, c, o) = hints["input"], hints["filter"]
    sizes = [d * hints["stride_d"], h * hints["stride_h"], w * hints["stride_w"]]
    return {**hints, "filter": (*kernel, o, c), "output_shape": np.array([n, *sizes, o])}


def _boxes(s: Sizes) -> Hints:
    n = s.upto(9)
    one = dict.fromkeys(("iou_threshold", "score_threshold", "soft_nms_sigma"), ())
    return {"boxes": (n, 4), "scores": (n,), "max_output_size": np.array(s.upto(9)), **one}


def _resize(s: Sizes) -> Hints:
    _, h, w, _ = image = s.image(s.upto(5))
    whole = s.rng.random() < 0.5
    sizes = (h * s.upto(3), w * s.upto(3)) if whole else (s.extent(20), s.extent(20))
    return {"input": image, "images": image, "size": np.array(sizes)}


def _instance_norm(s: Sizes) -> Hints:
    c = s.upto(20)
    return {"input": s.image(c), "gamma": (c,), "beta": (c,)}


_HINTS: dict[str, Callable[[Sizes], Hints]] = {
    "Conv2D": _conv_2d,
    "DepthwiseConv2D": _depthwise,
    "TransposeConv": _transpose_conv,
    "Convolution2DTransposeBias": _transpose_bias,
    "FullyConnected": _fully_connected,
    "BatchMatMul": _batch_matmul,
    "AveragePool2D": _pool,
    "MaxPool2D": _pool,
    "L2Pool2D": _pool,
    "LQFullyConnected": _lq_fully_connected,
    "LQConv2D": _lq_conv_2d,
    "BCQFullyConnected": _bcq,
    "BCQGather": _bcq,
    "InstanceNorm": _instance_norm,
    "ResizeBilinear": _resize,
    "ResizeNearestNeighbor": _resize,
    "SpaceToBatchND": _blocks,
    "BatchToSpaceND": _blocks,
    "Conv3D": _conv_3d,
    "Conv3DTranspose": _conv_3d_transpose,
    "NonMaxSuppressionV4": _boxes,
    "NonMaxSuppressionV5": _boxes,
    "UnidirectionalSequenceLSTM": _lstm,
}
