"""REVERSE_SEQUENCE kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, ShapeError
from luciole.ir.ops.reverse_sequence import ReverseSequence
from luciole.ir.rules import agree
from luciole.kernels.core.registry import ANY, reference


@reference(ReverseSequence, *ANY)
def reverse_sequence(op: ReverseSequence, x: Array, seq_lengths: Array) -> Array:
    """Reverse one batch after the other. A length below 1 turns nothing, as in TFLite.

    Raises ShapeError for a length beyond the axis.
    """
    most = x.shape[op.seq_dim]
    y = x.copy()
    turned = np.moveaxis(y, (op.batch_dim, op.seq_dim), (0, 1))
    agree("elements", len(seq_lengths), len(turned), "seq_lengths", "the batch axis")
    for batch, length in zip(turned, seq_lengths, strict=True):
        if length > most:
            raise ShapeError(f"seq_lengths has {length}, axis {op.seq_dim} has {most} elements")
        if length > 1:
            batch[:length] = batch[:length][::-1].copy()
    return y
