"""Matrices of 8 x 8 bits turned: 8 vectors of bits to 8 vectors of bytes."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir
from numba.core import cgutils

from luciole.kernels.jit.emits import Builder, Value
from luciole.kernels.jit.vector.vectors import I32

_I8 = ir.IntType(8)
_SWAPS = (
    (4, 0x0F0F0F0F, ((0, 4), (1, 5), (2, 6), (3, 7))),
    (2, 0x33333333, ((0, 2), (1, 3), (4, 6), (5, 7))),
    (1, 0x55555555, ((0, 1), (2, 3), (4, 5), (6, 7))),
)
"""Blocks of bits that change places: their size, where they are, and in which vectors."""


def by_product(builder: Builder, bits: Sequence[Value]) -> list[Value]:
    """Turn 8 vectors of 64 bytes by products with the unit matrix, ``vgf2p8affineqb``, which swap
    rows and columns. Needs GFNI.

    Bytes of one place are brought together before by interleaving: bytes, then pairs, then fours.
    """
    size = 4 * bits[0].type.count
    octets = ir.VectorType(_I8, size)
    unit = ir.Constant(octets, [1 << k % 8 for k in range(size)])
    kind = ir.FunctionType(octets, [octets, octets, _I8])
    name = "llvm.x86.vgf2p8affineqb.512"
    turned = []
    for vector in _interleaved(builder, bits[::-1]):
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        operands = [unit, builder.bitcast(vector, octets), ir.Constant(_I8, 0)]
        turned.append(builder.call(function, operands))
    return turned


def by_swaps(builder: Builder, bits: Sequence[Value]) -> list[Value]:
    """Turn 8 vectors of any size: byte q of vector e then has the bits 8 q + e of all of them.

    Blocks of 4 x 4 bits, then 2 x 2, then single ones change places across the diagonal (Warren,
    Hacker's Delight, 2012, section 7-3).
    """
    vectors = list(bits)
    for by, mask, pairs in _SWAPS:
        for first, second in pairs:
            swapped = _swapped(builder, vectors[first], vectors[second], by, mask)
            vectors[first], vectors[second] = swapped
    return vectors


def _swapped(builder: Builder, a: Value, b: Value, by: int, mask: int) -> tuple[Value, Value]:
    """Exchange the bits of b under a mask with those of a that are ``by`` higher."""
    distance, chosen = (ir.Constant(a.type, [n] * a.type.count) for n in (by, mask))
    different = builder.and_(builder.xor(builder.lshr(a, distance), b), chosen)
    return builder.xor(a, builder.shl(different, distance)), builder.xor(b, different)


def _interleaved(builder: Builder, vectors: Sequence[Value]) -> list[Value]:
    """Turn 8 vectors into 8 others: every 8 bytes of theirs are the bytes of one place,
    in order.
    """
    pairs = _interleaved_pairs(builder, vectors, 1)
    fours = _interleaved_pairs(builder, [pairs[i] for i in (0, 2, 1, 3, 4, 6, 5, 7)], 2)
    return _interleaved_pairs(builder, [fours[i] for i in (0, 4, 1, 5, 2, 6, 3, 7)], 4)


def _interleaved_pairs(builder: Builder, vectors: Sequence[Value], size: int) -> list[Value]:
    """Interleave neighbours in elements of ``size`` bytes, within every 16 bytes: the lower half of
    both, then the upper half.
    """
    interleaved = []
    for first, second in zip(vectors[::2], vectors[1::2], strict=True):
        for upper in (0, 1):
            interleaved.append(_unpacked(builder, first, second, size, upper))
    return interleaved


def _unpacked(builder: Builder, first: Value, second: Value, size: int, upper: int) -> Value:
    octets = first.type.count * first.type.element.width // 8
    count, half = octets // size, 8 // size
    kind = ir.VectorType(ir.IntType(8 * size), count)
    order: list[int] = []
    for block in range(0, count, 2 * half):
        for k in range(half):
            order += [block + upper * half + k, count + block + upper * half + k]
    mask = ir.Constant(ir.VectorType(I32, count), order)
    return builder.shuffle_vector(builder.bitcast(first, kind), builder.bitcast(second, kind), mask)
