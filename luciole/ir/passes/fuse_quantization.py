"""Let operators compute with integers: DEQUANTIZE, an operator on floats and QUANTIZE become the
operator on integers.

The form before is how quantization is written between operators (Jacob et al. 2018, "Quantization
and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference", figure 1.1b); the
form behind is what runs (figure 1.1a).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from luciole.ir.analysis.bias_steps import steps_of_bias
from luciole.ir.blockwise import blocks_of
from luciole.ir.graph import Graph
from luciole.ir.moved_codes import misplaced
from luciole.ir.op import Op
from luciole.ir.ops.elementwise_binary import Add, Sub
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.quantization import Affine
from luciole.ir.value import Value
from luciole.schema.enums import TensorType

Runs = Callable[[Op], bool]
"""Whether an operator has a kernel for its operands as they are."""


def fuse_quantization(graph: Graph, runs: Runs) -> bool:
    """Fuse DEQUANTIZE and QUANTIZE into the operators between them, which compute with integers
    where they ``runs`` on them, then drop the pairs that are left and change nothing.
    """
    changes = [_fuse(graph, op, runs) for op in list(graph.ops) if op.quant is not None]
    changes += [_meet(graph, op, runs) for op in list(graph.ops) if isinstance(op, Quantize)]
    return any(changes)


def fuse_weights(graph: Graph, runs: Runs) -> bool:
    """Drop the DEQUANTIZE between constant integer weights and layers that have a kernel for them
    under float inputs.
    """
    changes = [fuse_weights_of(op, runs) for op in list(graph.ops)]
    return any(changes)


def fuse_weights_of(op: Op, runs: Runs) -> bool:
    """Give a layer the constant integers behind its float weights, where it has a kernel for
    them under float inputs. A dense one rounds these with a zero point, as TFLite's converter has
    it: behind a RELU a grid around 0 would have half of its integers for nothing.
    """
    weights = op.given_operands().get(op.quant.stored or "") if op.quant is not None else None
    codes = None if weights is None else integers_behind(weights)
    if codes is None or not codes.is_constant or codes.dtype == TensorType.FLOAT16:
        return False
    types, slots = op.result_dtypes(), [codes if v is weights else v for v in op.operands]
    if not _reads(op, slots, lambda new: runs(new) and new.result_dtypes() == types):
        return False
    if isinstance(op, FullyConnected) and blocks_of(codes) is None:
        op.asymmetric_quantize_inputs = True
    raise_version(op)
    return True


def _fuse(graph: Graph, op: Op, runs: Runs) -> bool:
    if isinstance(op, Quantize | Dequantize) or op.stateful:
        return False
    slots = [_integer_operand(value) for value in op.operands]
    _encode_bias(graph, op, slots)
    quantizes = [_only_quantize(result) for result in op.results if _is_float(result)]
    if slots == list(op.operands) or any(_is_float(value) for value in slots):
        return False
    before, rounding = list(op.operands), [one for one in quantizes if one is not None]
    if len(rounding) < len(quantizes) or any(misplaced(op, slots, [q.output for q in rounding])):
        return False
    places = [place for place, result in enumerate(op.results) if _is_float(result)]
    types = [one.output.dtype for one in rounding]

    def runs_and_gives(new: Op) -> bool:
        return runs(new) and [new.result_dtypes()[place] for place in places] == types

    if _is_of_one(op, slots) or not _reads(op, slots, runs_and_gives):
        return False
    _keep_names(before, slots)
    floats = [op.results[place] for place in places]
    for result, quantize in zip(floats, rounding, strict=True):
        _take_over(graph, result, quantize)
    raise_version(op)
    return True


def _is_of_one(op: Op, slots: Sequence[Value | None]) -> bool:
    """Return whether a layer would have weights of 16 bits, which Samsung ONE's alone have."""
    named = dict(zip((name for name, _ in op.named_operands()), slots, strict=True))
    weights = named.get(op.quantized_as.weight or "")
    return weights is not None and weights.dtype == TensorType.INT16


