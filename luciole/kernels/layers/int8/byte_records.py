"""The records of kernels for layers with 8 bit weights; steps are in bytes."""

from __future__ import annotations

from luciole.kernels.jit.record import Record, reader
from luciole.kernels.layers.geometry.sequence import Tiled


class Lines(Record):
    """Lines of images to copy: of ``length`` elements each, row by row."""

    x: int
    to: int
    images: int
    x_image: int
    to_image: int
    rows: int
    length: int
    to_row: int


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
