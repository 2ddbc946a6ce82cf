"""Finish a graph once all nodes are imported."""

from __future__ import annotations

from collections.abc import Mapping, Set

import numpy as np

from luciole.importers.computing import computing
from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.analysis.poles import refused_pole
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.depthwise_conv_2d import DepthwiseConv2D
from luciole.ir.ops.elementwise_binary import Add, Div, Maximum, Minimum
from luciole.ir.ops.elementwise_unary import Round
from luciole.ir.ops.pad import Pad
from luciole.ir.ops.pool_2d import AveragePool2D, MaxPool2D
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.transpose import Transpose
from luciole.ir.passes import run_passes
from luciole.ir.passes.cleaning.remove_dead import remove_dead, remove_dead_buffers
from luciole.ir.passes.composites.fuse_gelu import fuse_gelu
from luciole.ir.passes.folding.fuse_activation_function import fuse_activation_function
from luciole.ir.passes.folding.fuse_batch_norm import fuse_batch_norm, fuse_biases
from luciole.ir.passes.fuse_quantization import (
    fuse_quantization,
    integers_behind,
    raise_version,
)
from luciole.ir.passes.layout.sink_transposes import MOVED, sink_transposes
from luciole.ir.passes.registry import canonical_passes
from luciole.ir.quant import Fixed
from luciole.ir.quantization import Affine
from luciole.schema.enums import Padding

_FROM_UINT8 = 128
"""Difference between the codes of UINT8 and of INT8."""


def finish(model: Model, is_ours: bool) -> None:
    """Bring all graphs into the canonical form, and let operators between DEQUANTIZE and QUANTIZE
    compute with integers. Files of our own have the form that they were written from: they mean
    AVERAGE_POOL_2D by means, all others round halves to even; and of batch normalizations they have
    what is not to be fused.
    """
    fuse = fuse_biases if is_ours else fuse_batch_norm
    forms = (fuse_gelu,) if is_ours else canonical_passes(computing().evaluate)
    for graph in model.graphs:
        run_passes(graph, (sink_transposes, fuse, *forms, fuse_activation_function, remove_dead))
        if any(isinstance(op, Dequantize | Quantize) for op in graph.ops):
            _quantize(graph)
            pools = [op for op in graph.ops if isinstance(op, AveragePool2D) and not is_ours]
            for pool in pools:
                _filter_means(graph, pool)
    remove_dead_buffers(model)


def keep_names(graph: Graph, made: Mapping[str, str]) -> None:
    """Give values the names that the file has for them: the last one on the way to a node's result
    is what the file calls so, once the TRANSPOSE behind it is gone. ``made`` says of names that no
    file has to which result they lead.
    """
    taken = {value.name for value in graph.values}
    for value in (v for op in reversed(graph.ops) for v in op.results):
        name = value.name
        while name in made or name.endswith(MOVED):
            name = made.get(name, name.removesuffix(MOVED))
        if name not in taken:
            value.name = name
            taken.add(name)


def keep_constants(graph: Graph, names: Set[str]) -> None:
    """Give constants that passes made of ones of the file, which are gone, the names of these."""
    taken = {value.name for value in graph.values}
    for value in graph.values:
        name = value.name.rpartition("_")[0]
        if value.is_constant and value.name not in names and name in names and name not in taken:
            value.name = name
            taken.add(name)


def keep_halves(graph: Graph) -> None:
    """Store constants of several numbers with 16 bits where these hold all of them, and DEQUANTIZE
    them: what passes computed keeps 32.
    """
    for value in [v for v in graph.values if v.dtype == TensorType.FLOAT32 and not v.is_output]:
        data, readers = value.data, [use.op for use in value.users]
        if data is None or data.size < 2 or not data.any() or not readers:
            continue
        with np.errstate(over="ignore"):
            short = data.astype(np.float16)
        if not np.array_equal(short, data, equal_nan=True):
            continue
        first = min(readers, key=graph.ops.index)
        stored = graph.add_constant(graph.unique_name(f"{value.name}/half"), short)
        name = graph.unique_name(f"{value.name}/real")
        value.replace_with(graph.insert_before(first, Dequantize(stored), name).output)
        graph.remove_value(value)
        stored.name = value.name


