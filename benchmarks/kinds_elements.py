"""Kinds of models for ``benchmarks.kinds``: element-wise integers and images of another size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.builders import INT8, INT16, UINT8, Chain, Grid
from luciole.ir import Model, Op
from luciole.ir.ops import activations, elementwise_binary, elementwise_unary
from luciole.ir.ops.leaky_relu import LeakyRelu
from luciole.ir.ops.prelu import PRelu
from luciole.ir.ops.quantize import Quantize
from luciole.ir.ops.resize import ResizeBilinear, ResizeNearestNeighbor

IMAGE = (1, 32, 32, 16)
SHORT = Grid(INT16, 2e-4)
BYTE = Grid(INT8, 0.05, 3)

PAIRS: tuple[type[Op], ...] = (
    elementwise_binary.Add,
    elementwise_binary.Sub,
    elementwise_binary.Mul,
    elementwise_binary.Maximum,
    elementwise_binary.Minimum,
)
CLAMPS: tuple[type[Op], ...] = (activations.Relu, activations.Relu6)


def pairs_of_16_bits() -> Iterator[tuple[str, Model]]:
    """Give functions of two tensors of INT16."""
    for cls in PAIRS:
        like = cls in PAIRS[3:]
        chain = Chain(IMAGE, SHORT)
        other = chain.input(IMAGE, SHORT if like else Grid(INT16, 3e-4), "other")
        result = SHORT if like else Grid(INT16, 5e-4)
        given = {} if like or cls is elementwise_binary.Mul else {"pot_scale_int16": False}
        chain.add(cls, [chain.end, other], result, **given)
        yield f"{cls.code.name} INT16", chain.done()


def functions_of_16_bits() -> Iterator[tuple[str, Model]]:
    """Give functions of one tensor of INT16."""
    unit = Grid(INT16, 2.0**-15)
    cases: list[tuple[type[Op], Grid, dict[str, float]]] = [
        (LeakyRelu, Grid(INT16, 3e-4), {"alpha": 0.1}),
        (elementwise_unary.Abs, Grid(INT16, 3e-4), {}),
        *((cls, Grid(INT16, 3e-4), {}) for cls in CLAMPS),
        (activations.Logistic, unit, {}),
        (activations.Tanh, unit, {}),
        (elementwise_unary.Exp, Grid(INT16, 3e-3), {}),
    ]
    for cls, grid, given in cases:
        chain = Chain(IMAGE, SHORT)
        chain.add(cls, [chain.end], grid, **given)
        yield f"{cls.code.name} INT16", chain.done()


def changes_of_scale() -> Iterator[tuple[str, Model]]:
    """Give QUANTIZE from and to INT16."""
    for name, first, then in (
        ("INT16 to INT16", SHORT, Grid(INT16, 3e-4)),
        ("INT16 to INT8", SHORT, BYTE),
        ("INT8 to INT16", BYTE, SHORT),
    ):
        chain = Chain(IMAGE, first)
        chain.add(Quantize, [chain.end], then)
        yield f"QUANTIZE {name}", chain.done()
    chain = Chain(IMAGE)
    chain.add(Quantize, [chain.end], SHORT)
    yield "QUANTIZE float to INT16", chain.done()


def pairs_of_bytes() -> Iterator[tuple[str, Model]]:
    """Give functions of two tensors of INT8."""
    for shape in ((1, 8, 8, 16), IMAGE):
        for cls in PAIRS[:3]:
            chain = Chain(shape, BYTE)
            other = chain.input(shape, Grid(INT8, 0.03, -5), "other")
            chain.add(cls, [chain.end, other], Grid(INT8, 0.09, 7))
            yield f"{cls.code.name} INT8 of {np.prod(shape)}", chain.done()
        chain = Chain(shape, BYTE)
        other = chain.input(shape, Grid(INT8, 0.03, -5), "other")
        chain.add(elementwise_binary.SquaredDifference, [chain.end, other], Grid(INT8, 0.3, -128))
        yield f"SQUARED_DIFFERENCE INT8 of {np.prod(shape)}", chain.done()
        chain = Chain(shape, BYTE)
        slope = chain.integers(Grid(INT8, 0.003), shape[-1])
        chain.add(PRelu, [chain.end, slope], Grid(INT8, 0.04, -9))
        yield f"PRELU INT8 of {np.prod(shape)}", chain.done()


def resized_images() -> Iterator[tuple[str, Model]]:
    """Give images in another size."""
    for grid in (BYTE, Grid(UINT8, 0.05, 120)):
        for what in ("", "half_pixel_centers", "align_corners"):
            for cls in (ResizeBilinear, ResizeNearestNeighbor):
                name = f"{cls.code.name} {grid.dtype.name} {what}".strip()
                yield name, _resized(cls, grid, 16, **({what: True} if what else {}))
        for channels in (1, 3, 64):
            name = f"RESIZE_BILINEAR {grid.dtype.name} {channels} channels"
            yield name, _resized(ResizeBilinear, grid, channels, half_pixel_centers=True)


def _resized(cls: type[Op], grid: Grid, channels: int, **given: bool) -> Model:
    chain = Chain((1, 24, 24, channels), grid)
    size = chain.constant(np.array([37, 53], np.int32))
    chain.add(cls, [chain.end, size], grid, **given)
    return chain.done()


def layer_norm() -> tuple[str, Model]:
    """Give what LayerNormalization is made of, in float."""
    from luciole.ir.ops.reduce import Mean

    chain = Chain((1, 64, 128))
    x, axis = chain.end, chain.constant(np.array([2], np.int32))
    mean = chain.add(Mean, [x, axis], keep_dims=True)
    squares = chain.add(elementwise_binary.SquaredDifference, [x, mean])
    variance = chain.add(Mean, [squares, axis], keep_dims=True)
    small = chain.constant(np.array(1e-3, np.float32))
    inverse = chain.add(
        elementwise_unary.Rsqrt, [chain.add(elementwise_binary.Add, [variance, small])]
    )
    scale = chain.add(elementwise_binary.Mul, [inverse, chain.floats(128)])
    shift = chain.add(elementwise_binary.Mul, [mean, scale])
    shift = chain.add(elementwise_binary.Sub, [chain.floats(128), shift])
    chain.add(elementwise_binary.Add, [chain.add(elementwise_binary.Mul, [x, scale]), shift])
    return "LayerNorm, SQUARED_DIFFERENCE float", chain.done()


def kinds() -> Iterator[tuple[str, Model]]:
    """Give all of them."""
    yield from pairs_of_16_bits()
    yield from functions_of_16_bits()
    yield from changes_of_scale()
    yield from pairs_of_bytes()
    yield from resized_images()
    yield layer_norm()
