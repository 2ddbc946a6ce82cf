"""Let a dilated convolution do what batches of places do."""

from __future__ import annotations

from luciole.ir.graph import Graph
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.space_to_batch_nd import BatchToSpaceND, SpaceToBatchND
from luciole.ir.rewriting.edits import become, is_private
from luciole.ir.rewriting.passes import rewrite
from luciole.ir.rewriting.patterns import integers_of
from luciole.schema.enums import Padding


@rewrite(BatchToSpaceND)
def fuse_dilated_conv(graph: Graph, op: BatchToSpaceND) -> bool:
    """BATCH_TO_SPACE_ND(CONV_2D(SPACE_TO_BATCH_ND(x))) -> CONV_2D(x, dilated): also depthwise."""
    layer = op.input.producer.op if op.input.producer is not None else None
    if not isinstance(layer, Conv2D | DepthwiseConv2D) or not is_private(op.input):
        return False
    before = layer.input.producer.op if layer.input.producer is not None else None
    if not isinstance(before, SpaceToBatchND):
        return False
    block = integers_of(op.block_shape)
    padding = _padding(before, layer, op, block) if block is not None else None
    if padding is None or block is None:
        return False
    new = layer.clone([before.input, *layer.operands[1:]])
    assert isinstance(new, Conv2D | DepthwiseConv2D), "it is a copy"
    new.padding, (new.dilation_h_factor, new.dilation_w_factor) = padding, block
    if isinstance(new, DepthwiseConv2D):
        new.version = max(new.version, _DILATED)
    become(graph, op, new)
    return True


_DILATED = 2
"""The first version of DEPTHWISE_CONV_2D with dilations."""


def _padding(
    before: SpaceToBatchND,
    layer: Conv2D | DepthwiseConv2D,
    behind: BatchToSpaceND,
    block: list[int],
) -> Padding | None:
    """Find the padding of the dilated convolution, None where it is neither SAME nor VALID."""
    pads, crops = integers_of(before.paddings), integers_of(behind.crops)
    unit = (layer.stride_h, layer.stride_w, layer.dilation_h_factor, layer.dilation_w_factor)
    plain = unit == (1, 1, 1, 1) and layer.padding == Padding.VALID and len(block) == 2
    if pads is None or crops is None or not plain or integers_of(before.block_shape) != block:
        return None
    if crops[0] or crops[2]:
        return None
    edges = [(pads[0], pads[1] - crops[1]), (pads[2], pads[3] - crops[3])]
    if edges == [(0, 0), (0, 0)]:
        return Padding.VALID
    reach = [(k - 1) * d for k, d in zip(layer.filter.dims[1:3], block, strict=True)]
    same = [(total // 2, total - total // 2) for total in reach]
    return Padding.SAME if edges == same else None
