"""Results [pixels, vectors of outputs] in vector registers: bent, cut off and written."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from luciole.kernels.jit import functions, masked
from luciole.kernels.jit.lanes import Lanes
from luciole.kernels.jit.scalars import intrinsic, types
from luciole.kernels.jit.vectors import (
    LANES,
    addresses,
    gather,
    splat,
    store,
)


@intrinsic
def tanh(typing_context: Any, rows: Any) -> Any:
    """The hyperbolic tangent of every result."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        results = [Lanes(builder, builder.extract_value(args[0], k)) for k in range(rows.count)]
        return gather(builder, [functions.tanh(result).value for result in results])

    return rows(rows), generate


def between(builder: Any, value: Any, low: Any, high: Any) -> Any:
    """What lies outside of two limits cut off; NaN stays NaN."""
    value = builder.select(builder.fcmp_ordered("<", value, low), low, value)
    return builder.select(builder.fcmp_ordered(">", value, high), high, value)


def store_rows(builder: Any, values: Any, starts: Any, vectors: int, count: Any) -> None:
    """Write rows of so many vectors of floats to an address each: their first ``count`` floats
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


@intrinsic
def write(
    typing_context: Any, rows: Any, low: Any, high: Any, y: Any, step: Any, count: Any
) -> Any:
    """Write results, cut off at two limits, pixel p's to ``y + p step``: its first ``count`` ones
    where there are more.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows_value, low, high, y, step, count = args
        low, high = splat(builder, low), splat(builder, high)
        values = [
            between(builder, builder.extract_value(rows_value, k), low, high)
            for k in range(rows.count)
        ]
        pixels, vectors = rows.shape
        store_rows(builder, values, addresses(builder, y, step, pixels), vectors, count)
        return context.get_dummy_value()

    integers = (types.int64, types.int64, types.int64)
    return types.void(rows, types.float32, types.float32, *integers), generate
