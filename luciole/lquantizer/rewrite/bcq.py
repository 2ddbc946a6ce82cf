"""Put learned weight levels into a model in ONE's own form: a dense layer becomes
BCQ_FULLY_CONNECTED, its input stays as it is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from luciole.ir import Array, Graph, Op, Value, learned_levels
from luciole.ir.learned_levels import WORD
from luciole.ir.ops.bcq_fully_connected import BCQFullyConnected
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.pad import Pad
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.transpose import Transpose
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.rewrite.learned_levels import nearest_codes


def replace_layer_bcq(
    op: FullyConnected,
    weight_basis: NDArray[np.float64],
    weight_codes: NDArray[np.intp] | None = None,
    bias: Array | None = None,
) -> tuple[BCQFullyConnected, Value]:
    """Replace a dense layer by one with the learned weight basis [o, k].

    The new operator takes columns, so it stands between two TRANSPOSE; a row that is not whole
    words of 32 gets zeros behind its inputs (PAD), and RESHAPE goes from and to other ranks than 2.
    ``weight_codes`` [o, n] are code numbers (else each weight takes its nearest level), ``bias``
    [o] replaces the layer's own. Returns the operator and the tensor that took the old result's
    place and name. Raises QuantizeError, before anything is changed, when the result's shape is
    open along several axes.
    """
    graph, weights = op.own_graph, op.weights.contents
    extents = _extents(op)
    scales = weight_basis.astype(np.float32)
    code = nearest_codes(weights, scales) if weight_codes is None else weight_codes
    before = _Before(graph, op)
    new = BCQFullyConnected(
        _columns(before, weights.shape[1]),
        before.constant("weights_scales", np.ascontiguousarray(scales.T).reshape(-1)),
        before.constant("weights_binary", _by_plane(learned_levels.planes(code, scales.shape[1]))),
        before.flat_bias() if bias is None else before.constant("bias", bias.astype(np.float32)),
        before.constant("weights_clusters", np.array([scales.shape[::-1]], np.int32)),
        weights_hidden_size=-(-weights.shape[1] // WORD) * WORD,
        activation=op.activation,
    )
    before.add("bcq", new)
    result = before.transposed("rows_of_result", new.output)
    if len(op.output.shape) != 2:
        result = before.reshaped("shaped", result, extents)
    name = op.name
    op.output.replace_with(result)
    graph.remove(op)
    result.name = name
    return new, result


class _Before:
    """Adds operators and constants right before a layer, under names made from its name."""

    def __init__(self, graph: Graph, op: FullyConnected) -> None:
        self.graph, self.op = graph, op

    def _name(self, what: str) -> str:
        return self.graph.unique_name(f"{self.op.name}/{what}")

    def constant(self, what: str, array: Array) -> Value:
        return self.graph.add_constant(self._name(what), array)

    def flat_bias(self) -> Value | None:
        """Shape the layer's bias as [o]: FULLY_CONNECTED takes any shape with o elements."""
        bias = self.op.bias
        data = None if bias is None else bias.data
        if data is None or data.ndim == 1:
            return bias
        return self.constant("bias", data.reshape(-1))

    def add(self, what: str, new: Op) -> Value:
        return self.graph.insert_before(self.op, new, self._name(what)).output

    def transposed(self, what: str, value: Value) -> Value:
        perm = self.constant(f"{what}/perm", np.array([1, 0], np.int32))
        return self.add(what, Transpose(value, perm))

    def reshaped(self, what: str, value: Value, extents: tuple[int, ...]) -> Value:
        shape = self.constant(f"{what}/shape", np.array(extents, np.int32))
        return self.add(what, Reshape(value, shape, new_shape=extents))

    def padded(self, what: str, value: Value, columns: int) -> Value:
        paddings = np.array([[0, 0], [0, columns]], np.int32)
        return self.add(what, Pad(value, self.constant(f"{what}/paddings", paddings)))


def _columns(before: _Before, n: int) -> Value:
    """Shape the layer's input as columns of n, padded with zeros to whole words."""
    rows = before.op.input
    if len(rows.shape) != 2 or rows.shape[1] != n:
        rows = before.reshaped("rows", rows, (-1, n))
    if n % WORD:
        rows = before.padded("padded", rows, -n % WORD)
    return before.transposed("columns", rows)


def _extents(op: FullyConnected) -> tuple[int, ...]:
    """Return the shape that rows of results are reshaped to, -1 for the extent that is unknown."""
    shape = op.output.shape
    if sum(n is None for n in shape) > 1:
        open_axes = ", ".join(str(i) for i, n in enumerate(shape) if n is None)
        raise QuantizeError(
            f"{op}: the extents of axes {open_axes} are unknown, BCQ_FULLY_CONNECTED can keep one "
            "such axis: give the model a fixed input shape"
        )
    return tuple(-1 if n is None else n for n in shape)


def _by_plane(planes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Lay bits [o, k, words] as one cluster [k * o, words]: plane 0 of all rows, then
    plane 1, ...
    """
    return np.ascontiguousarray(planes.transpose(1, 0, 2)).reshape(-1, planes.shape[-1])
