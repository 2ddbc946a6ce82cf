"""The records of kernels for layers with 8 bit weights; steps are in bytes."""

from __future__ import annotations

from typing import Self

from luciole.kernels.core.shares import cuts
from luciole.kernels.jit.record import Record, reader
from luciole.kernels.layers.geometry.sequence import Divisible, Tiled

BLOCK = 64
"""Elements of a line that are not cut."""


class Lines(Divisible):
    """Lines of images to copy: of ``length`` elements each, row by row."""

    x: int
    to: int
    images: int
    x_image: int
    to_image: int
    rows: int
    length: int
    to_row: int

    def cut(self, threads: int) -> list[Self]:
        """Cut the images for threads."""
        return [self._images(begin, end) for begin, end in cuts(self.images, threads)]

    def cut_lines(self, threads: int, item: int, *, together: bool) -> list[Self]:
        """Cut the images, the rows of a single one, or a single row of elements of ``item`` bytes
        that stand ``together``.
        """
        if self.images > 1:
            return Lines.cut(self, threads)
        if self.rows > 1:
            step = item * self.length
            return [
                self.replace(x=self.x + b * step, to=self.to + b * self.to_row, rows=e - b)
                for b, e in cuts(self.rows, threads)
            ]
        blocks = self.length // BLOCK if together else 0
        edges = [(BLOCK * b, BLOCK * e) for b, e in cuts(blocks, threads)]
        edges[-1] = (edges[-1][0], self.length)
        return [self.replace(x=self.x + item * b, to=self.to + b, length=e - b) for b, e in edges]

    def _images(self, begin: int, end: int) -> Self:
        x, to = self.x + begin * self.x_image, self.to + begin * self.to_image
        return self.replace(x=x, to=to, images=end - begin)


class ImageGrid(Record):
    """The grid of an image that is quantized when the model runs: its scale, and the byte of 0."""

    scale: float
    zero: int


image_grid_at = reader(ImageGrid)


class CopyRecord(Lines):
    """Fields of a copy: the bits of each byte to flip, and the bytes of a pixel where they stand
    further apart in the copies.
    """

    turned: int
    pixels: int
    pixel: int
    to_pixel: int

    def cut(self, threads: int) -> list[Self]:
        """Cut lines; blocks of a single one where its pixels stand together."""
        return self.cut_lines(threads, 1, together=self.pixel == self.to_pixel)


class LevelsRecord(Lines):
    """Floats to write as numbers of their levels, the thresholds between these, and where among
    them a float is: its product with ``per_step``, plus ``first``, is less than one from there.
    """

    thresholds: int
    per_step: float
    first: float

    def cut(self, threads: int) -> list[Self]:
        """Cut lines, or blocks of a single one."""
        return self.cut_lines(threads, 4, together=True)


class QuantizeRecord(Lines):
    """Where each image's ``ImageGrid`` goes, how far the first line lies behind the beginning of a
    copy, and pieces of a line that stand apart in the copies.
    """

    grids: int
    border: int
    pieces: int
    piece: int
    to_piece: int


class ByteRecord(Tiled):
    """Tiles of images in their padded copies, and the limits of results."""

    x: int
    y: int
    images: int
    x_image: int
    y_image: int
    limits: int


READ_BY_SOME = {"commons", "starts", "constants", "zero_sums", "scales", "grids"}
"""Arrays that only some kernels read."""


class WindowsRecord(ByteRecord):
    """Windows: runs of inputs that are neighbours in memory, and the weights that they are
    multiplied by.
    """

    down: int
    across: int
    weights_down: int
    weights_run: int
    runs: int
    """Runs in a row, steps of four bytes in a run, and rows."""
    steps: int
    rows: int
    common: int
    """Number that is subtracted from weights."""
    commons: int
    """Numbers that are subtracted from the weights of each output."""
    piece_steps: int
    """Steps of a run whose sums have fewer bits, where those of all may not have."""
    outputs: int
    grids: int
    """A table of ``ImageGrid``, where inputs are quantized when the model runs."""
    weights: int
    starts: int
    """Starts of sums; where results are float, addends of these."""
    constants: int
    """Constants that scale sums to the grid of the result."""
    zero_sums: int
    """Count of a sum for each step of the zero byte, and the scales of the outputs."""
    scales: int


class ChannelsRecord(ByteRecord):
    """Rows of 64 channels: the distances of taps, how many whole steps of four taps there are, and
    the channels of a piece.
    """

    offsets: int
    full: int
    piece: int
    grids: int
    weights: int
    starts: int
    constants: int
    zero_sums: int
    scales: int
