"""Operators with learned levels, as nodes of our own domain."""

from __future__ import annotations

import numpy as np

from luciole.exporters.onnx.building import Building, constant_of, data_of
from luciole.exporters.onnx.errors import RefusedError
from luciole.exporters.onnx.nodes import Term
from luciole.exporters.onnx.operators.activations import activated
from luciole.exporters.onnx.operators.convolutions import padded
from luciole.exporters.onnx.rules import rule
from luciole.ir import Value, learned_levels
from luciole.ir.ops.bcq_fully_connected import BCQFullyConnected, clusters_of, matrix_rows
from luciole.ir.ops.bcq_gather import BCQGather
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.ops.lq_fully_connected import LQFullyConnected, LQLayer


def _words(k: Building, value: Value, what: str) -> Term:
    """Store planes of signs without a sign: ONNX shifts no others."""
    return k.constant(constant_of(value, what).view(np.uint32), _short(value))


def _short(value: Value) -> str:
    """Call a constant as the quantizer does behind the layer's name, which files have often."""
    return value.name.rsplit("/", 1)[-1]


def _numbers(k: Building, value: Value) -> Term:
    """Store a layer's constant, find any other tensor."""
    return k.constant(data_of(value), _short(value)) if value.is_constant else k.of(value)


def _layer(k: Building, op: LQFullyConnected | LQConv2D) -> tuple[list[Term], dict[str, object]]:
    """Find the operands behind the input, and the attributes that both layers have.

    Levels and thresholds are given, so that no runtime sorts; the basis that they come from stays.
    """
    basis = constant_of(op.input_scales, "input_scales")
    levels, _ = learned_levels.levels(basis, op.input_offset)
    outputs = op.weights_scales.dims[0]
    zeros = np.zeros(outputs, np.float32)
    terms = [
        k.constant(learned_levels.thresholds(levels), "thresholds"),
        k.constant(levels.astype(np.float32), "levels"),
        _words(k, op.weights_binary, "weights_binary"),
        _numbers(k, op.weights_scales),
        k.constant(zeros[:1]) if op.weights_offsets is None else _numbers(k, op.weights_offsets),
        k.constant(zeros) if op.bias is None else _numbers(k, op.bias),
    ]
    return terms, {
        "input_scales": basis.astype(np.float32).tolist(),
        "input_offset": float(op.input_offset),
        "has_bias": int(op.bias is not None),
        "has_offsets": int(op.weights_offsets is not None),
    }


@rule(LQFullyConnected)
def lq_fully_connected(k: Building, op: LQFullyConnected) -> Term:
    terms, attributes = _layer(k, op)
    x = k.of(op.input)
    y = k.own("LQFullyConnected", x, *terms, hidden_size=[op.hidden_size], **attributes)
    return activated(k, y, op.activation)


@rule(LQConv2D)
def lq_conv_2d(k: Building, op: LQConv2D) -> None:
    """Pad with exactly 0, as ONNX's own convolution pads."""
    terms, attributes = _layer(k, op)
    kernel = op.weights_binary.dims[2:4]
    strides, dilations = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    window = padded(op.input.shape, kernel, strides, dilations, op.padding)
    attributes |= {"dilations": list(dilations), "strides": list(strides)}
    attributes |= {"pads": _pads(op, window), "input_channels": [op.input_channels]}
    attributes |= {"padding": int(op.padding)}
    y = k.own("LQConv2D", k.channels_first(op.input), *terms, **attributes)
    k.put_first(op.output, activated(k, y, op.activation))


def _pads(op: LQLayer, window: dict[str, object]) -> object:
    """Read the padding in numbers: a body has no place for two ways to say it."""
    if "auto_pad" in window:
        raise RefusedError("the extents of its input are not known")
    return window.get("pads", [0, 0, 0, 0])


def _matrix(
    k: Building, scales: Value, binary: Value, clusters: Value, hidden: int
) -> tuple[list[Term], int]:
    """Find the operands that a matrix of signs is made of, and the number of its rows."""
    cluster_table = constant_of(clusters, "the clusters")
    groups = clusters_of(cluster_table, binary.dims[0])
    if not groups or not binary.dims[0]:
        raise RefusedError("there is no cluster with rows")
    count = sum(c.size for c in groups)
    rows = matrix_rows(groups).astype(np.int64)[:, None]
    zeros = k.add("Expand", k.number(0.0), k.ints(count, hidden))
    return [k.of(scales), _words(k, binary, "the signs"), k.constant(rows), zeros], count


@rule(BCQFullyConnected)
def bcq_fully_connected(k: Building, op: BCQFullyConnected) -> Term:
    hidden = op.weights_hidden_size
    clusters = op.weights_clusters
    terms, count = _matrix(k, op.weights_scales, op.weights_binary, clusters, hidden)
    bias = k.constant(np.zeros(count, np.float32)) if op.bias is None else k.of(op.bias)
    attributes: dict[str, object] = {
        "hidden_size": [hidden],
        "clusters": constant_of(clusters, "").reshape(-1).tolist(),
    }
    attributes |= {"has_bias": int(op.bias is not None)}
    y = k.own("BCQFullyConnected", k.of(op.input), *terms, bias, **attributes)
    return activated(k, y, op.activation)


@rule(BCQGather)
def bcq_gather(k: Building, op: BCQGather) -> Term:
    hidden = op.input_hidden_size
    terms, _ = _matrix(k, op.input_scales, op.input_binary, op.input_clusters, hidden)
    clusters = constant_of(op.input_clusters, "").reshape(-1).tolist()
    attributes: dict[str, object] = {
        "hidden_size": [hidden],
        "axis": op.axis % 2,
        "clusters": clusters,
    }
    return k.own("BCQGather", k.of(op.indices), *terms, **attributes)
