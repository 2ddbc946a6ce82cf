"""C forms of SVDF, RNN and GRU: see ``luciole/kernels/c/recurrent.h``."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from luciole.ir import Array, Op, UnsupportedError
from luciole.ir.analysis.fixed_point import quantize_multiplier
from luciole.ir.ops.activations import LIMITS
from luciole.ir.ops.gru import GATES, GRU, crossed
from luciole.ir.ops.rnn import RNN, UnidirectionalSequenceRNN
from luciole.ir.ops.svdf import SVDF
from luciole.kernels.portable.calls import CCall, Field, PortableContext
from luciole.kernels.portable.floats import limits
from luciole.kernels.portable.images import cut_off
from luciole.schema.enums import ActivationFunctionType as Activation

MOST_BYTES_SUMMED = 2**31 // (255 * 128)
"""Products of an INT8 step from zero and a weight whose sum fits into 32 bits."""


def _constants(op: Op, context: PortableContext, *computed: str) -> dict[str, Array]:
    operands = op.given_operands().items()
    return {name: context.constant(v) for name, v in operands if name not in computed}


def _floats(op: Op, context: PortableContext, *computed: str) -> dict[str, Array]:
    """Return constants by name. Raises UnsupportedError for those that are no floats."""
    constants = _constants(op, context, *computed)
    odd = [name for name, array in constants.items() if array.dtype != np.float32]
    if odd:
        raise UnsupportedError(f"{odd[0]} is {constants[odd[0]].dtype}: in C, float32 is needed")
    return constants


def _of_filters(op: SVDF, tables: Mapping[str, Array]) -> dict[str, Field]:
    units = op.results[0].dims[1]
    sizes = {"batches": op.input.dims[0], "inputs": op.input.dims[1], "units": units}
    weights: dict[str, Field] = {
        "feature": tables["weights_feature"],
        "time": tables["weights_time"],
        "bias": tables.get("bias"),
    }
    return {**sizes, "rank": op.rank_, "memory": op.weights_time.dims[1], **weights}


def float_svdf(op: SVDF, context: PortableContext) -> list[CCall]:
    """Call the layer of floats."""
    fields = _of_filters(op, _floats(op, context, "input", "state")) | cut_off(op.activation)
    return [CCall("luc_svdf_float", fields, (op.input, op.state), op.results)]


def integer_svdf(
    op: SVDF,
    context: PortableContext,
    into: np.float64,
    out: np.float64,
    zero_points: tuple[int, int],
) -> list[CCall]:
    """Call the layer of bytes, with the factors of its state and of its result."""
    if op.activation != Activation.RELU or op.input.dims[1] >= MOST_BYTES_SUMMED:
        raise UnsupportedError("an activation but RELU, or so many inputs, have no C form")
    fields = _of_filters(op, _constants(op, context, "input", "state"))
    for name, factor in (("state_", into), ("", out)):
        multiplier, shift = quantize_multiplier(factor)
        fields |= {f"{name}multiplier": int(multiplier), f"{name}shift": int(shift)}
    fields |= {"input_zero": zero_points[0], "result_zero": zero_points[1]}
    return [CCall("luc_svdf_int8", fields, (op.input, op.state), op.results)]


def rnn(op: RNN | UnidirectionalSequenceRNN, context: PortableContext) -> list[CCall]:
    """Call the layer of floats: of one step, or of several."""
    tables = _floats(op, context, "input", "hidden_state")
    is_tanh = op.activation == Activation.TANH
    if not is_tanh and op.activation not in LIMITS:
        raise UnsupportedError(f"fused activation {op.activation.name} has no C form")
    inputs, units, times, time, batch = op.input.dims[-1], op.hidden_state.dims[1], 1, 1, 1
    batches = op.hidden_state.dims[0]
    if isinstance(op, UnidirectionalSequenceRNN):
        times = op.input.dims[0 if op.time_major else 1]
        time, batch = (batches, 1) if op.time_major else (1, times)
    fields: dict[str, Field] = {"batches": batches, "times": times, "inputs": inputs}
    fields |= {"units": units, "x_time": time * inputs, "x_batch": batch * inputs}
    fields |= {"y_time": time * units, "y_batch": batch * units, "is_tanh": int(is_tanh)}
    fields |= limits(*LIMITS.get(op.activation, (-np.inf, np.inf)))
    fields |= {"weights": tables["weights"], "recurrent": tables["recurrent_weights"]}
    fields |= {"bias": tables["bias"]}
    return [CCall("luc_rnn_float", fields, (op.input, op.hidden_state), op.results)]


def gru(op: GRU, context: PortableContext) -> list[CCall]:
    """Call the layer of floats."""
    tables = _floats(op, context, "input", "state")
    (times, batches, inputs), units = op.input.dims, op.state.dims[1]
    names = ["hidden_hidden", "hidden_input"]
    if not crossed(op.hidden_hidden.shape, op.hidden_input.shape, inputs, units):
        names.reverse()
    fields: dict[str, Field] = {"times": times, "batches": batches, "inputs": inputs}
    fields |= {"units": units, "keeps_all": int(op.return_sequences)}
    for name, side in zip(names, ("input", "state"), strict=True):
        none = np.zeros(GATES * units, np.float32)
        fields |= {f"of_{side}": tables[name], f"{side}_bias": tables.get(f"{name}_bias", none)}
    return [CCall("luc_gru", fields, (op.input, op.state), op.results, 8 * units)]
