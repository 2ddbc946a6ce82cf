"""Small valid models of every registered operator, by trial: the operators' own rules decide."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from math import prod
from typing import Any

import numpy as np

from luciole.ir import (
    CUSTOM_OPS,
    OPS,
    Array,
    Graph,
    LucioleError,
    Model,
    Op,
    ShapeError,
    TensorType,
    Value,
)
from luciole.ir.dtypes import NUMPY, PACKED, integer_range
from luciole.ir.fields import REQUIRED, Field
from luciole.ir.ops.variables import VarHandle
from luciole.ir.strings import OBJECTS, array_of
from luciole.ir.verify import Severity, verify
from luciole.kernels.core import contract, registry
from luciole.schema.tables import QuantizationParameters
from tests.fuzz.graphs import called
from tests.fuzz.shapes import ALONE, EXTENTS, RANKS, Sizes, shapes_for

Rng = np.random.Generator
MOST_ELEMENTS = 1 << 20
"""Of a constant."""

TRIALS = 120
_NUMBERS = (0, 1, 1, 2, 3, 4, -1, 32)
_SCALES = (1 / 256, 1 / 128, 1 / 16, 2**-15, 0.1, 0.1)
"""Some operators want a certain one of their result, others one of all tensors."""
STORED = NUMPY | {packed: stored for packed, (_, stored) in PACKED.items()}
STORED[TensorType.STRING] = OBJECTS
"""What arrays of all types that have some are."""
_AFFINE = (TensorType.INT8, TensorType.UINT8, TensorType.INT16, *PACKED)


@cache
def kinds() -> list[tuple[type[Op], contract.Signature]]:
    """Every operator class of files with every signature that it has a kernel for."""
    stored = {*OPS.values(), *CUSTOM_OPS.values()}
    found = [(c, s) for kind, c, s in registry.registered() if kind != "native" and c in stored]
    return sorted(found, key=lambda pair: (int(pair[0].code), [int(t) for t in pair[1]]))


def random_model(rng: Rng, cls: type[Op], signature: contract.Signature) -> tuple[Model, bool]:
    """A model of one operator, and whether ``verify`` has nothing against it.

    The last trial is taken where none was sound: damaged files are wanted, too.
    """
    model, is_sound = alone(cls, signature, Sizes(rng))
    if is_sound:
        return _continued(rng, model), True
    return (model if model.graphs and model.graph.ops else _unsound(rng, cls)), False


def alone(cls: type[Op], signature: contract.Signature, sizes: Sizes) -> tuple[Model, bool]:
    """The same of one operator, and whether ``verify`` has nothing against it."""
    model = Model()
    for _ in range(TRIALS):
        model = Model()
        model.add_graph(Graph("main"))
        if _grown(sizes, cls, signature, model):
            return model, True
    return model, False


def _grown(sizes: Sizes, cls: type[Op], signature: contract.Signature, model: Model) -> bool:
    """Add an operator behind what there is; whether ``verify`` has nothing against it."""
    try:
        _Attempt(sizes, cls, signature, model).build()
    except (LucioleError, TypeError, ValueError, IndexError, RecursionError):
        return False
    return not any(f.severity is Severity.ERROR for f in verify(model))


def _continued(rng: Rng, model: Model) -> Model:
    """The model, or in half of the cases one with a few more operators behind its result."""
    for _ in range(int(rng.choice([0, 0, 0, 4, 8, 12]))):
        dtype = model.graph.outputs[0].dtype if model.graph.outputs else None
        fitting = [(cls, s) for cls, s in kinds() if s and s[0] == dtype]
        if fitting:
            longer = model.clone()
            if _grown(Sizes(rng), *fitting[int(rng.integers(len(fitting)))], longer):
                model = longer
    return model


class _Attempt:
    """One try to put random operands and attributes together.

    The first operand is the result of the operator before, where there is one.
    """

    def __init__(
        self, sizes: Sizes, cls: type[Op], signature: contract.Signature, model: Model
    ) -> None:
        self.sizes, self.rng, self.cls, self.model = sizes, sizes.rng, cls, model
        self.signature = signature or (list(NUMPY)[int(self.rng.integers(len(NUMPY)))],)
        self.graph = model.graph
        self.place = len(self.graph.values)
        self.given = self.graph.outputs[0] if self.graph.outputs else None
        self.base = sizes.shape() if self.given is None else self.given.dims
        self.hints = shapes_for(cls, sizes) if self.given is None else {}
        self.affine = self.rng.random() < 0.85

    def build(self) -> None:
        """The operator, its operands and results."""
        slots = self._slots()
        op = self.cls.from_operands(slots, self._attributes())
        try:
            shapes, types = op.result_shapes(), op.result_dtypes()
        except ShapeError:  # some operators ask what the file says of their results
            shapes, types = (self.base,), (list(NUMPY)[int(self.rng.integers(len(NUMPY)))],)
        pairs = zip(shapes, types, strict=True)
        name = f"y{self.place or ''}"
        results = [self._value(f"{name}{i}", t, s) for i, (s, t) in enumerate(pairs)]
        if self.rng.random() < 0.8:
            self._fix(results)
        self.graph.append(op, results=[self.graph.add_value(v) for v in results])
        for value, shape in zip(op.results, op.result_shapes(), strict=True):
            value.shape = shape
        kept = [v for v in self.graph.outputs if self.rng.random() < 0.3]
        self.graph.outputs = [*op.results, *kept]

    def _fix(self, results: Sequence[Value]) -> None:
        """Give results the scale and zero point that the operator's range calls for."""
        quant = self.cls.quant
        for value in results:
            grid = quant.fixed(value.dtype) if quant and value.quantization else None
            if grid is not None:
                scale, point = np.array(grid[:1], np.float32), np.array(grid[1:], np.int64)
                value.quantization = QuantizationParameters(scale=scale, zero_point=point)

    def _slots(self) -> list[Value | None]:
        fields = [f for f in self.cls.operand_fields() for _ in range(self._times(f))]
        data = [i for i, f in enumerate(fields) if not f.dtypes]
        optional = [i for i in data if fields[i].default is None]
        several = len(self.signature) > 1
        left = len(data) - len(self.signature) if several else None
        count = left if left is not None else int(self.rng.integers(0, len(optional) + 1))
        absent = (
            set(self.rng.permutation(optional)[: max(count, 0)].tolist()) if optional else set()
        )
        if not several and self.rng.random() < 0.5:
            absent = set()
        types = iter(self.signature if several else self.signature * len(data))
        slots: list[Value | None] = []
        for i, field in enumerate(fields):
            gone = i in absent or (
                field.dtypes and field.default is None and self.rng.random() < 0.5
            )
            if ALONE in self.hints and field.default is None and not several:
                gone = field.name not in self.hints
            slots.append(None if gone else self._operand(field, i, field.dtypes or (next(types),)))
        while slots and slots[-1] is None:
            slots.pop()
        return slots

    def _times(self, field: Field) -> int:
        return int(self.rng.integers(1, 4)) if field.kind == "operands" else 1

    def _operand(self, field: Field, number: int, dtypes: Sequence[TensorType]) -> Value:
        dtype = dtypes[int(self.rng.integers(len(dtypes)))]
        name, given = f"{field.name}{number + self.place}", self.hints.get(field.name)
        if isinstance(given, np.ndarray) and TensorType.FLOAT32 in dtypes:
            dtype = TensorType.FLOAT32
        if self.given is not None and not field.dtypes and self.given.dtype == dtype:
            value, self.given = self.given, None
            return value
        if dtype == TensorType.RESOURCE and self.sizes.has_handles():
            return self.graph.append(VarHandle(shared_name="state"), name).output
        if isinstance(given, np.ndarray):
            return self.graph.add_constant(name, given.astype(NUMPY[dtype]))
        if field.dtypes and given is None and dtype in NUMPY:
            return self._indices(name, NUMPY[dtype])
        shape = given if given is not None else self._shape(number)
        value = self.graph.add_value(self._value(name, dtype, shape))
        if "state" in field.name:
            value.is_variable = True
        elif number == 0 or not self._is_constant(dtype):
            self.graph.inputs.append(value)
        else:
            quantization = value.quantization
            if prod(shape) > MOST_ELEMENTS:
                raise ValueError("a constant as large as that is no use")
            value.make_constant(contents(self.rng, shape, STORED[dtype]), dtype)
            value.quantization = quantization
        return value

    def _is_constant(self, dtype: TensorType) -> bool:
        """Whether an operand's contents are part of the model; nobody hands in packed integers."""
        return dtype in PACKED or (self.rng.random() >= 0.4 and dtype in STORED)

    def _value(self, name: str, dtype: TensorType, shape: Sequence[int | None]) -> Value:
        value = Value(name, dtype, tuple(shape))
        if dtype in _AFFINE and self.affine:
            value.quantization = self._quantization(value)
        return value

    def _quantization(self, value: Value) -> QuantizationParameters:
        kind, axis = self.rng.random(), 0
        scales, point = np.array([self.rng.choice(_SCALES)]), 0
        if kind < 0.1 and value.dims:
            axis = int(self.rng.integers(len(value.dims)))
            scales = self.rng.uniform(0.01, 0.5, value.dims[axis])
        elif kind < 0.7 and value.dtype != TensorType.INT16:
            low, high = integer_range(value.dtype) or (0, 0)
            point = int(self.rng.choice([low, low, high, (low + high + 1) // 2, 5]))
        return QuantizationParameters(
            scale=scales.astype(np.float32),
            zero_point=np.full(len(scales), point, np.int64),
            quantized_dimension=axis,
        )

    def _shape(self, number: int) -> tuple[int, ...]:
        rng, base = self.rng, self.base
        if number == 0:
            return base
        kind = rng.random()
        if kind < 0.4:
            return base
        if kind < 0.5:
            return tuple(n if rng.random() < 0.5 else 1 for n in base)
        if kind < 0.65:
            return base[int(rng.integers(len(base) + 1)) :]
        if kind < 0.8:
            return (int(rng.choice([*base, *EXTENTS])),)
        rank = len(base) if rng.random() < 0.7 else int(rng.choice(RANKS))
        return tuple(int(rng.choice([*base, 1, 2, 3])) for _ in range(rank))

    def _indices(self, name: str, dtype: np.dtype[Any]) -> Value:
        array = _index_array(self.rng, self.base, dtype)
        if self.rng.random() < 0.8:
            return self.graph.add_constant(name, array)
        value = self.graph.add_input(name, array.shape)
        value.dtype = TensorType[dtype.name.upper()] if dtype.kind != "b" else TensorType.BOOL
        return value

    def _attributes(self) -> dict[str, Any]:
        fields = self.cls.attr_fields()
        return {f.name: self._attribute(f) for f in fields if f.is_graph or self.rng.random() < 0.8}

    def _attribute(self, field: Field) -> Any:
        rng, default = self.rng, field.default
        if field.is_graph:
            return called(rng, self.model, self.graph, field)
        if field.name in self.hints:
            return self.hints[field.name]
        if isinstance(default, IntEnum):
            members = list(type(default))
            return default if rng.random() < 0.3 else members[int(rng.integers(len(members)))]
        if isinstance(default, bool):
            return bool(rng.integers(2))
        if isinstance(default, int):
            return int(rng.choice([*_NUMBERS, *self.base, 1, 1, 1]))
        if isinstance(default, float):
            return float(rng.choice([default, 1.0, 0.5, 0.1, 2.0, -1.0]))
        if isinstance(default, tuple):
            return tuple(int(n) for n in _index_array(rng, self.base, np.dtype(np.int32)).ravel())
        return default


def _index_array(rng: Rng, base: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """What operands that hold axes, extents or places often are."""
    rank = len(base)
    kind = int(rng.integers(9))
    if kind == 0:
        return rng.permutation(rank).astype(dtype)
    if kind == 1:
        return rng.permutation(np.array(base, np.int64)).astype(dtype)
    if kind == 2:
        return np.array(int(rng.choice([-1, 0, 0, 1, 2, 3])), np.int64).astype(dtype)
    if kind == 3:
        return rng.integers(0, 3, (rank, 2)).astype(dtype)
    if kind == 4:
        return np.array([int(np.prod(base, dtype=np.int64))], np.int64).astype(dtype)
    if kind == 5:
        return np.array([int(rng.integers(-1, 4))], np.int64).astype(dtype)
    if kind == 6:
        return np.ones(rank, dtype)
    if kind == 7:
        return rng.integers(0, 2, rank).astype(dtype)
    return rng.integers(-1, 5, int(rng.integers(0, 5))).astype(dtype)


def contents(rng: Rng, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Ordinary numbers or texts; integers are small so that they may be indices."""
    if dtype.kind in "iu":
        return rng.integers(0, 5, tuple(shape)).astype(dtype)
    if dtype.kind == "b":
        return rng.random(tuple(shape)) < 0.5
    if dtype == OBJECTS:
        return array_of((rng.bytes(int(n)) for n in rng.integers(0, 9, prod(shape))), tuple(shape))
    numbers = rng.normal(size=tuple(shape))
    return np.asarray(numbers + 1j * numbers if dtype.kind == "c" else numbers).astype(dtype)


def _unsound(rng: Rng, cls: type[Op]) -> Model:
    """An operator whose operands fit by chance at most, with a result as no rule gives it."""
    model = Model()
    graph = model.add_graph(Graph("main"))
    slots: list[Value | None] = []
    for number, field in enumerate(cls.operand_fields()):
        value = graph.add_input(f"{field.name}{number}", Sizes(rng).shape())
        value.dtype = field.dtypes[0] if field.dtypes else TensorType.FLOAT32
        wanted = field.kind == "operands" or field.default is REQUIRED or rng.random() < 0.5
        slots.append(value if wanted else None)
    graphs = {f.name: called(rng, model, graph, f) for f in cls.attr_fields() if f.is_graph}
    op = cls.from_operands(slots, graphs)
    names = ("y",) if cls.variadic_results else cls.result_names
    graph.append(op, results=[graph.add_value(Value(n, TensorType.FLOAT32, (1, 2))) for n in names])
    graph.outputs = list(op.results)
    return model
