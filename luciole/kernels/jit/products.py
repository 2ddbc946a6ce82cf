"""Sums of products in vector registers."""

from __future__ import annotations

from typing import Any

from luciole.kernels.jit.scalars import intrinsic, types
from luciole.kernels.jit.vectors import (
    F32,
    FLOATS,
    FMA,
    LANES,
    addresses,
    gather,
    load,
    of_llvm,
    splat,
)


@intrinsic
def add_products(typing_context: Any, rows: Any, x: Any, step: Any, weights: Any) -> Any:
    """Add to results [pixels, vectors] the product of pixel p's float at ``x + p step`` with the
    floats [outputs] at ``weights``.
    """
    pixels, vectors = rows.shape

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        rows_value, x, step, weights = args
        factors = [load(builder, FLOATS, weights, 4 * LANES * v) for v in range(vectors)]
        results: list[Any] = []
        for address in addresses(builder, x, step, pixels):
            number = splat(builder, load(builder, F32, address))
            for factor in factors:
                before = builder.extract_value(rows_value, len(results))
                results.append(of_llvm(builder, FMA, number, factor, before))
        return gather(builder, results)

    return rows(rows, types.int64, types.int64, types.int64), generate