def raise_version(op: Op) -> None:
    """Give an operator the first version that knows the element types that it reads; sums of 16
    bits do not take scales that happen to be powers of two for those of older kernels.
    """
    quant = op.quantized_as
    operands = op.given_operands()
    weights = operands.get(quant.stored or "")
    first = op.operands[0] if weights is None else operands.get(quant.input)
    types = [None if value is None else value.dtype for value in (first, weights)]
    if types[0] is not None:
        op.version = max(op.version, quant.since.of(types[0], types[1]))
    if isinstance(op, Add | Sub) and types[0] == TensorType.INT16:
        op.pot_scale_int16 = False


def _encode_bias(graph: Graph, op: Op, slots: list[Value | None]) -> None:
    """Bring a layer's float bias to steps of its input's scale times its weights' (TFLite's 8-bit
    quantization specification): INT32, or INT64 under inputs of 16 bits.
    """
    quant = op.quantized_as
    named = dict(zip((name for name, _ in op.named_operands()), slots, strict=True))
    bias, steps = named.get(quant.bias or ""), steps_of_bias(op, slots)
    if bias is None or bias.data is None or not _is_float(bias) or steps is None:
        return
    data = named.get(quant.input)
    wide = data is not None and data.dtype == TensorType.INT16
    affine = Affine.channels(
        steps, np.zeros(len(steps)), 0, TensorType.INT64 if wide else TensorType.INT32
    )
    codes = affine.encode(bias.data.reshape(-1).astype(np.float64))
    constant = graph.add_constant(graph.unique_name(f"{bias.name}/integers"), codes, affine.dtype)
    constant.quantization = affine.table()
    slots[slots.index(bias)] = constant


def _is_float(value: Value | None) -> bool:
    return value is not None and value.dtype == TensorType.FLOAT32


def _integer_operand(value: Value | None) -> Value | None:
    """Return the integers that a float operand is made of, any other operand as it is."""
    codes = integers_behind(value) if value is not None and _is_float(value) else None
    return value if codes is None else codes


def integers_behind(value: Value) -> Value | None:
    """Return the operand of the DEQUANTIZE that makes a tensor, None where none does."""
    producer = value.producer
    if producer is None or not isinstance(producer.op, Dequantize):
        return None
    return producer.op.input


def _only_quantize(value: Value) -> Quantize | None:
    """Find the QUANTIZE that alone reads a tensor, None where something else does."""
    if value.is_output or len(value.users) != 1:
        return None
    op = value.users[0].op
    return op if isinstance(op, Quantize) else None


def _reads(op: Op, slots: Sequence[Value | None], runs: Runs) -> bool:
    """Set an operator's operands, unless it then has no kernel."""
    before = op.operands
    op.set_operands(slots)
    if runs(op):
        return True
    op.set_operands(before)
    return False


def _keep_names(before: Sequence[Value | None], slots: Sequence[Value | None]) -> None:
    """Give encoded constants the names of the constants that they replace."""
    for old, new in zip(before, slots, strict=True):
        if (
            old is not None
            and new is not None
            and old.is_constant
            and old is not new
            and not old.users
        ):
            old.name, new.name = new.name, old.name


def _take_over(graph: Graph, result: Value, quantize: Quantize) -> None:
    """Turn a float result into the integers that a QUANTIZE makes of it, and drop the QUANTIZE."""
    integers = quantize.output
    if integers.is_output:
        result.name, integers.name = integers.name, result.name
    result.dtype, result.quantization = integers.dtype, integers.quantization
    integers.replace_with(result)
    graph.remove(quantize)


def _meet(graph: Graph, quantize: Quantize, runs: Runs) -> bool:
    """Drop the DEQUANTIZE in front of a QUANTIZE, and the QUANTIZE, too, where both sides have the
    same scale and zero point.
    """
    codes = integers_behind(quantize.input)
    if codes is None or codes.dtype == TensorType.FLOAT16:
        return False
    before, behind = Affine.given(codes), Affine.given(quantize.output)
    same = before is not None and behind is not None and before.same_numbers(behind)
    if not same or codes.dtype != quantize.output.dtype or quantize.output.is_output:
        return _reads(quantize, [codes], runs)
    quantize.output.replace_with(codes)
    graph.remove(quantize)
    return True
