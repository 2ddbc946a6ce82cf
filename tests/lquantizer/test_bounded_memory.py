"""Quantizing takes no more memory for many records than for few."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.interpreter.records import Records, records_of
from luciole.ir import Array, Model
from luciole.ir.ops.conv_2d import Conv2D
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.reshape import Reshape
from luciole.schema.enums import ActivationFunctionType, Padding
from tests.lquantizer.networks import Builder

SIDE, FEW, MANY = 64, 440, 1320
RECORD = SIDE * SIDE * 3 * 4
"""Bytes of a record of floats."""


def network() -> Model:
    """A convolution of images that leaves few numbers of each, and a dense layer."""
    b = Builder()
    x = b.graph.add_input("x", (1, SIDE, SIDE, 3))
    relu, valid = ActivationFunctionType.RELU, Padding.VALID
    kernel = b.weights(4, 4, 4, 3)
    y = b.add(Conv2D(x, kernel, padding=valid, stride_w=16, stride_h=16, activation=relu))
    flat = b.add(Reshape(y, b.constant(np.array([-1, 64], np.int32))))
    b.graph.outputs = [b.add(FullyConnected(flat, b.weights(5, 64)))]
    return b.model


def of_floats(path: Path, count: int) -> Array:
    """Images in a file of floats that is mapped."""
    generator = np.random.default_rng(count)
    images = np.lib.format.open_memmap(path, "w+", np.float32, (count, SIDE, SIDE, 3))
    for image in images:
        image[:] = generator.standard_normal(image.shape)
    return np.asarray(np.load(path, mmap_mode="r"))


def of_bytes(path: Path, count: int) -> Array:
    """Images of bytes in memory, which become floats where they are read."""
    return np.random.default_rng(count).integers(0, 255, (count, SIDE, SIDE, 3), np.uint8)


def of_a_program(path: Path, count: int) -> Records:
    """Images in a mapped file, as a program hands them on."""
    return records_of(network().graph, of_floats(path, count))


def peak(data: Array | Records) -> int:
    """The most bytes that quantizing takes beside the data."""
    tracemalloc.start()
    try:
        luciole.quantize(network(), data, scheme="int8")
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("make", [of_floats, of_bytes, of_a_program])
def test_many_records_take_no_more_memory(
    make: Callable[[Path, int], Array | Records], tmp_path: Path
) -> None:
    few, many = (peak(make(tmp_path / f"{count}.npy", count)) for count in (FEW, MANY))
    more = (MANY - FEW) * RECORD
    judging = (MANY - FEW) // 10 * RECORD  # those that judge the file are read at once
    assert few < FEW * RECORD + (40 << 20)
    assert many - few < judging + more // 10
