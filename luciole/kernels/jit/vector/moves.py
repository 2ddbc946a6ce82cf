"""Elements on the move in kernels: copied as bytes, whatever they mean."""

from __future__ import annotations

from llvmlite import ir

from luciole.kernels.jit.compiling import inlined
from luciole.kernels.jit.emits import Address, Builder, Int64, Literal, Value, emits
from luciole.kernels.jit.scalars import I64
from luciole.kernels.jit.vector.vectors import INTS, LANES, addresses, load, store


@emits
def move(builder: Builder, to: Address, source: Address, size: Literal) -> None:
    """Copy ``size`` bytes, a constant when a kernel is compiled, between two addresses: there is
    one compiled body per size.
    """
    kind = ir.VectorType(ir.IntType(8), size)
    store(builder, load(builder, kind, source, align=1), to, align=1)


@inlined
def copy(to: int, source: int, count: int) -> None:
    """Copy bytes; the last of several pieces may overlap the one before it."""
    if count >= 64:
        for _ in range(count // 64):
            move(to, source, 64)
            to += 64
            source += 64
        rest = count % 64
        if rest:
            move(to + rest - 64, source + rest - 64, 64)
    elif count >= 32:
        move(to, source, 32)
        move(to + count - 32, source + count - 32, 32)
    elif count >= 16:
        move(to, source, 16)
        move(to + count - 16, source + count - 16, 16)
    else:
        _copy_few(to, source, count)


@inlined
def _copy_few(to: int, source: int, count: int) -> None:
    """Copy less than 16 bytes."""
    if count >= 8:
        move(to, source, 8)
        move(to + count - 8, source + count - 8, 8)
    elif count >= 4:
        move(to, source, 4)
        move(to + count - 4, source + count - 4, 4)
    elif count >= 2:
        move(to, source, 2)
        move(to + count - 2, source + count - 2, 2)
    elif count:
        move(to, source, 1)


@inlined
def shift(start: int, size: int, distance: int) -> None:
    """Move the last bytes of ``size`` down by ``distance``, which is 2 or 4 and divides both."""
    source, end = start + distance, start + size
    while end - source >= 64:
        move(source - distance, source, 64)
        source += 64
    while source < end:
        if distance == 4:
            move(source - 4, source, 4)
        else:
            move(source - 2, source, 2)
        source += distance


@inlined
def scatter(to: int, source: int, item: int, count: int, step: int, source_step: int) -> None:
    """Copy ``count`` elements of ``item`` bytes (1, 2, 4, 8 or 16), each ``step`` bytes on."""
    for _ in range(count):
        if item == 4:
            move(to, source, 4)
        elif item == 1:
            move(to, source, 1)
        elif item == 2:
            move(to, source, 2)
        elif item == 8:
            move(to, source, 8)
        else:
            move(to, source, 16)
        to += step
        source += source_step


@emits
def turn(builder: Builder, to: Address, step: Int64, source: Address, source_step: Int64) -> None:
    """Transpose 16 x 16 elements of 4 bytes, halving blocks as Eklundh does (A Fast Computer Method
    for Matrix Transposing, 1972); the steps lead from row to row.
    """
    rows = [load(builder, INTS, a) for a in addresses(builder, source, source_step, LANES)]
    distance = LANES // 2
    while distance:
        _exchange(builder, rows, distance)
        distance //= 2
    for row, address in zip(rows, addresses(builder, to, step, LANES), strict=True):
        store(builder, row, address)


def _exchange(builder: Builder, rows: list[Value], distance: int) -> None:
    """Exchange blocks of ``distance`` x ``distance`` elements beside the diagonal."""
    lanes = range(LANES)
    upper = [lane if not lane & distance else LANES + lane - distance for lane in lanes]
    lower = [lane + distance if not lane & distance else LANES + lane for lane in lanes]
    for first in (row for row in lanes if not row & distance):
        a, b = rows[first], rows[first + distance]
        rows[first] = builder.shuffle_vector(a, b, ir.Constant(INTS, upper))
        rows[first + distance] = builder.shuffle_vector(a, b, ir.Constant(INTS, lower))


@emits
def weave(
    builder: Builder, to: Address, source: Address, source_step: Int64, count: Literal
) -> None:
    """Put the first elements of 4 bytes of ``count`` (known when a kernel is compiled) rows behind
    each other, then the second ones, up to 16 of each; the step leads from row to row.
    """
    rows = [load(builder, INTS, a) for a in addresses(builder, source, source_step, count)]
    for number in range(count):
        places = [divmod(LANES * number + lane, count) for lane in range(LANES)]
        woven = rows[0]
        for i, row in enumerate(rows):
            lanes = [LANES + at if own == i else lane for lane, (at, own) in enumerate(places)]
            woven = builder.shuffle_vector(woven, row, ir.Constant(INTS, lanes))
        store(builder, woven, builder.add(to, ir.Constant(I64, 4 * LANES * number)))