def keep_biases(graph: Graph, biases: Mapping[str, tuple[Array, Affine]]) -> None:
    """Give biases the codes that the file has, which were floats meanwhile, by their names."""
    for value in graph.values:
        present = Affine.given(value) if value.dtype == TensorType.INT32 else None
        if present is None or value.name not in biases:
            continue
        codes, affine = biases[value.name]
        if present.same_numbers(affine):
            value.make_constant(codes, TensorType.INT32)


def _quantize(graph: Graph) -> None:
    _hoist_all(graph, (Transpose,))
    for value in list(graph.values):
        _sign(graph, value)
    _hoist_all(graph, (Transpose, Reshape, Pad, MaxPool2D))
    fuse_quantization(graph, _runs)
    remove_dead(graph)
    for op in list(graph.ops):
        if isinstance(op, Quantize):
            _round_exactly(graph, op)


def _filter_means(graph: Graph, op: AveragePool2D) -> None:
    """Compute means of an even number of codes with a filter of ones, since many means lie halfway
    between two codes: ONNX rounds these to even, as LiteRT's convolutions do unless its reference
    kernels are asked for, and AVERAGE_POOL_2D away from 0.
    """
    affine, channels = Affine.given(op.value), op.value.shape[-1]
    count = op.filter_height * op.filter_width
    odd = count % 2 == 1 or op.padding != Padding.VALID
    if affine is None or affine.dtype != TensorType.INT8 or odd or channels is None:
        return
    share = Affine.single(1 / count, 0, TensorType.INT8)
    steps = Affine.single(float(share.scale[0] * affine.scale[0]), 0, TensorType.INT32)
    ones = np.ones((1, op.filter_height, op.filter_width, channels), np.int8)
    filter = _constant(graph, f"{op.output.name}/ones", ones, share)
    bias = _constant(graph, f"{op.output.name}/bias", np.zeros(channels, np.int32), steps)
    layer = DepthwiseConv2D(
        op.value,
        filter,
        bias,
        padding=op.padding,
        stride_h=op.stride_h,
        stride_w=op.stride_w,
        depth_multiplier=1,
        activation=op.activation,
    )
    raise_version(layer)
    _put(graph, op, layer)


def _constant(graph: Graph, name: str, codes: Array, affine: Affine) -> Value:
    value = graph.add_constant(graph.unique_name(name), codes, affine.dtype)
    value.quantization = affine.table()
    return value


def _put(graph: Graph, op: Op, layer: Op) -> None:
    """Put an operator in another's place, whose result it computes."""
    result, name = op.output, op.output.name
    made = graph.add_value(Value(graph.unique_name(name), result.dtype, result.shape))
    made.quantization = result.quantization
    graph.insert_before(op, layer, results=[made])
    result.replace_with(made)
    graph.remove(op)
    made.name = name


def _hoist_all(graph: Graph, kinds: tuple[type[Op], ...]) -> None:
    for op in list(graph.ops):
        if isinstance(op, kinds):
            _hoist(graph, op)
    remove_dead(graph)


