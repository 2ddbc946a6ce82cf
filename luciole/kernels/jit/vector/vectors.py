"""Vector registers and groups of them: plain LLVM vectors of 16 lanes, one register with AVX-512,
two with AVX2, and right everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias

from llvmlite import ir
from numba.core import cgutils
from numba.extending import models, register_model

from luciole.kernels.jit.emits import Builder, Form, Kind, Operand, Value, same, types
from luciole.kernels.jit.scalars import I64

LANES = 16
"""Elements of one vector."""

I16, I32, F32, F64 = ir.IntType(16), ir.IntType(32), ir.FloatType(), ir.DoubleType()
INTS, FLOATS = ir.VectorType(I32, LANES), ir.VectorType(F32, LANES)
DOUBLES = ir.VectorType(F64, LANES)
SHORTS, LONGS = ir.VectorType(I16, LANES), ir.VectorType(I64, LANES)
BYTES = ir.VectorType(ir.IntType(8), LANES)
SHORT_PAIRS = ir.VectorType(ir.IntType(16), 2 * LANES)
"""Vector of 16 pairs of int16, as wide as one of INTS."""


class Tile(types.Type):  # type: ignore[misc]  # numba is not typed
    """The type of a group of vectors that stay in registers, indexed as its shape says."""

    def __init__(self, element: Kind, *shape: int) -> None:
        self.element, self.shape, self.count = element, shape, math.prod(shape)
        super().__init__(name=f"Tile({element}, {shape})")


OCTETS = ir.VectorType(ir.IntType(8), 2 * LANES)
"""Bytes of twice as many elements: a register with AVX2."""

_VECTORS = {
    types.uint8: OCTETS,
    types.int32: INTS,
    types.int64: LONGS,
    types.float32: FLOATS,
    types.float64: DOUBLES,
}


@register_model(Tile)
class _TileModel(models.PrimitiveModel):  # type: ignore[misc]  # numba is not typed
    def __init__(self, manager: Kind, tile: Tile) -> None:
        super().__init__(manager, tile, ir.ArrayType(_VECTORS[tile.element], tile.count))


Vectors: TypeAlias = Operand[Tile]
Same: TypeAlias = Annotated[Vectors, same]
"""A tile like the first operand."""


def shaped(element: Kind) -> Callable[..., Tile]:
    """Return the type of a tile with the shape that a function's ``Literal`` operands say."""
    return lambda *operands: Tile(element, *(n for n in operands if isinstance(n, int)))


Ints: TypeAlias = Annotated[Vectors, shaped(types.int32)]
Longs: TypeAlias = Annotated[Vectors, shaped(types.int64)]
Floats: TypeAlias = Annotated[Vectors, shaped(types.float32)]
Doubles: TypeAlias = Annotated[Vectors, shaped(types.float64)]
FloatsLike: TypeAlias = Annotated[Vectors, lambda tile, *_: Tile(types.float32, *tile.shape)]
"""Floats in the shape of the first operand."""
IntsLike: TypeAlias = Annotated[Vectors, lambda tile, *_: Tile(types.int32, *tile.shape)]
"""Integers in that shape."""


def splat(builder: Builder, scalar: Value) -> Value:
    """Broadcast a scalar to every lane."""
    return wide_splat(builder, scalar, LANES)


def wide_splat(builder: Builder, scalar: Value, count: int) -> Value:
    """Broadcast a scalar to ``count`` lanes."""
    empty = ir.Constant(ir.VectorType(scalar.type, count), ir.Undefined)
    first = builder.insert_element(empty, scalar, ir.Constant(I32, 0))
    return wide_shuffle(builder, first, empty, [0] * count)


def wide_shuffle(builder: Builder, a: Value, b: Value, order: Sequence[int]) -> Value:
    """Reorder the lanes of two vectors; those of the second one are counted on."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, len(order)), list(order)))


def pointer(builder: Builder, address: Value, kind: Form, offset: int = 0) -> Value:
    """Cast an address, ``offset`` bytes on, to a pointer to an LLVM type."""
    return builder.inttoptr(builder.add(address, ir.Constant(I64, offset)), kind.as_pointer())


def load(builder: Builder, kind: Form, address: Value, offset: int = 0, align: int = 4) -> Value:
    """Load a value ``offset`` bytes behind an address, on a multiple of ``align`` bytes."""
    loaded = builder.load(pointer(builder, address, kind, offset))
    loaded.align = align
    return loaded


def store(builder: Builder, value: Value, address: Value, offset: int = 0, align: int = 4) -> None:
    """Write a value ``offset`` bytes behind an address, to a multiple of ``align`` bytes."""
    builder.store(value, pointer(builder, address, value.type, offset)).align = align


def prefetch_line(builder: Builder, address: Value, offset: int, nearness: int) -> None:
    """Fetch the line of 64 bytes at an address to the nearest cache (3) or the one behind it (2);
    the address may lie outside of everything.
    """
    place = pointer(builder, address, ir.IntType(8), offset)
    read, near, data = (ir.Constant(I32, n) for n in (0, nearness, 1))
    kind = ir.FunctionType(ir.VoidType(), [place.type, I32, I32, I32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(function, [place, read, near, data])


def gather(builder: Builder, vectors: Sequence[Value]) -> Value:
    """Aggregate vectors to one value of a tile's LLVM type (``insertvalue``)."""
    tile = ir.Constant(ir.ArrayType(vectors[0].type, len(vectors)), ir.Undefined)
    for place, vector in enumerate(vectors):
        tile = builder.insert_value(tile, vector, place)
    return tile


def of_llvm(builder: Builder, name: str, *args: Value) -> Value:
    """Call one of LLVM's own functions whose result has the type of its arguments."""
    kind = ir.FunctionType(args[0].type, [a.type for a in args])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)


def by_halves(builder: Builder, name: str, result: Form, a: Value, b: Value) -> Value:
    """Call an AVX2 instruction for the lower and the upper half of two vectors of 512 bits."""
    half = a.type.count // 2
    operand = ir.VectorType(a.type.element, half)
    kind = ir.FunctionType(ir.VectorType(result.element, result.count // 2), [operand, operand])
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.avx2.{name}")
    halves = []
    for lanes in (range(half), range(half, 2 * half)):
        some = [wide_shuffle(builder, x, x, lanes) for x in (a, b)]
        halves.append(builder.call(function, some))
    lower, upper = halves
    return wide_shuffle(builder, lower, upper, range(result.count))


FMA = "llvm.fmuladd.v16f32"  # one rounding where the machine can, and never a call


def addresses(builder: Builder, address: Value, step: Value, count: int) -> list[Value]:
    """Compute the addresses ``address + i * step``."""
    return [builder.add(address, builder.mul(step, ir.Constant(I64, i))) for i in range(count)]
