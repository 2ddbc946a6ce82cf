"""The operands of LSTMs, with and without their optional parts."""

from __future__ import annotations

from collections.abc import Sequence

from luciole.ir.recurrent import INPUT_GATE, LSTM, LSTM_AUXILIARY, NORMS, PEEPHOLES

PROJECTION = ("projection_weights", "projection_bias")
PLAIN = (*PEEPHOLES, *NORMS, *PROJECTION)
CIFG = (*INPUT_GATE, PEEPHOLES[0], NORMS[0], "auxillary_input_to_input_weights")

PARTS: dict[str, tuple[str, ...]] = {
    "plain": PLAIN,
    "no input gate": (*PLAIN, *CIFG),
    "peepholes": (*NORMS, *PROJECTION),
    "normalized": (*PEEPHOLES, *PROJECTION),
    "projected": (*PEEPHOLES, *NORMS),
    "projected without bias": (*PEEPHOLES, *NORMS, "projection_bias"),
    "everything": (),
    "everything but the input gate": CIFG,
}
"""What is left out."""


def lstm_shapes(left_out: Sequence[str], **sizes: int) -> dict[str, tuple[int, ...]]:
    """The shapes of all operands but the input and what is left out."""
    cells = sizes.get("cells", 4)
    outputs = cells if "projection_weights" in left_out else 2
    known = {"batch": 3, "inputs": 5, "cells": cells, "auxillary inputs": 5, "outputs": outputs}
    known |= sizes
    extents = {**LSTM, **LSTM_AUXILIARY}
    return {n: tuple(known[e] for e in axes) for n, axes in extents.items() if n not in left_out}
