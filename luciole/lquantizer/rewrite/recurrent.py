"""Let recurrent layers compute with integers: INT8 between steps, INT16 in the cells (TFLite's
8x8_16 kernels).
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np

from luciole.ir import Array, Graph, Op, TensorType, Value
from luciole.ir.dtypes import limits_of
from luciole.ir.ops.quantize import Quantize
from luciole.ir.ops.unidirectional_sequence_lstm import LSTMLayer
from luciole.ir.passes.fuse_quantization import integers_behind
from luciole.ir.quantization import Affine
from luciole.ir.recurrent import GATES, WEIGHTS

INT8, INT16, INT32 = TensorType.INT8, TensorType.INT16, TensorType.INT32

CELL_BITS = (-15, -9)
"""Exponents of the scales that kernels take for cells."""
GATE = Affine.single(2.0**-12, 0, INT16)
"""A gate before its activation, where that is not normalized."""
NORM = 2.0**-10
"""The step of a bias behind a normalization, in steps of its coefficients."""


def scale_of_cells(low: float, high: float) -> Affine:
    """Choose the scale of cells, a power of two, by their range."""
    reach = max(-low, high, 2.0**-32)
    exponent = np.clip(np.ceil(np.log2(reach / 2**15)), *CELL_BITS)
    return Affine.single(float(2.0**exponent), 0, INT16)


def symmetric(peak: float, dtype: TensorType) -> Affine:
    """Choose the scale of integers around 0 that reach as far as ``peak``; 1 for nothing."""
    codes = limits_of(dtype)
    return Affine.single(peak / codes[1] or 1.0, 0, dtype)


def is_matrix(op: Op, slot: int) -> bool:
    """Check whether an operand of a recurrent layer is one of the matrices that INT8 may hold."""
    return op.operands[slot] is not None and op.operand_field(slot).dtypes == WEIGHTS


def prepare_layer(
    graph: Graph, op: LSTMLayer, cells: Affine, between: Mapping[str, Affine]
) -> None:
    """Enter the scales of a layer's ``cells`` and of the tensors ``between`` its parts: of each
    gate that is normalized, and of the "hidden" output. It goes on computing with floats, its
    matrices rounded to INT8.
    """
    op.cell_state.quantization = cells.table()
    names = (*GATES, "hidden")
    op.intermediates = tuple(_intermediate(graph, op, n, between.get(n, GATE)) for n in names)
    for slot in [slot for slot, _ in enumerate(op.operands) if is_matrix(op, slot)]:
        value = op.required(slot)
        affine = _steps_of(value.contents, INT8)
        real = affine.decode(affine.encode(value.contents)).astype(np.float32)
        op.set_operand(slot, graph.add_constant(graph.unique_name(f"{value.name}/rounded"), real))


def _intermediate(graph: Graph, op: Op, name: str, affine: Affine) -> Value:
    value = graph.add_value(Value(graph.unique_name(f"{op.name}/{name}"), affine.dtype, (0,)))
    value.quantization = affine.table()
    return value


def encode_layers(graph: Graph, chosen: Container[Op]) -> None:
    """Give chosen layers that were prepared, and stand between DEQUANTIZE and QUANTIZE, integers
    for constants and states; others forget that they were.
    """
    for op in [one for one in graph.ops if isinstance(one, LSTMLayer) and one.intermediates]:
        before, behind = integers_behind(op.input), _only_quantize(op.output)
        if op not in chosen or before is None or behind is None:
            op.intermediates, op.cell_state.quantization = (), None
        elif op.input.dtype == TensorType.FLOAT32:
            _encode(graph, op, Affine.of(before, "the input"), Affine.of(behind, "the result"))


def _only_quantize(result: Value) -> Value | None:
    """Find the integers that are all that is made of a result."""
    readers = [use.op for use in result.users]
    if result.is_output or len(readers) != 1 or not isinstance(readers[0], Quantize):
        return None
    return readers[0].output


def _encode(graph: Graph, op: LSTMLayer, input_affine: Affine, result: Affine) -> None:
    affines = _constants(op, input_affine, Affine.of(op.intermediates[-1], "the hidden output"))
    for slot, (name, value) in enumerate(op.named_operands()):
        if value is not None and name in affines:
            _store(graph, op, slot, value, affines[name])
    op.output_state.dtype, op.output_state.quantization = INT8, result.table()
    op.cell_state.dtype = INT16


def _store(graph: Graph, op: Op, slot: int, value: Value, affine: Affine) -> None:
    codes = affine.encode(value.contents)
    constant = graph.add_constant(graph.unique_name(f"{value.name}/integers"), codes, affine.dtype)
    constant.quantization = affine.table()
    op.set_operand(slot, constant)


def _constants(op: LSTMLayer, input_affine: Affine, hidden: Affine) -> dict[str, Affine]:
    """Return the affine parameters of each constant."""
    arrays = {name: v.data for name, v in op.given_operands().items() if v.data is not None}
    affines = {name: _steps_of(data, _type_of(name)) for name, data in arrays.items()}
    for gate in GATES:
        name, norm = f"{gate}_gate_bias", f"{gate}_layer_norm_coefficients"
        if norm in affines:
            affines[name] = _times(NORM, affines[norm])
        elif name in affines:
            affines[name] = _times(
                float(input_affine.scale[0]), affines[f"input_to_{gate}_weights"]
            )
    if "projection_bias" in affines:
        affines["projection_bias"] = _times(float(hidden.scale[0]), affines["projection_weights"])
    return affines


def _type_of(name: str) -> TensorType:
    """Return the element type of a constant that is no bias."""
    is_short = name.startswith("cell_to_") or name.endswith("coefficients")
    return INT16 if is_short else INT8


def _steps_of(data: Array, dtype: TensorType) -> Affine:
    return symmetric(float(np.abs(data).max(initial=0)), dtype)


def _times(factor: float, other: Affine) -> Affine:
    return Affine.single(factor * float(other.scale[0]), 0, INT32)
