"""Read what FAKE_QUANT operators of a network say, and pairs of QUANTIZE and DEQUANTIZE, which say
the same: scales that it was trained with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from luciole.ir import Array, Graph, Model, TensorType, Value
from luciole.ir.dtypes import integer_range
from luciole.ir.ops.fake_quant import FakeQuant, limits
from luciole.ir.ops.quantize import Dequantize
from luciole.ir.passes.cleaning.remove_dead import remove_dead
from luciole.ir.quantization import Affine, affine_of
from luciole.kernels.fake_quant import fake_quant
from luciole.lquantizer.assignment.layer_format import LayerFormat
from luciole.lquantizer.assignment.schemes import SCHEMES
from luciole.lquantizer.errors import QuantizeError
from luciole.lquantizer.formats.affine import of_range
from luciole.lquantizer.network.real import in_front, take_out

_BYTE = 8


@dataclass(frozen=True)
class TrainedGrids:
    """The scales that are known of tensors between operators and of constant weights, before any
    data are seen.
    """

    tensors: dict[Value, Affine] = field(default_factory=dict)
    weights: dict[Value, Affine] = field(default_factory=dict)


NOTHING = TrainedGrids()


@dataclass(frozen=True)
class _Rounding:
    """An operator whose output is a tensor rounded to some numbers: a FAKE_QUANT, or the DEQUANTIZE
    of a pair or of a constant of integers, whose parameters are ``stored``.
    """

    op: FakeQuant | Dequantize
    stored: Affine | None = None

    @property
    def value(self) -> Value:
        """The tensor, or constant of integers, that is rounded."""
        value = self.op.inputs if isinstance(self.op, FakeQuant) else _source(self.op)
        assert value is not None, "something is rounded"
        return value

    @property
    def bits(self) -> int:
        return self.op.num_bits if isinstance(self.op, FakeQuant) else self._affine.bits

    @property
    def _affine(self) -> Affine:
        assert self.stored is not None, "integers between two operators have parameters"
        return self.stored

    def numbers(self) -> Array:
        """Compute the numbers that a constant is rounded to."""
        contents = self.value.contents
        if isinstance(self.op, FakeQuant):
            return np.asarray(fake_quant(self.op, contents))
        codes = contents if self.op.input is self.value else self._affine.encode(contents)
        return self._affine.decode(codes).astype(np.float32)

    def grid(self, dtype: TensorType) -> Affine:
        """Return the affine parameters of a tensor between operators."""
        if isinstance(self.op, FakeQuant):
            return _between(self.op, dtype)
        own = self.signed()
        if own.dtype == dtype and (dtype == TensorType.INT8 or own.is_symmetric):
            return own
        low, high = (float(end[0]) for end in own.range)
        return of_range((low, high), dtype)

    def signed(self) -> Affine:
        """Return the affine parameters of the integers, those of a byte with a sign."""
        if isinstance(self.op, FakeQuant):
            return _affine(self.op, TensorType.INT8)
        is_unsigned = self._affine.dtype == TensorType.UINT8
        return self._affine.shifted(TensorType.INT8) if is_unsigned else self._affine


def format_asked_for(model: Model) -> LayerFormat:
    """Find the format whose element types hold what FAKE_QUANT operators and pairs round to: 16
    bits between operators where one has more than 8, 4 bits for weights where none has more.

    Raises QuantizeError where there are none, and where no format has both.
    """
    roundings = list(_roundings(model.graph))
    if not roundings:
        raise QuantizeError(
            "no FAKE_QUANT operator says what is quantized, and how, and no pair of QUANTIZE and "
            "DEQUANTIZE does"
        )
    weights = [one.bits for one in roundings if one.value.is_constant and one.bits <= _BYTE]
    others = [one.bits for one in roundings if not one.value.is_constant]
    wide, narrow = max(others, default=_BYTE) > _BYTE, max(weights, default=_BYTE) <= _BYTE // 2
    types = (
        TensorType.INT16 if wide else TensorType.INT8,
        TensorType.INT4 if narrow else TensorType.INT8,
    )
    for format, scheme in SCHEMES.items():
        if (scheme.activations, scheme.weights) == types:
            return format
    raise QuantizeError(
        f"tensors are rounded to {types[0].name} and weights to {types[1].name}: no scheme has both"
    )


def of_weights(graph: Graph) -> dict[Value, Affine]:
    """Compute the constants that are rounded, and return their integers' affine parameters."""
    affines = {}
    for one in _checked(graph):
        if one.value.is_constant:
            real = graph.add_constant(graph.unique_name(one.value.name), one.numbers())
            one.op.output.replace_with(real)
            affines[real] = one.signed()
    remove_dead(graph)
    return affines


def of_tensors(graph: Graph, dtype: TensorType) -> dict[Value, Affine]:
    """Take out the operators that round tensors between others, and return these tensors' affine
    parameters. A tensor of fewer bits than its integers keeps its range, in smaller steps.
    """
    affines = {}
    for one in _checked(graph):
        if not one.value.is_constant:
            value = one.value
            affines[value] = one.grid(dtype)
            take_out(one.op.output, value)
    remove_dead(graph)
    return affines


def _checked(graph: Graph) -> Iterable[_Rounding]:
    """List the operators that round. Raises QuantizeError for impossible ranges and scales."""
    roundings = list(_roundings(graph))
    for one in roundings:
        for fault in _faults(one):
            raise QuantizeError(f"{one.op.kind} {one.op.name!r}: {fault}")
    return roundings


def _faults(one: _Rounding) -> Iterator[str]:
    op = one.op
    if isinstance(op, FakeQuant):
        yield from op.verify()
        if not -np.inf < op.min < op.max < np.inf:
            yield f"min is {op.min} and max {op.max}: no range of numbers"
    elif not one.value.is_constant and one.grid(op.input.dtype).scale.size > 1:
        yield "a tensor between operators takes one scale"


def _roundings(graph: Graph) -> Iterator[_Rounding]:
    """Find the operators that round tensors and constants."""
    for op in list(graph.ops):
        if isinstance(op, FakeQuant):
            yield _Rounding(op)
        elif isinstance(op, Dequantize) and _source(op) is not None:
            affine = affine_of(op.input)
            if affine is not None:
                yield _Rounding(op, affine)


def _source(op: Dequantize) -> Value | None:
    """Return the tensor that a pair rounds, or a constant of integers, None for other tensors."""
    return op.input if op.input.is_constant else in_front(op)


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
