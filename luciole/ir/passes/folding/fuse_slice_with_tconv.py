"""Let a transposed convolution give no more than is read."""

from __future__ import annotations

import numpy as np

from luciole.ir.graph import Graph
from luciole.ir.ops.slice import Slice
from luciole.ir.ops.transpose_conv import TransposeConv
from luciole.ir.rewriting.edits import become, copy_like, is_private, vector
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import integers_of, made_by
from luciole.ir.rewriting.scaling import is_plain_layer
from luciole.ir.rules import padding_before, window
from luciole.schema.enums import Padding


@rewrite(Slice)
def fuse_slice_with_tconv(graph: Graph, op: Slice) -> bool:
    """SLICE(TRANSPOSE_CONV(n, w, x)) -> TRANSPOSE_CONV(fewer, some of w, x)."""
    layer, begin = made_by(op.input, TransposeConv), integers_of(op.begin)
    size = op.output.shape
    if layer is None or begin is None or None in size or not is_private(layer.output):
        return False
    if len(size) != 4 or begin[0] or not is_plain_layer(layer):
        return False
    extents = tuple(extent or 0 for extent in size)
    padding = _padding(layer, begin[1:3], extents[1:3])
    if padding is None or size[0] != layer.output.shape[0] or layer.filter.data is None:
        return False
    channels = slice(begin[3], begin[3] + extents[3])
    filter = copy_like(graph, layer.filter, layer.filter.data[channels])
    operands = [vector(graph, f"{op.name}/sizes", extents), filter, layer.out_backprop]
    if layer.bias is not None and layer.bias.data is not None:
        bias = np.ascontiguousarray(layer.bias.data.reshape(-1)[channels])
        operands.append(copy_like(graph, layer.bias, bias))
    new = layer.clone(operands)
    assert isinstance(new, TransposeConv), "it is a copy"
    new.padding = padding
    become(graph, op, new)
    return True


def _padding(layer: TransposeConv, begin: list[int], size: tuple[int, ...]) -> Padding | None:
    """Find the padding with which windows that begin before a slice lie as they do; None for a
    slice that neither has.
    """
    whole = layer.output.shape[1:3]
    if begin == [0, 0] and tuple(size) == tuple(whole):
        return layer.padding
    if layer.padding != Padding.VALID:
        return None
    if begin == [0, 0]:
        return Padding.VALID
    kernels, strides = layer.filter.dims[1:3], (layer.stride_h, layer.stride_w)
    data = layer.out_backprop.shape[1:3]
    same = Padding.SAME
    fits = all(
        padding_before(extent, kernel, stride, 1, same) == first
        and window(extent, kernel, stride, 1, same) == count
        for extent, kernel, stride, first, count in zip(
            size, kernels, strides, begin, data, strict=True
        )
    )
    return same if fits else None
