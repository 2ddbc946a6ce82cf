"""Read what the FAKE_QUANT operators of a network say: scales that it was trained with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from luciole.ir import Graph, Model, TensorType, Value
from luciole.ir.dtypes import integer_range
from luciole.ir.ops.fake_quant import FakeQuant, limits
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.quantization import Affine
from luciole.kernels.fake_quant import fake_quant
from luciole.lquantizer.assignment.layer_format import LayerFormat
from luciole.lquantizer.assignment.schemes import SCHEMES
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.formats.affine import of_range

_BYTE = 8


@dataclass(frozen=True)
class TrainedGrids:
    """The scales that are known of tensors between operators and of constant weights, before any
    data are seen.
    """

    tensors: dict[Value, Affine] = field(default_factory=dict)
    weights: dict[Value, Affine] = field(default_factory=dict)


NOTHING = TrainedGrids()


def format_asked_for(model: Model) -> LayerFormat:
    """Find the format whose element types hold what FAKE_QUANT operators round to: 16 bits between
    operators where one has more than 8, 4 bits for weights where none has more.

    Raises QuantizeError where there are none, and where no format has both.
    """
    ops = list(_fake_quants(model.graph))
    if not ops:
        raise QuantizeError("no FAKE_QUANT operator says what is quantized, and how")
    weights = [op.num_bits for op in ops if op.inputs.is_constant]
    others = [op.num_bits for op in ops if not op.inputs.is_constant]
    wide, narrow = max(others, default=_BYTE) > _BYTE, max(weights, default=_BYTE) <= _BYTE // 2
    types = (
        TensorType.INT16 if wide else TensorType.INT8,
        TensorType.INT4 if narrow else TensorType.INT8,
    )
    for format, scheme in SCHEMES.items():
        if (scheme.activations, scheme.weights) == types:
            return format
    raise QuantizeError(
        f"FAKE_QUANT rounds tensors to {types[0].name} and weights to {types[1].name}: no scheme "
        "has both"
    )


def of_weights(graph: Graph) -> dict[Value, Affine]:
    """Compute the constants that FAKE_QUANT operators round, and return their integers' affine
    parameters.
    """
    affines = {}
    for value, op in _taken(graph, constant=True):
        real = graph.add_constant(graph.unique_name(value.name), fake_quant(op, value.contents))
        value.replace_with(real)
        affines[real] = _affine(op, TensorType.INT8)
    remove_dead(graph)
    return affines


def of_tensors(graph: Graph, dtype: TensorType) -> dict[Value, Affine]:
    """Take out the FAKE_QUANT operators between others, and return the affine parameters of their
    tensors. A tensor of fewer bits than its integers keeps its range, in smaller steps.
    """
    affines = {value: _between(op, dtype) for value, op in _taken(graph, constant=False)}
    remove_dead(graph)
    return affines


def _taken(graph: Graph, *, constant: bool) -> Iterator[tuple[Value, FakeQuant]]:
    """Replace the result of each FAKE_QUANT, of constants or of computed tensors, by its input."""
    for op in [one for one in _fake_quants(graph) if one.inputs.is_constant == constant]:
        for fault in op.verify():
            raise QuantizeError(f"FAKE_QUANT {op.name!r}: {fault}")
        if not -np.inf < op.min < op.max < np.inf:
            raise QuantizeError(
                f"FAKE_QUANT {op.name!r}: min is {op.min} and max {op.max}: no range of numbers"
            )
        value, output = op.inputs, op.output
        is_output, name = output.is_output, output.name
        output.replace_with(value)
        if is_output and not value.is_input:
            output.name, value.name = value.name, name
        yield value, op


def _fake_quants(graph: Graph) -> Iterator[FakeQuant]:
    return (op for op in list(graph.ops) if isinstance(op, FakeQuant))


def _between(op: FakeQuant, dtype: TensorType) -> Affine:
    """Return the affine parameters of a tensor between operators."""
    if dtype == TensorType.INT16 or op.num_bits < _BYTE:
        low, high, _ = limits(op)
        return of_range((float(low), float(high)), dtype)
    return _affine(op, dtype)


def _affine(op: FakeQuant, dtype: TensorType) -> Affine:
    """Return the affine parameters of a FAKE_QUANT's numbers as integers of a byte, which may have
    more codes.
    """
    low, _, scale = limits(op)
    codes = integer_range(dtype)
    assert codes is not None, "integers have limits"
    point = round(float(op.narrow_range) - float(low) / float(scale)) + codes[0]
    return Affine.single(float(scale), point, dtype)
