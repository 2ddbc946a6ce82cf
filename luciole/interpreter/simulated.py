"""Operators on integers that no kernel computes as they are: the copy of a graph that is run has
them in floats, between DEQUANTIZE and QUANTIZE.

Samsung ONE's quantizer writes some for which its own interpreter has no kernel either; it evaluates
them in the same form (``circle-quantizer --fake_quantize``).
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from luciole.ir import Graph, Op, TensorType, UnsupportedError, Value
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.ir.passes.split_quantization import split, splits
from luciole.ir.quantization import ACTIVATIONS, faults
from luciole.kernels.core import registry
from luciole.kernels.core.evaluation import has_kernel
from luciole.kernels.core.reasons import Declined, accepted


def obstacle(op: Op) -> str | None:
    """Return why an operator is computed in floats: what kernels on integers lack or refuse. None
    where they compute it, and where there are no floats to compute with.
    """
    if isinstance(op, Quantize | Dequantize) or op.stateful:
        return None
    reason = _refusal(op)
    if reason is None or not _has_scales(op) or not splits(op, has_kernel):
        return None
    return f"{reason}: computed in floats, between DEQUANTIZE and QUANTIZE"


def simulate(
    graph: Graph, sources: MutableMapping[Op, Op], values: MutableMapping[Value, Value]
) -> Mapping[Op, str]:
    """Put floats, DEQUANTIZE and QUANTIZE in the place of operators that have an ``obstacle``;
    returns the obstacles, by the operators that ``sources`` have for them.

    ``sources`` are told what new operators belong to, and ``values`` which tensors hold the
    integers of those that they lead from.
    """
    reasons = {op: why for op in graph.ops if (why := obstacle(op)) is not None}
    if not reasons:
        return reasons
    codes = {value: copy for value, copy in values.items() if copy.dtype != TensorType.FLOAT32}
    reals: dict[Value, Value] = {}
    for op in reasons:
        split(graph, op, reals)
    for value, copy in codes.items():
        if copy.dtype == TensorType.FLOAT32:
            values[value] = next(u.op.output for u in copy.users if isinstance(u.op, Quantize))
    for op in graph.ops:
        if op not in sources:
            sources[op] = sources[_beside(op)]
    return {sources[op]: why for op, why in reasons.items()}


def _refusal(op: Op) -> str | None:
    """Return the reason why no kernel of integers computes an operator; None where one does."""
    try:
        registry.find_reference(op)
    except UnsupportedError:
        return registry.lack(op)
    read = registry.find_reads(op)
    refused = None if read is None else accepted(read, op)
    return refused.reason if isinstance(refused, Declined) else None


def _has_scales(op: Op) -> bool:
    """Return whether all integers of activations stand for numbers."""
    values = [v for v in (*op.operands, *op.results) if v is not None and v.dtype in ACTIVATIONS]
    return not any(any(faults(value, "it", only_read=value.is_constant)) for value in values)


def _beside(op: Op) -> Op:
    """Return the operator that a conversion was put beside."""
    if isinstance(op, Quantize):
        producer = op.input.producer
        assert producer is not None, "it rounds a result"
        return producer.op
    return op.output.users[0].op
