"""LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM kernels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from luciole.ir import Array, LucioleError, TensorType
from luciole.ir.ops.unidirectional_sequence_lstm import LSTM, LSTMLayer, UnidirectionalSequenceLSTM
from luciole.ir.recurrent import GATES
from luciole.kernels.core.contract import Built, Context, NativeStep
from luciole.kernels.core.memory import Memory, reach, turns
from luciole.kernels.core.reasons import Declined, accepted
from luciole.kernels.core.registry import native, reference
from luciole.kernels.elements import strided
from luciole.kernels.jit import LANES
from luciole.kernels.layers.int8.hybrid_layer import WIDE_SUMS, may_overflow
from luciole.kernels.portable.calls import portable
from luciole.kernels.recurrent import hybrid_lstm_steps, lstm_steps
from luciole.kernels.recurrent.integer_lstm_cell import IntegerCell
from luciole.kernels.recurrent.integer_lstm_layer import IntegerLSTM
from luciole.kernels.recurrent.lstm_cell import Cell, Settings, Step, run
from luciole.kernels.recurrent.lstm_in_c import STATES, float_lstm
from luciole.kernels.recurrent.lstm_in_c import integer_lstm as integer_lstm_in_c
from luciole.kernels.recurrent.operands import Arrays, named, named_weights
from luciole.schema.enums import ActivationFunctionType

FLOAT32, INT8, INT16, INT32 = (
    TensorType.FLOAT32,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
)


@reference(LSTM, FLOAT32)
def lstm(op: LSTM, *operands: Array | None) -> Array:
    """Run one step; the two state operands are overwritten."""
    arrays = _given(op, operands)
    step = _cell(op, arrays, op.asymmetric_quantize_inputs).step
    return run(step, arrays["input"][None], *_states(arrays)).squeeze(0)


@reference(UnidirectionalSequenceLSTM, FLOAT32)
def sequence_lstm(op: UnidirectionalSequenceLSTM, *operands: Array | None) -> Array:
    """Run one step after the other; the two state operands are overwritten with the last step's."""
    arrays = named(op, operands)
    return _sequence(op, arrays, _cell(op, arrays, op.asymmetric_quantize_inputs).step)


def _integer_signatures() -> set[tuple[TensorType, ...]]:
    """Return the types of input, biases of three or four gates and of a projection or none, states,
    and coefficients for as many gates or none.
    """
    return {
        (INT8, *[INT32] * (gates + projected), INT8, INT16, *[INT16] * (gates * norms))
        for gates, projected, norms in product((3, 4), (0, 1), (0, 1))
    }


@reference(LSTM, *_integer_signatures())
def integer_lstm(op: LSTM, *operands: Array | None) -> Array:
    """Run one step in integers; the two state operands are overwritten."""
    arrays = _given(op, operands)
    step = IntegerCell(op, arrays).step
    return run(step, arrays["input"][None], *_states(arrays)).squeeze(0)


@reference(UnidirectionalSequenceLSTM, *_integer_signatures())
def integer_sequence_lstm(op: UnidirectionalSequenceLSTM, *operands: Array | None) -> Array:
    """Run one step after the other in integers; the two state operands are overwritten with the
    last step's.
    """
    arrays = named(op, operands)
    return _sequence(op, arrays, IntegerCell(op, arrays).step)


def _given(op: LSTM, operands: Sequence[Array | None]) -> dict[str, Array]:
    for fault in op.verify():
        raise LucioleError(fault)
    return named(op, operands)


def _sequence(op: UnidirectionalSequenceLSTM, arrays: Arrays, step: Step) -> Array:
    x = arrays["input"]
    steps = x if op.time_major else x.swapaxes(0, 1)
    result = run(step, steps, *_states(arrays))
    return result if op.time_major else np.ascontiguousarray(result.swapaxes(0, 1))


def _states(arrays: Arrays) -> tuple[Array, Array]:
    return arrays["output_state"], arrays["cell_state"]


def _cell(op: LSTMLayer, arrays: Arrays, asymmetric: bool) -> Cell:
    settings = Settings(op.activation, op.cell_clip, op.proj_clip)
    return Cell(settings, arrays, named_weights(op, arrays, asymmetric))


@native(LSTM, *_integer_signatures())
def build_integer_step(op: LSTM, context: Context) -> Built:
    """Build one step in integers."""
    x, y = named(op, context.operands)["input"], context.results[0]
    return _integer_layer(op, context, x[None], y[None])


@native(UnidirectionalSequenceLSTM, *_integer_signatures())
def build_integer(op: UnidirectionalSequenceLSTM, context: Context) -> Built:
    """Build the loop over time in integers."""
    x, y = named(op, context.operands)["input"], context.results[0]
    if not op.time_major:
        x, y = x.swapaxes(0, 1), y.swapaxes(0, 1)
    return _integer_layer(op, context, x, y)


