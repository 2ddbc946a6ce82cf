"""Results [pixels, vectors of outputs] in vector registers: activated, clamped and written."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from luciole.kernels.formulas import elementary
from luciole.kernels.jit.emits import Address, Builder, Float32, Int64, Value, emits
from luciole.kernels.jit.vector import masked
from luciole.kernels.jit.vector.lanes import Lanes
from luciole.kernels.jit.vector.vectors import LANES, Same, Vectors, addresses, gather, splat, store


@emits
def tanh(builder: Builder, rows: Vectors) -> Same:
    """Compute the hyperbolic tangent of every result."""
    results = [Lanes(builder, builder.extract_value(rows.value, k)) for k in range(rows.kind.count)]
    return gather(builder, [elementary.tanh(result).value for result in results])


def between(builder: Builder, value: Value, low: Value, high: Value) -> Value:
    """Clamp a vector to two limits; NaN stays NaN."""
    value = builder.select(builder.fcmp_ordered("<", value, low), low, value)
    return builder.select(builder.fcmp_ordered(">", value, high), high, value)


def store_rows(
    builder: Builder, values: Sequence[Value], starts: Sequence[Value], vectors: int, count: Value
) -> None:
    """Write rows of ``vectors`` vectors of floats to an address each: their first ``count`` floats
    where they have more.
    """
    places = [(start, v) for start in starts for v in range(vectors)]
    full = builder.icmp_signed(">=", count, ir.Constant(count.type, vectors * LANES))
    with builder.if_else(full) as (everything, rest):
        with everything:
            for value, (start, v) in zip(values, places, strict=True):
                store(builder, value, start, 4 * LANES * v)
        with rest:
            inside = [masked.lanes_before(builder, count, LANES * v) for v in range(vectors)]
            for value, (start, v) in zip(values, places, strict=True):
                masked.store_first(builder, value, start, 4 * LANES * v, inside[v])


@emits
def write(
    builder: Builder,
    rows: Vectors,
    low: Float32,
    high: Float32,
    y: Address,
    step: Int64,
    count: Int64,
) -> None:
    """Write results, cut off at two limits, pixel p's to ``y + p step``: its first ``count`` ones
    where there are more.
    """
    low, high = splat(builder, low), splat(builder, high)
    values = [
        between(builder, builder.extract_value(rows.value, k), low, high)
        for k in range(rows.kind.count)
    ]
    pixels, vectors = rows.kind.shape
    store_rows(builder, values, addresses(builder, y, step, pixels), vectors, count)
