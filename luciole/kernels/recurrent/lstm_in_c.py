"""C forms of long short-term memory, of floats and of bytes: see
``luciole/kernels/c/unidirectional_sequence_lstm.h``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from luciole.ir import Array, UnsupportedError
from luciole.ir.ops.activations import LIMITS
from luciole.ir.ops.unidirectional_sequence_lstm import LSTMLayer, UnidirectionalSequenceLSTM
from luciole.ir.recurrent import GATES
from luciole.kernels.portable.calls import CCall, Field, PortableContext
from luciole.kernels.portable.floats import limits
from luciole.kernels.recurrent.integer_lstm_cell import NORM_BITS, Factor, Gate, IntegerCell
from luciole.schema.enums import ActivationFunctionType as Activation

INPUT_GATE, *OTHERS = GATES
ORDER = (*OTHERS, INPUT_GATE)
"""Gates as C has them."""
STATES = ("output_state", "cell_state")
LARGEST = 2**31 - 1
MOST_SHIFT = 30


def _constants(op: LSTMLayer, context: PortableContext) -> dict[str, Array]:
    """Return all operands but the input and the states, by name. Raises UnsupportedError for
    computed ones.
    """
    operands = op.given_operands().items()
    return {name: context.constant(v) for name, v in operands if name not in {"input", *STATES}}


def _gates(constants: Mapping[str, Array]) -> Sequence[str]:
    return ORDER if "input_to_input_weights" in constants else ORDER[:-1]


def _extents(op: LSTMLayer, gates: int) -> dict[str, Field]:
    """Write sizes, and how far steps of time and batches are apart."""
    x, y = op.input.dims, op.results[0].dims
    *moving, inputs = x
    batches, times = moving[0], moving[1] if len(moving) > 1 else 1
    time, batch = 1, times
    if isinstance(op, UnidirectionalSequenceLSTM) and op.time_major:
        times, batches = moving
        time, batch = batches, 1
    sizes = {"inputs": inputs, "cells": op.cell_state.dims[1], "outputs": y[-1], "gates": gates}
    steps = {"x_time": time * inputs, "x_batch": batch * inputs}
    steps |= {"y_time": time * y[-1], "y_batch": batch * y[-1]}
    return {"batches": batches, "times": times, **sizes, **steps}


def _call(function: str, op: LSTMLayer, fields: dict[str, Field], scratch: int) -> list[CCall]:
    _check_extents(op, fields)
    reads = op.input, op.output_state, op.cell_state
    return [CCall(function, fields, reads, tuple(op.results), scratch + -scratch % 8)]


def _check_extents(op: LSTMLayer, fields: Mapping[str, Field]) -> None:
    """Raise UnsupportedError for tables and states of other shapes than a kernel walks."""
    cells, gates, outputs = op.cell_state.dims[1], fields["gates"], op.results[0].dims[-1]
    rows = gates, cells
    shapes: dict[str, tuple[object, ...]] = {
        "weights": (*rows, op.input.dims[-1]),
        "recurrent": (*rows, outputs),
        **dict.fromkeys(("biases", "peepholes", "norms", "norm_biases"), rows),
        "projection": (outputs, cells),
        "projection_bias": (outputs,),
    }
    tables = {n: held for n in shapes if isinstance(held := fields.get(n), np.ndarray)}
    states = op.output_state.dims[1] == outputs and (cells == outputs or "projection" in tables)
    batches = {op.output_state.dims[0], op.cell_state.dims[0]} == {fields["batches"]}
    odd = [name for name, table in tables.items() if table.shape != shapes[name]]
    if odd or not states or not batches:
        raise UnsupportedError(f"{odd[0] if odd else 'a state'} has a shape that C does not take")


def float_lstm(op: LSTMLayer, context: PortableContext) -> list[CCall]:
    """Call the layer of floats: with peepholes, normalization and projection or without."""
    constants = _constants(op, context)
    odd = [name for name, array in constants.items() if array.dtype != np.float32]
    if odd:
        raise UnsupportedError(f"{odd[0]} is {constants[odd[0]].dtype}: in C, float32 is needed")
    is_tanh = op.activation == Activation.TANH
    if not is_tanh and op.activation not in LIMITS:
        raise UnsupportedError(f"fused activation {op.activation.name} has no C form")
    gates = _gates(constants)
    extents = _extents(op, len(gates))
    fields: dict[str, Field] = {
        "is_tanh": int(is_tanh),
        **limits(*LIMITS.get(op.activation, (-np.inf, np.inf))),
        "cell_clip": max(op.cell_clip, 0.0),
        "output_clip": max(op.proj_clip, 0.0),
        "weights": _rows(constants, gates, "input_to_{}_weights"),
        "recurrent": _rows(constants, gates, "recurrent_to_{}_weights"),
        "biases": _rows(constants, gates, "{}_gate_bias"),
        "peepholes": _rows(constants, gates, "cell_to_{}_weights"),
        "norms": _rows(constants, gates, "{}_layer_norm_coefficients"),
        "projection": constants.get("projection_weights"),
        "projection_bias": constants.get("projection_bias"),
    }
    return _call("luc_lstm_float", op, extents | fields, 4 * 4 * op.cell_state.dims[1])


def _rows(constants: Mapping[str, Array], gates: Sequence[str], pattern: str) -> Array | None:
    """Stack an operand of all gates, zeros for those without; None where no gate has it. Diagonals
    become matrices. Raises UnsupportedError for normalization of some gates alone.
    """
    by_gate = {
        gate: constants[name] for gate in gates if (name := pattern.format(gate)) in constants
    }
    if not by_gate:
        return None
    if "norm" in pattern and len(by_gate) < len(gates):
        raise UnsupportedError("in C, all gates are normalized or none is")
    if "recurrent" in pattern:
        by_gate = {g: np.diag(array) if array.ndim == 1 else array for g, array in by_gate.items()}
    like = next(iter(by_gate.values()))
    if {array.shape for array in by_gate.values()} != {like.shape}:
        raise UnsupportedError(f"{pattern.format('...')} are not of the same shape")
    return np.stack([by_gate.get(gate, np.zeros_like(like)) for gate in gates])


def integer_lstm(op: LSTMLayer, context: PortableContext) -> list[CCall]:
    """Call the layer of bytes. Raises UnsupportedError where sums may leave 32 bits."""
    constants = _constants(op, context)
    cell, names = IntegerCell(op, constants), _gates(constants)
    by_name = dict(zip(ORDER, (cell.forget, cell.candidate, cell.output, cell.input), strict=True))
    gates = [gate for name in names if (gate := by_name[name]) is not None]
    fields = _extents(op, len(gates)) | _of_gates(gates) | _of_cells(cell) | _projection(cell)
    fields |= {
        "weights": _rows(constants, names, "input_to_{}_weights"),
        "recurrent": _rows(constants, names, "recurrent_to_{}_weights"),
        "peepholes": _rows(constants, names, "cell_to_{}_weights"),
        "norms": _rows(constants, names, "{}_layer_norm_coefficients"),
    }
    cells = op.cell_state.dims[1]
    return _call("luc_lstm_int8", op, fields, 4 * 4 * cells + cells)


def _of_gates(gates: Sequence[Gate]) -> dict[str, Field]:
    products = [product for gate in gates for product in (gate.input, gate.recurrent)]
    for product in products:
        _check_sums(np.atleast_2d(product.weights), product.bias)
    factors = [_pair(product.factor) for product in products]
    seen = [(0, 0) if gate.peephole is None else _pair(gate.peephole[1]) for gate in gates]
    norms = [gate.norm for gate in gates if gate.norm is not None]
    scaled = [(*_pair(norm.factor, NORM_BITS), norm.guard) for norm in norms]
    return {
        "input_zero": gates[0].input.zero,
        "state_zero": gates[0].recurrent.zero,
        "biases": np.stack([gate.input.bias for gate in gates]),
        "factors": np.array(factors),
        "peephole_factors": np.array(seen),
        "norm_biases": np.stack([norm.bias for norm in norms]) if norms else None,
        "norm_factors": np.array(scaled) if norms else None,
    }


def _of_cells(cell: IntegerCell) -> dict[str, Field]:
    clip, (multiplier, shift) = cell.cell_clip, _pair(cell.hidden_factor)
    return {
        "cell_bits": 15 + cell.cell_bits,
        "cell_least": -clip if clip > 0 else -(2**15),
        "cell_most": clip if clip > 0 else 2**15 - 1,
        "shown_multiplier": multiplier,
        "shown_shift": shift,
        "shown_zero": cell.hidden_zero,
        "zero": cell.zero,
    }


def _projection(cell: IntegerCell) -> dict[str, Field]:
    clip, projection = cell.proj_clip, cell.projection
    least: dict[str, Field] = {"least": -clip if clip > 0 else -128, "most": clip or 127}
    if clip < 0:
        least["most"] = 127
    if projection is None:
        return least | {"multiplier": 0, "shift": 0, "projection": None, "projection_bias": None}
    _check_sums(projection.weights, projection.bias)
    multiplier, shift = _pair(projection.factor)
    tables: dict[str, Field] = {
        "projection": projection.weights,
        "projection_bias": projection.bias,
    }
    return least | tables | {"multiplier": multiplier, "shift": shift}


def _pair(factor: Factor, extra: int = 0) -> tuple[int, int]:
    """Return multiplier and shift. Raises UnsupportedError for a shift beyond 32 bits."""
    shift = int(factor.shift) + extra
    if abs(shift) > MOST_SHIFT:
        raise UnsupportedError(f"scales make a factor of 2^{shift}: C takes up to 2^{MOST_SHIFT}")
    return int(factor.multiplier), shift


def _check_sums(weights: Array, bias: Array) -> None:
    """Raise UnsupportedError where sums may leave 32 bits."""
    most = 256 * np.abs(weights.astype(np.int64)).sum(1) + np.abs(bias.astype(np.int64))
    if most.max(initial=0) > LARGEST:
        raise UnsupportedError("its sums may leave 32 bits")