def _hoist(graph: Graph, op: Op) -> None:
    """Put an operator that moves or picks elements before the DEQUANTIZE that it reads, a TRANSPOSE
    before the QUANTIZE in front, too: a layer behind it is to read the DEQUANTIZE itself. PAD puts
    the code of 0 around integers.
    """
    before = op.operands[0]
    assert before is not None, "such operators have an operand"
    step = before.producer.op if before.producer is not None else None
    passed = Dequantize | Quantize if isinstance(op, Transpose) else Dequantize
    if not isinstance(step, passed) or op.output.is_output:
        return
    assert isinstance(step, Dequantize | Quantize), "it is one of them"
    if isinstance(op, Reshape | MaxPool2D) and (_is_rounded(op) or not _has_one_grid(step)):
        return
    moved = op.clone([step.input, *op.operands[1:]])
    graph.insert_before(op, moved, graph.unique_name(f"{step.input.name}/moved"))
    moved.output.quantization = step.input.quantization
    result = graph.add_value(Value(graph.unique_name(op.output.name), op.output.dtype))
    result.shape, result.quantization = op.output.shape, before.quantization
    graph.insert_before(op, step.clone([moved.output]), results=[result])
    op.output.replace_with(result)
    _hoist(graph, moved)


def _is_rounded(op: Op) -> bool:
    """Return whether QUANTIZE alone reads a result: then the operator is fused where it stands."""
    return all(isinstance(use.op, Quantize) for use in op.results[0].users)


def _has_one_grid(step: Dequantize | Quantize) -> bool:
    """Return whether all of a tensor's codes have one scale, wherever they are moved to."""
    affine = Affine.given(step.input if isinstance(step, Dequantize) else step.output)
    return affine is not None and len(affine.scale) == 1


def _sign(graph: Graph, value: Value) -> None:
    """Make codes of 8 bits without a sign ones with a sign, where only DEQUANTIZE reads them: the
    integer operators of TFLite read these.
    """
    affine = Affine.given(value) if value.dtype == TensorType.UINT8 else None
    made = value.producer is not None and isinstance(value.producer.op, Quantize)
    read = value.users and all(isinstance(use.op, Dequantize) for use in value.users)
    if affine is None or value.is_output or not read or not (made or value.is_constant):
        return
    signed = affine.shifted(TensorType.INT8)
    if value.data is not None:
        codes = (value.data.astype(np.int16) - _FROM_UINT8).astype(np.int8)
        value.make_constant(codes, TensorType.INT8)
    value.dtype, value.quantization = TensorType.INT8, signed.table()


def _runs(op: Op) -> bool:
    """Return whether an operator has a kernel for its operands, whatever they hold, and its result
    the scale that it must have.
    """
    if not computing().has_kernel(op) or refused_pole(op) is not None:
        return False
    users = op.output.users
    fixed = op.quant.result if op.quant is not None else None
    if not isinstance(fixed, Fixed) or len(users) != 1 or not isinstance(users[0].op, Quantize):
        return True
    behind = Affine.given(users[0].op.output)
    grid = None if behind is None else fixed.grid(behind.dtype)
    if behind is None or grid is None:
        return False
    return Affine.single(*grid, behind.dtype).same_numbers(behind)


def _round_exactly(graph: Graph, op: Quantize) -> None:
    """Compute codes that no integer operator reads as ONNX does, halves to even: QUANTIZE rounds
    them away from 0.
    """
    result, affine = op.output, Affine.given(op.output)
    plain = all(isinstance(use.op, Dequantize) for use in result.users)
    if op.input.dtype != TensorType.FLOAT32 or affine is None or not plain:
        return
    if integers_behind(op.input) is not None:
        return

    def number(name: str, value: float) -> Value:
        return graph.add_constant(graph.unique_name(name), np.array(value, np.float32))

    def put(step: Op) -> Value:
        return graph.insert_before(op, step, graph.unique_name(f"{result.name}/step")).output

    (low, high), (scale, points) = affine.limits, affine.parameters
    steps = put(Round(put(Div(op.input, number("scale", float(scale[0]))))))
    moved = put(Add(steps, number("zero_point", float(points[0]))))
    limited = put(Maximum(put(Minimum(moved, number("limit", high))), number("limit", low)))
    codes = put(Cast(limited, in_data_type=TensorType.FLOAT32, out_data_type=result.dtype))
    codes.quantization, name = result.quantization, result.name
    result.replace_with(codes)
    graph.remove(op)
    codes.name = name
