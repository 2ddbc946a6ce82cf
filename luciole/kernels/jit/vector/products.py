"""Sums of products in vector registers."""

from __future__ import annotations

from luciole.kernels.jit.emits import Address, Builder, Int64, Value, emits
from luciole.kernels.jit.vector.vectors import (
    F32,
    FLOATS,
    FMA,
    LANES,
    Same,
    Vectors,
    addresses,
    gather,
    load,
    of_llvm,
    splat,
)


@emits
def add_products(
    builder: Builder, rows: Vectors, x: Address, step: Int64, weights: Address
) -> Same:
    """Add to results [pixels, vectors] the product of pixel p's float at ``x + p step`` with the
    floats [outputs] at ``weights``.
    """
    pixels, vectors = rows.kind.shape
    factors = [load(builder, FLOATS, weights, 4 * LANES * v) for v in range(vectors)]
    results: list[Value] = []
    for address in addresses(builder, x, step, pixels):
        number = splat(builder, load(builder, F32, address))
        for factor in factors:
            before = builder.extract_value(rows.value, len(results))
            results.append(of_llvm(builder, FMA, number, factor, before))
    return gather(builder, results)
