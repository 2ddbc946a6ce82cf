"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: images of another height and width."""

from collections.abc import Iterator, Sequence

from luciole.ir.errors import ShapeError
from luciole.ir.fields import INDEX, attr, dtype_of, operand
from luciole.ir.op import Op
from luciole.ir.quant import Like, Quant
from luciole.ir.rules import known_ints, rank
from luciole.ir.value import Shape, Value
from luciole.schema.enums import BuiltinOperator


class Resize(Op):
    """Base of the family. Input and result NHWC; ``size`` is the new height and width.

    The scale is that of the sizes, or with ``align_corners`` that of the distances between the
    first and the last element. ``half_pixel_centers`` means that elements lie at i + 1/2.
    """

    input: Value = operand()
    size: Value = operand(dtype=INDEX)

    align_corners: bool = attr(default=False, dump="align_corners")

    quant = Quant(result=Like("input"))
    infer_dtype = dtype_of("input")

    def infer_shape(self, /) -> Shape:
        shape = rank(self.input, "input", 4)
        size = known_ints(self.size, "size", 2)
        return (shape[0], None, None, shape[3]) if size is None else resized(shape, size)


class ResizeBilinear(Resize, code=BuiltinOperator.RESIZE_BILINEAR, options="ResizeBilinearOptions"):
    """Each element is a mean of the four around its place, weighted by their distance."""

    half_pixel_centers: bool = attr(default=False, dump="half_pixel_centers")

    def verify(self, /) -> Iterator[str]:
        if self.align_corners and self.half_pixel_centers:
            yield "align_corners and half_pixel_centers are set, only one of them can be"


class ResizeNearestNeighbor(
    Resize, code=BuiltinOperator.RESIZE_NEAREST_NEIGHBOR, options="ResizeNearestNeighborOptions"
):
    """Each element is the one before its place, or with ``align_corners`` the nearest one."""

    half_pixel_centers: bool = attr(default=False)  # ONE's dump does not tell it


def resized(shape: Shape, size: Sequence[int]) -> Shape:
    """Compute the result's shape. Raises ShapeError when there is nothing to make or to make it
    from.
    """
    if min(size) < 1:
        raise ShapeError(f"size is {list(size)}, both must be at least 1")
    if 0 in shape[1:3]:
        raise ShapeError(f"the image is {shape[1]} x {shape[2]}, it has nothing to resize")
    return (shape[0], *size, shape[3])
