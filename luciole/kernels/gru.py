"""GRU kernels."""

from __future__ import annotations

import numpy as np

from luciole.ir import Array, LucioleError, TensorType
from luciole.ir.ops.gru import GATES, GRU, crossed
from luciole.kernels.arrays.logistic import logistic
from luciole.kernels.core.registry import reference
from luciole.kernels.portable.calls import portable
from luciole.kernels.recurrent import layers_in_c


@reference(GRU, TensorType.FLOAT32)
def gru(
    op: GRU,
    x: Array,
    hidden_hidden: Array,
    hidden_hidden_bias: Array | None,
    hidden_input: Array,
    hidden_input_bias: Array | None,
    state: Array,
) -> Array:
    """Run one step after the other. The state operand stays as it is."""
    for fault in op.verify():
        raise LucioleError(fault)
    pairs = [(hidden_hidden, hidden_hidden_bias), (hidden_input, hidden_input_bias)]
    if not crossed(hidden_hidden.shape, hidden_input.shape, x.shape[2], state.shape[1]):
        pairs.reverse()
    of_input, of_state = pairs
    states = np.empty((*x.shape[:2], state.shape[1]), np.float32)
    for t, now in enumerate(x):
        a, b = (_gates(*of_input, now), _gates(*of_state, state))
        update, reset = logistic(a[0] + b[0]), logistic(a[1] + b[1])
        candidate = np.tanh(a[2] + reset * b[2])
        states[t] = state = update * state + (1 - update) * candidate
    return states if op.return_sequences else state[None].copy()


def _gates(weights: Array, bias: Array | None, x: Array) -> list[Array]:
    """Multiply x by the weights of each gate."""
    y = x @ weights.T
    return np.split(y if bias is None else y + bias, GATES, axis=1)


portable(GRU, TensorType.FLOAT32)(layers_in_c.gru)
