"""Operators with learned levels, of our own domain: recognised before their bodies are."""

from __future__ import annotations

import numpy as np

from luciole.importers.onnx.building import Building
from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.importers.onnx.operators.convolution import first, last
from luciole.importers.onnx.rules import rule
from luciole.ir import Value
from luciole.ir.ops.bcq_fully_connected import BCQFullyConnected
from luciole.ir.ops.bcq_gather import BCQGather
from luciole.ir.ops.lq_conv_2d import LQConv2D
from luciole.ir.ops.lq_fully_connected import LQFullyConnected
from luciole.ir.rules import padding_before
from luciole.schema.enums import Padding
from luciole.schema.onnx_dialect import DOMAIN


def _words(k: Building, value: Value) -> Value:
    """Take words of signs, which ONNX has without a sign, as circle's."""
    array = k.known(value)
    if array.dtype != np.uint32:
        raise RefusedError(f"its signs are {array.dtype}, uint32 is needed")
    return k.constant(array.view(np.int32), value.name)


def _operands(k: Building, node: Node) -> list[Value | None]:
    """List the operands behind the input: the basis is an attribute, levels and thresholds
    follow.
    """
    basis = np.array(node.numbers("input_scales"), np.float32)
    return [
        k.constant(basis, k.name(f"{k.prefix}/input_scales")),
        node[4],
        _words(k, node[3]),
        node[6] if node.flag("has_bias") else None,
        node[5] if node.flag("has_offsets") else None,
    ]


@rule("LQFullyConnected", domain=DOMAIN)
def lq_fully_connected(k: Building, node: Node) -> Value:
    """Make a dense layer with learned levels."""
    op = LQFullyConnected.from_operands([node[0], *_operands(k, node)], {})
    assert isinstance(op, LQFullyConnected), "it was made so"
    (op.hidden_size,) = node.integers("hidden_size")
    op.input_offset = node.number("input_offset")
    return k.add(op)


@rule("LQConv2D", domain=DOMAIN)
def lq_conv_2d(k: Building, node: Node) -> Value:
    """Make a convolution with learned levels. Raises RefusedError for padding that is not SAME or
    VALID: no operator before it could pad with exact zeros.
    """
    op = LQConv2D.from_operands([last(k, node[0]), *_operands(k, node)], {})
    assert isinstance(op, LQConv2D), "it was made so"
    (op.input_channels,) = node.integers("input_channels")
    op.stride_h, op.stride_w = node.integers("strides")
    op.dilation_h_factor, op.dilation_w_factor = node.integers("dilations")
    op.input_offset = node.number("input_offset")
    op.padding = Padding(node.integer("padding"))
    before = _before(op)
    if before is None or node.integers("pads")[:2] != before:
        op.set_operands(())
        raise RefusedError("its padding is neither SAME nor VALID")
    return first(k, k.add(op))


def _before(op: LQConv2D) -> list[int] | None:
    """Compute the padding before rows and columns, None where extents are not known."""
    pixels, kernel = op.input.shape[1:3], op.weights_binary.dims[2:4]
    strides, dilations = (op.stride_h, op.stride_w), (op.dilation_h_factor, op.dilation_w_factor)
    if op.padding == Padding.VALID:
        return [0, 0]
    if None in pixels:
        return None
    return [
        padding_before(n or 0, size, stride, dilation, op.padding)
        for n, size, stride, dilation in zip(pixels, kernel, strides, dilations, strict=True)
    ]


def _clusters(k: Building, node: Node) -> Value:
    pairs = np.array(node.integers("clusters"), np.int32).reshape(-1, 2)
    return k.constant(pairs, k.name(f"{k.prefix}/clusters"))


@rule("BCQFullyConnected", domain=DOMAIN)
def bcq_fully_connected(k: Building, node: Node) -> Value:
    """Make a dense layer whose weights are sums of signs."""
    bias = node[5] if node.flag("has_bias") else None
    scales, words = node[1], _words(k, node[2])
    op = BCQFullyConnected(node[0], scales, words, bias, _clusters(k, node))
    (op.weights_hidden_size,) = node.integers("hidden_size")
    return k.add(op)


@rule("BCQGather", domain=DOMAIN)
def bcq_gather(k: Building, node: Node) -> Value:
    """Pick rows or columns of a matrix of sums of signs."""
    op = BCQGather(node[1], _words(k, node[2]), node[0], _clusters(k, node))
    (op.input_hidden_size,), op.axis = node.integers("hidden_size"), node.integer("axis")
    return k.add(op)