def _integer_layer(op: LSTMLayer, context: Context, x: Array, y: Array) -> Built:
    """Build the steps of [time, batch, ...]: of constant weights, and where the reference runs."""
    values, arrays = op.given_operands(), named(op, context.operands)
    constant = all(v.is_constant for n, v in values.items() if n not in {"input", *STATES})
    if not constant or any(op.verify()):
        return None
    cell = accepted(IntegerCell, op, arrays)
    return cell if isinstance(cell, Declined) else IntegerLSTM(cell, arrays, x, y).step()


PLAIN = tuple(
    [f"{kind}_to_{gate}_weights" for kind in ("input", "recurrent") for gate in GATES]
    + [f"{gate}_gate_bias" for gate in GATES]
)

for _cls in (LSTM, UnidirectionalSequenceLSTM):
    portable(_cls, FLOAT32)(float_lstm)
    portable(_cls, *_integer_signatures())(integer_lstm_in_c)


@native(UnidirectionalSequenceLSTM, TensorType.FLOAT32)
def build(op: UnidirectionalSequenceLSTM, context: Context) -> Built:
    """Build layers with an input gate and TANH, constant weights, floats or bytes, and no optional
    operand.
    """
    arrays = named(op, context.operands)
    constant = all(value.is_constant for n, value in op.given_operands().items() if n in PLAIN)
    plain = arrays.keys() == {"input", *STATES, *PLAIN}
    matrices = plain and all(arrays[n].ndim == 2 for n in PLAIN[:8])
    if not (constant and matrices) or op.activation != ActivationFunctionType.TANH:
        return None
    kinds = {arrays[n].dtype for n in PLAIN[:8]}
    if kinds == {np.dtype(np.int8)}:
        return _hybrid(op, arrays, context.results[0])
    return _step(op, arrays, context.results[0]) if kinds == {np.dtype(np.float32)} else None


def _step(op: UnidirectionalSequenceLSTM, arrays: Arrays, y: Array) -> NativeStep:
    """Join input and recurrent weights: both are multiplied in one loop."""
    both = [np.hstack([arrays[i], arrays[r]]) for i, r in zip(PLAIN[:4], PLAIN[4:8], strict=True)]
    weights, memory = lstm_steps.packed(both), Memory()
    fields = _fields(op, arrays, y, memory)
    record = lstm_steps.LSTMRecord(**fields, weights=memory.keep(weights, *weights.shape))
    return strided.step(lstm_steps.kernel(), record, weights.size * fields["times"], memory)


def _hybrid(op: UnidirectionalSequenceLSTM, arrays: Arrays, y: Array) -> Built:
    """Keep input and recurrent weights apart: what they are multiplied by is on two grids."""
    asymmetric, memory = op.asymmetric_quantize_inputs, Memory()
    weights = accepted(named_weights, op, arrays, asymmetric)
    if isinstance(weights, Declined):
        return weights
    if may_overflow(max(arrays[n].shape[1] for n in PLAIN[:8]), asymmetric=asymmetric):
        return WIDE_SUMS
    sides = []
    for names in (PLAIN[:4], PLAIN[4:8]):
        scales = [scale for n in names if (scale := weights[n].scale) is not None]
        sides.append(hybrid_lstm_steps.side([arrays[n] for n in names], scales, memory))
    record = hybrid_lstm_steps.HybridRecord(
        **_fields(op, arrays, y, memory),
        sides=memory.table(sides, hybrid_lstm_steps.SideRecord),
        gates=memory.scratch(lstm_steps.GATES, LANES),
        zeros=memory.scratch(lstm_steps.GATES, LANES),
    )
    return memory.step(hybrid_lstm_steps.kernel(int(asymmetric)).address, record)


def _fields(
    op: UnidirectionalSequenceLSTM, arrays: Arrays, y: Array, memory: Memory
) -> dict[str, Any]:
    """Return the addresses and extents of a layer's operands, result and biases."""
    biases = lstm_steps.packed([arrays[n][:, None] for n in PLAIN[8:]])
    x, states = arrays["input"], [arrays[n] for n in STATES]
    time, batch = (0, 1) if op.time_major else (1, 0)
    times, batches, inputs, cells = x.shape[time], x.shape[batch], x.shape[2], states[0].shape[1]
    blocks = -(-cells // LANES)
    given_steps, steps = ([array.strides[axis] for axis in (time, batch)] for array in (x, y))
    output_state, cell_state = (reach(state, 4 * cells * batches) for state in states)
    fields = lstm_steps.LSTMFields(
        begin=0,
        end=batches,
        y=reach(y, 4 * cells, turns(times, steps[0]), turns(batches, steps[1])),
        x=reach(x, 4 * inputs, turns(times, given_steps[0]), turns(batches, given_steps[1])),
        output_state=output_state,
        cell_state=cell_state,
        biases=memory.keep(biases, blocks, 1, lstm_steps.GATES, LANES),
        times=times,
        inputs=inputs,
        cells=cells,
        x_time=given_steps[0],
        x_batch=given_steps[1],
        y_time=steps[0],
        y_batch=steps[1],
        limit=op.cell_clip if op.cell_clip > 0 else float("inf"),
    )
    return fields.fields()
