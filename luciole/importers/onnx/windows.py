"""Find where the windows of convolutions and pools lie: strides, dilations and padding of each
axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from luciole.importers.onnx.errors import RefusedError
from luciole.importers.onnx.node import Node
from luciole.ir.value import Shape

Pads = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


@dataclass
class Windows:
    """Windows of several axes; ``pads`` are what is added at both ends, [axes, 2]."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    pads: Pads

    @property
    def axes(self) -> int:
        """How many axes they have."""
        return len(self.kernel)

    def spans(self) -> list[int]:
        """Compute how far a window reaches along each axis."""
        return [(n - 1) * d + 1 for n, d in zip(self.kernel, self.dilations, strict=True)]

    def is_same(self, extents: Sequence[int | None]) -> bool:
        """Return whether the padding is that of circle's SAME, for images of these extents."""
        rows = zip(extents, self.strides, self.spans(), self.pads.tolist(), strict=True)
        for extent, stride, span, pads in rows:
            if extent is None and stride != 1:
                return False
            missing = _missing(extent or span, stride, span)
            if [missing // 2, missing - missing // 2] != pads:
                return False
        return True

    def flat(self) -> Windows:
        """Give windows of one axis a first axis of one element."""
        if self.axes != 1:
            return self
        pads = np.concatenate([np.zeros((1, 2), np.int64), self.pads])
        return Windows([1, *self.kernel], [1, *self.strides], [1, *self.dilations], pads)

    def table(self) -> Pads:
        """Lay out the padding of images whose channels come last, [axes + 2, 2]."""
        none = np.zeros((1, 2), np.int64)
        return np.concatenate([none, self.pads, none])


def _missing(extent: int, stride: int, span: int) -> int:
    return max(0, (-(-extent // stride) - 1) * stride + span - extent)


def windows_of(node: Node, shape: Shape, kernel: Sequence[int]) -> Windows:
    """Read a node's windows on images [batch, channels, ...]. Raises RefusedError for windows
    that circle cannot express.
    """
    axes = len(kernel)
    strides = node.integers("strides", [1] * axes)
    dilations = node.integers("dilations", [1] * axes)
    pads = np.array(node.integers("pads", [0] * 2 * axes), np.int64)
    if not len(strides) == len(dilations) == len(shape) - 2 == axes or len(pads) != 2 * axes:
        raise RefusedError(f"its windows do not have the {len(shape) - 2} axes of the image")
    if min(*strides, *dilations, *kernel) < 1 or max(*strides, *dilations, *kernel) >= 1 << 31:
        raise RefusedError("its windows have extents below 1")
    windows = Windows(list(kernel), strides, dilations, pads.reshape(2, axes).T)
    auto = node.text("auto_pad", "NOTSET")
    if auto.startswith("SAME"):
        windows.pads = _same(windows, shape[2:], auto == "SAME_UPPER")
    elif auto == "VALID":
        windows.pads = np.zeros((axes, 2), np.int64)
    return windows


def _same(windows: Windows, extents: Sequence[int | None], upper: bool) -> Pads:
    pads = []
    for extent, stride, span in zip(extents, windows.strides, windows.spans(), strict=True):
        if extent is None:
            raise RefusedError("its padding depends on an extent that is not known")
        missing = _missing(extent, stride, span)
        small, large = missing // 2, missing - missing // 2
        pads.append((small, large) if upper else (large, small))
    return np.array(pads, np.int64)
