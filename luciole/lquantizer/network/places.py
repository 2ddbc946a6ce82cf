"""Say which operators of a float network can compute with a scheme's integers, and why others
cannot: no kernel, or infinities of constants that no integer stands for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from luciole.ir import Graph, Op, TensorType, Value
from luciole.ir.analysis.endless import Signs, endless_tensors
from luciole.ir.analysis.floats import is_float
from luciole.ir.analysis.weights import has_levels
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.ops.unidirectional_sequence_lstm import LSTMLayer
from luciole.ir.quant import Quant
from luciole.ir.quantization import Affine
from luciole.lquantizer.assignment.schemes import Scheme
from luciole.lquantizer.network.recurrent import obstacle_of_layer
from luciole.lquantizer.network.told_apart import takes_infinity
from luciole.lquantizer.report import shown
from luciole.lquantizer.rewrite.integers import runs


def integers_of(schemes: Mapping[Op, Scheme]) -> dict[Op, Scheme]:
    """Find the operators that can compute with integers in their schemes, or at least with weights
    of 8 bits.
    """
    integers = _with_kernels(schemes)
    beside = beside_infinity(integers)
    return {op: types for op, types in integers.items() if op not in beside}


def _with_kernels(schemes: Mapping[Op, Scheme]) -> dict[Op, Scheme]:
    pairs = ((op, fitting(op, types)) for op, types in schemes.items() if _reads_floats(op))
    return {op: types for op, types in pairs if types is not None}


def types_of(schemes: Mapping[Op, Scheme]) -> dict[Op, TensorType]:
    """Return the element types of results, for operators whose schemes have one."""
    return {op: t.activations for op, t in schemes.items() if t.activations is not None}


def fitting(op: Op, types: Scheme) -> Scheme | None:
    """Return a scheme that an operator can compute in, with weights of 8 bits where it has no
    kernel for fewer, None where there is none.
    """
    if types.activations is None:
        return None
    return next((one for one in (types, types.wider) if obstacle(op, one) is None), None)


def reasons(graph: Graph, schemes: Mapping[Op, Scheme]) -> dict[Op, str]:
    """Return the reasons why operators that read real numbers cannot read integers."""
    reasons_of: dict[Op, str] = {}
    for op in filter(_reads_floats, graph.ops):
        types = schemes.get(op)
        if types is None or types.activations is None:
            reasons_of[op] = AS_CHOSEN
        elif fitting(op, types) is None:
            reasons_of[op] = obstacle(op, types) or ""
    return reasons_of | dict.fromkeys(beside_infinity(_with_kernels(schemes)), _INFINITE)


def float_operators(graph: Graph, why: Mapping[Op, str]) -> list[str]:
    """List the operators that compute with floats where others do with integers, with the
    reason.
    """
    return [
        f"{op.kind} {shown(op.name)!r}: {why.get(op, _UNKNOWN_RANGE)}"
        for op in graph.ops
        if not isinstance(op, Quantize | Dequantize) and not has_levels(op) and _computes_floats(op)
    ]


AS_CHOSEN = "its format is float"
_INFINITE = "it reads or gives infinities of a constant, or what is as large, which no integer is"
_UNKNOWN_RANGE = "nothing says the range of what it reads or gives"


def obstacle(op: Op, types: Scheme) -> str | None:
    """Return the reason why an operator cannot compute with the scheme's element types, None where
    it can.
    """
    if op.called_graphs():
        return "it calls graphs, which have integers for their weights alone"
    if isinstance(op, LSTMLayer):
        return obstacle_of_layer(op, types)
    if op.stateful or any(v is not None and v.is_variable for v in op.operands):
        return "it has state"
    if op.quant is None:
        return "the scheme has no form for it"
    weight = op.given_operands().get(op.quant.weight or "")
    if weight is not None and weight.data is None:
        return "its weights are computed"
    if types.weights == TensorType.INT4 and weight is not None and not op.quant.since.takes_int4:
        return "TFLite has no kernel for weights of 4 bits"
    dtype = types.activations
    name = "" if dtype is None else dtype.name
    if dtype == TensorType.INT16 and not op.quant.since.int16:
        return f"TFLite has no kernel on {name}"
    if dtype in op.quant.unscaled:
        return f"its kernel on {name} minds no scales"
    return None if _has_kernel(op, op.quant, types) else f"no kernel on {name}"


def _reads_floats(op: Op) -> bool:
    return any(is_float(value) for value in op.operands)


def _computes_floats(op: Op) -> bool:
    return any(is_float(value) for value in (*op.operands, *op.results))


def _has_kernel(op: Op, quant: Quant, types: Scheme) -> bool:
    twin = op.clone([_as_integers(quant, name, v, types) for name, v in op.named_operands()])
    has_kernel = runs(twin)
    twin.set_operands([])  # so that no tensor is used by it any more
    return has_kernel


def _as_integers(quant: Quant, name: str, value: Value | None, types: Scheme) -> Value | None:
    """Copy a float operand as it would be in a scheme; any other stays as it is."""
    if value is None or not is_float(value) or types.activations is None:
        return value
    of_layer = {quant.weight: types.weights, quant.bias: types.bias}
    dtype = of_layer.get(name, types.activations)
    twin = Value(value.name, dtype, value.shape)
    twin.quantization = Affine.single(1.0, 0, dtype).table()
    return twin


def beside_infinity(integers: Collection[Op]) -> set[Op]:
    """Find the operators among those on ``integers`` that must compute with floats: they read
    infinities that matter, or give some to an operator or an output to which they matter.
    """
    kept: set[Op] = set()
    for graph in {op.graph for op in integers if op.graph is not None}:
        endless = endless_tensors(graph)
        while new := set(_exposed(endless, {op for op in integers if op not in kept})):
            kept |= new
    return kept


def _exposed(endless: Mapping[Value, Signs], integers: Collection[Op]) -> Iterator[Op]:
    for value, signs in endless.items():
        readers = [use.op for use in value.users]
        exact = [op for op in readers if op not in integers or 0 in signs or not takes_infinity(op)]
        yield from (op for op in exact if op in integers)
        maker = None if value.producer is None else value.producer.op
        if maker is not None and maker in integers and (exact or value.is_output):
            yield maker
