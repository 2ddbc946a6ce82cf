"""Let operators on integers compute with floats between DEQUANTIZE and QUANTIZE, the opposite of
``fuse_quantization``.

What comes out is the simulated quantization of Jacob et al. 2018, "Quantization and Training of
Neural Networks for Efficient Integer-Arithmetic-Only Inference", figure 1.1b: every tensor is
rounded as before, and operators in between compute with real numbers.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from luciole.ir.analysis.bias_steps import steps_of_bias
from luciole.ir.graph import Graph
from luciole.ir.op import Op
from luciole.ir.ops.quantize import Dequantize, Quantize, version_of_dequantize
from luciole.ir.passes.fuse_quantization import Runs
from luciole.ir.quantization import ACTIVATIONS, affine_of, stored_parameters
from luciole.ir.value import Value
from luciole.schema.enums import TensorType

_CODES = (*ACTIVATIONS, TensorType.INT4)
"""Element types that DEQUANTIZE makes real numbers of."""


def split_quantization(graph: Graph, runs: Runs, kept: Container[Op] = ()) -> bool:
    """Put every operator that ``runs`` on floats between a DEQUANTIZE of its integers and a
    QUANTIZE of its floats; constant biases become real numbers. ``fuse_quantization`` gives the
    integers back, and ``fuse_weights`` those that layers read under a float input. Operators that
    are ``kept`` go on computing with integers.
    """
    reals: dict[Value, Value] = {}
    changed = [op for op in list(graph.ops) if op not in kept and op.quant and splits(op, runs)]
    for op in changed:
        split(graph, op, reals)
    return bool(changed)


def splits(op: Op, runs: Runs) -> bool:
    """Return whether an operator, whatever is known of its quantization, computes with integers and
    could do it with floats.
    """
    if op.stateful or not computes_with_integers(op) or _is_special(op):
        return False
    return _runs_on_floats(op, _bias(op), runs)


def computes_with_integers(op: Op) -> bool:
    """Check whether an operator reads or gives quantized integers, and does more than convert
    them.
    """
    if isinstance(op, Dequantize):
        return False
    values = op.operands if isinstance(op, Quantize) else (*op.operands, *op.results)
    return any(_holds_codes(value) for value in values)


def split(graph: Graph, op: Op, reals: dict[Value, Value]) -> None:
    """Put conversions around an operator that ``splits``, which computes with floats then;
    ``reals`` are told which floats stand for integers by now.
    """
    bias = _bias(op)
    for slot, value in enumerate(op.operands):
        if value is not None and value is bias:
            op.set_operand(slot, _real_bias(graph, op, value))
    for slot, value in enumerate(op.operands):
        if value is not None and _holds_codes(value):
            op.set_operand(slot, _real(graph, op, value, reals))
    if not isinstance(op, Quantize):
        for result in [value for value in op.results if _holds_codes(value)]:
            _round_result(graph, op, result)


def _holds_codes(value: Value | None) -> bool:
    return value is not None and value.dtype in _CODES and affine_of(value) is not None


def _is_special(op: Op) -> bool:
    """Check whether integers are stored or kept in ways that DEQUANTIZE does not know: sparsely, in
    a variable, or signed under the name UINT8 (in files from before TFLite had INT8).
    """
    operands = [value for value in op.operands if value is not None]
    under_float = bool(operands) and operands[0].dtype == TensorType.FLOAT32
    return any(
        value.sparsity is not None
        or value.is_variable
        or (
            under_float
            and value.dtype == TensorType.UINT8
            and not stored_parameters(value)[1].any()
        )
        for value in operands
        if value.is_constant or value.is_variable
    )


def _bias(op: Op) -> Value | None:
    """Find the constant bias of a layer that is one of integers, in steps that follow from its
    input's and its weights'.
    """
    name = None if op.quant is None else op.quant.bias
    bias = op.given_operands().get(name or "")
    wide = (TensorType.INT32, TensorType.INT64)
    if bias is None or bias.dtype not in wide or bias.data is None:
        return None
    return None if steps_of_bias(op, op.operands) is None else bias


def _runs_on_floats(op: Op, bias: Value | None, runs: Runs) -> bool:
    """Check whether an operator has a kernel for real numbers in place of its integers, whose
    results are real numbers in their place and all else as it is.
    """
    floats = [
        Value(v.name, TensorType.FLOAT32, v.shape)
        if v is not None and (_holds_codes(v) or v is bias)
        else v
        for v in op.operands
    ]
    twin = op.clone(floats)
    types = tuple(TensorType.FLOAT32 if _holds_codes(v) else v.dtype for v in op.results)
    has_kernel = runs(twin) and (isinstance(op, Quantize) or twin.result_dtypes() == types)
    twin.set_operands([])  # so that no tensor is used by it any more
    return has_kernel


def _real_bias(graph: Graph, op: Op, bias: Value) -> Value:
    """Make a constant of the numbers that a bias stands for, in the steps that kernels take."""
    steps = steps_of_bias(op, op.operands)
    assert steps is not None, "it was looked at"
    real = (bias.contents.reshape(-1) * steps.astype(np.float64)).astype(np.float32)
    name = bias.name
    constant = graph.add_constant(graph.unique_name(f"{name}/real"), real.reshape(bias.dims))
    if len(bias.users) == 1:
        bias.name, constant.name = constant.name, name
    return constant


def _real(graph: Graph, op: Op, value: Value, reals: dict[Value, Value]) -> Value:
    """Find or insert the DEQUANTIZE of a tensor, in front of the first operator that reads it."""
    if value not in reals:
        dequantize = Dequantize(value)
        dequantize.version = version_of_dequantize(
            value.dtype, len(stored_parameters(value)[0]) > 1
        )
        graph.insert_before(op, dequantize, graph.unique_name(f"{value.name}/real"))
        reals[value] = dequantize.output
    return reals[value]


def _round_result(graph: Graph, op: Op, result: Value) -> None:
    """Put a QUANTIZE between an operator, whose result becomes float, and the users of its
    integers. The float result keeps the name, unless it was an output's.
    """
    users, is_output, name = list(result.users), result.is_output, result.name
    quantize = Quantize(result)
    graph.insert_after(op, quantize, graph.unique_name(f"{name}/integers"))
    integers = quantize.output
    integers.dtype, integers.quantization = result.dtype, result.quantization
    result.dtype, result.quantization = TensorType.FLOAT32, None
    for user, slot in users:
        user.set_operand(slot, integers)
    if is_output:
        graph.outputs = [integers if v is result else v for v in graph.outputs]
        graph.rename_in_signatures(result, integers)
        result.name, integers.name = integers.name, name
