"""Windows over images as the fields of C structs."""

from __future__ import annotations

from luciole.ir import UnsupportedError, Value
from luciole.ir.ops.activations import LIMITS
from luciole.ir.rules import padding_before
from luciole.kernels.portable.calls import Field
from luciole.kernels.portable.floats import limits
from luciole.schema.enums import ActivationFunctionType as Activation
from luciole.schema.enums import Padding

Pair = tuple[int, int]
"""Height and width."""


def geometry(
    x: Value, y: Value, kernel: Pair, stride: Pair, padding: Padding, dilation: Pair = (1, 1)
) -> dict[str, Field]:
    """Write the extents of images NHWC and of the windows over them."""
    batches, height, width, channels = x.dims
    sides = zip((height, width), kernel, stride, dilation, strict=True)
    top, left = (padding_before(*side, padding) for side in sides)
    return {
        "batches": batches,
        "input_height": height,
        "input_width": width,
        "channels": channels,
        "output_height": y.dims[1],
        "output_width": y.dims[2],
        "outputs": y.dims[3],
        **_both("kernel", kernel),
        **_both("stride", stride),
        **_both("dilation", dilation),
        "padding_top": top,
        "padding_left": left,
    }


def windows_of(
    x: Value, y: Value, kernel: Pair, stride: Pair, padding: Padding, dilation: Pair = (1, 1)
) -> dict[str, Field]:
    """Write windows as the struct that the functions for images take."""
    return {"windows": geometry(x, y, kernel, stride, padding, dilation)}


def _both(what: str, pair: Pair) -> dict[str, Field]:
    return {f"{what}_height": pair[0], f"{what}_width": pair[1]}


def cut_off(activation: Activation) -> dict[str, Field]:
    """Write the limits of an activation of floats. Raises UnsupportedError for one without."""
    if activation not in LIMITS:
        raise UnsupportedError(f"fused activation {activation.name} has no C form here")
    return dict(limits(*LIMITS[activation]))
