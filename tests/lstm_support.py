"""The operands of LSTMs, with and without their optional parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.ops import unidirectional_sequence_lstm as ops
from luciole.ir.recurrent import INPUT_GATE, LSTM, LSTM_AUXILIARY, NORMS, PEEPHOLES
from luciole.schema.enums import ActivationFunctionType
from tests.support import Affine

PROJECTION = ("projection_weights", "projection_bias")
PLAIN = (*PEEPHOLES, *NORMS, *PROJECTION)
CIFG = (*INPUT_GATE, PEEPHOLES[0], NORMS[0], "auxillary_input_to_input_weights")

PARTS: dict[str, tuple[str, ...]] = {
    "plain": PLAIN,
    "no input gate": (*PLAIN, *CIFG),
    "peepholes": (*NORMS, *PROJECTION),
    "normalized": (*PEEPHOLES, *PROJECTION),
    "normalized, no input gate": (*PEEPHOLES, *PROJECTION, *CIFG),
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


# ------------------------------------------------------------------------------------- integers
def integer_affine(name: str) -> Affine:
    """Scales as a converter might choose them."""
    if name.endswith("layer_norm_coefficients"):
        return Affine(2e-5)
    if name.startswith("cell_to_"):
        return Affine(3e-5)
    found = {"input": Affine(0.02, 5), "output_state": Affine(0.008, -7)}
    return found.get(name, Affine(2.0**-11 if name == "cell_state" else 0.01))


def integer_array(name: str, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Random contents in an operand's type."""
    if name.endswith("bias"):
        return random.integers(-4000, 4000, shape).astype(np.int32)
    if name.endswith("layer_norm_coefficients"):
        return random.integers(8000, 32767, shape).astype(np.int16)
    if name.startswith("cell_to_"):
        return random.integers(-32767, 32767, shape).astype(np.int16)
    return random.integers(-127, 128, shape).astype(np.int8)


HIDDEN = Affine(0.008, -7)
"""Of what comes before the projection; the same as that of the output where there is none."""


def integer_lstm(
    cls: type[Op] = ops.LSTM,
    part: str = "plain",
    hidden: Affine = HIDDEN,
    sizes: Mapping[str, int] | None = None,
    **given: Any,
) -> Model:
    """A model in INT8 with a cell state in INT16; ``sizes`` are others than the usual ones."""
    given = {"activation": ActivationFunctionType.TANH, **given}
    graph, random = Model().add_graph(Graph("main")), np.random.default_rng(5)
    batch, inputs = ((sizes or {}).get(name, n) for name, n in (("batch", 3), ("inputs", 5)))
    times = () if cls is ops.LSTM else (6,)
    order = (*times, batch) if given.get("time_major") else (batch, *times)
    first = {"input": (*order, inputs)}
    operands: dict[str, Any] = {}
    # With peepholes, LiteRT's integer kernel takes the number of outputs for that of cells.
    sizes = dict(sizes or {})
    sizes |= {"outputs": sizes.get("cells", 4)} if part.startswith("everything") else {}
    for name, shape in (first | lstm_shapes((*PARTS[part], *LSTM_AUXILIARY), **sizes)).items():
        dtype = TensorType.INT16 if name == "cell_state" else TensorType.INT8
        if name == "input":
            operands[name] = graph.add_input(name, shape, dtype)
        elif name.endswith("state"):
            operands[name] = graph.add_value(Value(name, dtype, shape))
            operands[name].is_variable = True
        else:
            operands[name] = graph.add_constant(name, integer_array(name, shape, random))
        integer_affine(name).give(operands[name])
    op = cls(**operands, **given)
    graph.append(op, "y")
    inner = [graph.add_value(Value(f"inner{i}", TensorType.INT16, (0,))) for i in range(5)]
    for value, affine in zip(inner, [*[Affine(0.002)] * 4, hidden], strict=True):
        affine.give(value)
    inner[4].dtype = TensorType.INT8
    op.intermediates = tuple(inner)
    integer_affine("output_state").give(op.output)
    graph.outputs = list(op.results)
    assert graph.model is not None
    return graph.model
