"""Give rules the means to build: operators are added to a graph, and computed at once where all
operands are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from luciole.importers.computing import Computing, computing
from luciole.importers.onnx.element_types import WIDER
from luciole.importers.onnx.errors import RefusedError
from luciole.ir import Array, Graph, LucioleError, Op, TensorType, Value
from luciole.ir.dtypes import array_bytes
from luciole.ir.ops.broadcast import BroadcastTo
from luciole.ir.ops.cast import Cast
from luciole.ir.ops.elementwise_binary import (
    Add,
    Binary,
    BitwiseXor,
    Maximum,
    Minimum,
    Mul,
    RightShift,
)
from luciole.ir.ops.elementwise_unary import Unary
from luciole.ir.ops.pool_2d import Pool2D
from luciole.ir.ops.quantize import Dequantize
from luciole.ir.ops.reduce import Reduction
from luciole.ir.ops.reshape import Reshape
from luciole.ir.ops.shape import Shape
from luciole.ir.ops.stablehlo_elementwise import (
    StablehloAdd,
    StablehloBinary,
    StablehloMaximum,
    StablehloMinimum,
    StablehloMultiply,
)
from luciole.ir.ops.transpose import Transpose
from luciole.ir.quant import Like
from luciole.ir.quantization import ACTIVATIONS, Affine
from luciole.ir.value import element_count
from luciole.schema.printable import quoted, shorten

if TYPE_CHECKING:
    from luciole.importers.onnx.nodes import Nodes

_LONGEST_NAME = 1000


class Budget:
    """Memory that computing while a file is read may still take: files ask for large arrays with
    few bytes. All results together take at most ``size`` bytes, which bounds the time, and so do
    all arrays that live at a time while ``counted`` is entered, those on the way to a result
    included.
    """

    def __init__(self, size: int, nodes: int = 200_000) -> None:
        self.bytes = size
        self.nodes = nodes
        allowed = f"{size:,} are allowed for a file of its size"
        self.counted = computing().bounded(size, "computing it", allowed)

    def spend(self, size: int) -> None:
        """Take some bytes. Raises RefusedError where there are no more."""
        if size > self.bytes:
            raise RefusedError(f"computing it takes {size:,} bytes, {self.bytes:,} are left")
        self.bytes -= max(0, size)

    def spend_node(self) -> None:
        """Count a node. Raises RefusedError where functions and loops make too many."""
        if self.nodes < 1:
            raise RefusedError("functions and loops make too many nodes of it")
        self.nodes -= 1


IN_DOUBLE: dict[type[Op], type[Op]] = {
    Add: StablehloAdd,
    Maximum: StablehloMaximum,
    Minimum: StablehloMinimum,
    Mul: StablehloMultiply,
}
"""Operators that compute with float64 in another one's place."""


class Building:
    """A graph that is built, operator by operator.

    ``nodes`` imports the nodes of graphs inside of nodes. Operators without a kernel for narrow
    element types compute with wider ones, between two CAST.
    """

    def __init__(self, graph: Graph, computing: Computing, budget: Budget, nodes: Nodes) -> None:
        self.graph = graph
        self.computing = computing
        self.budget = budget
        self.nodes = nodes
        self.prefix = ""
        self._taken: set[str] = set()
        self._wide: dict[Value, Value] = {}
        self._transposed: dict[tuple[Value, tuple[int, ...]], Value] = {}
        self._counts: dict[str, int] = {}
        self.made: dict[str, str] = {}
        """Names that no file has: of values on the way to a node's result, whose name that is."""
        self.biases: dict[str, tuple[Array, Affine]] = {}
        """By name, codes of 32 bits that floats of 24 do not hold, and what a step of them is."""

    # ------------------------------------------------------------------------------- what is added
    def add(self, op: Op) -> Value:
        """Add an operator of one result; where all operands are constant, so is the result.

        Raises RefusedError where nothing can run it, and ShapeError where operands do not fit.
        """
        return self.several(op)[0]

    def make(self, cls: type[Op], operands: Sequence[Value | None], **attributes: object) -> Value:
        """Add an operator of a class, with the other attributes at their defaults."""
        return self.add(cls.from_operands(operands, attributes))

    def several(self, op: Op) -> list[Value]:
        """Add an operator of any number of results, as ``add`` does."""
        if self.computing.has_kernel(op) and not _means_quantized(op):
            return self._place(op)
        double = self._in_double(op)
        if double is not None:
            return double
        wide = {slot: self._wider(op, slot) for slot in range(len(op.operands))}
        types = op.result_dtypes()
        slots = [self._as(value, wide[slot]) for slot, value in enumerate(op.operands)]
        op.set_operands(slots)
        if not self.computing.has_kernel(op):
            kinds = ", ".join(v.dtype.name for v in slots if v is not None)
            op.set_operands(())
            raise RefusedError(f"{op.kind} is not computed with {kinds}")
        return [self._narrow(v, t) for v, t in zip(self._place(op), types, strict=True)]

    def _in_double(self, op: Op) -> list[Value] | None:
        """Compute with float64 where StableHLO's operators do, which stretch nothing; None
        elsewhere.
        """
        cls = IN_DOUBLE.get(type(op))
        operands = [v for v in op.operands if v is not None]
        open_ = any(None in v.shape for v in operands)
        if cls is None or open_ or any(v.dtype != TensorType.FLOAT64 for v in operands):
            return None
        dims = np.array(np.broadcast_shapes(*(self.dims(v) for v in operands)), np.int32)
        shape = self.constant(dims)
        same = [v if v.shape == tuple(dims) else self.add(BroadcastTo(v, shape)) for v in operands]
        op.set_operands(())
        return [self.make(cls, same)]

    def _narrow(self, value: Value, dtype: TensorType) -> Value:
        """Bring a result back to its type; what is computed from it next need not be rounded."""
        narrow = self.cast(value, dtype)
        if narrow is not value:
            self._wide[narrow] = value
        return narrow

    def _wider(self, op: Op, slot: int) -> TensorType | None:
        value = op.operands[slot]
        is_data = value is not None and not op.operand_field(slot).dtypes
        return WIDER.get(value.dtype) if is_data and value is not None else None

    def _as(self, value: Value | None, dtype: TensorType | None) -> Value | None:
        if value is None or dtype is None:
            return value
        wide = self._wide.get(value)
        return wide if wide is not None and wide.dtype == dtype else self.cast(value, dtype)

    def _place(self, op: Op) -> list[Value]:
        _refuse_large(op)
        count = len(op.result_shapes())
        hint = f"{self.prefix}/{op.kind.lower()}"
        names = [self.name(hint) for _ in range(count)]
        self.made |= dict.fromkeys(names, self.prefix)
        self.graph.append(op, *names)
        _keep_scale(op)
        known = bool(op.operands) and all(v is None or v.is_constant for v in op.operands)
        if not known or op.stateful or any(v is not None and v.is_variable for v in op.operands):
            return list(op.results)
        return self._computed(op) or list(op.results)

    def _computed(self, op: Op) -> list[Value] | None:
        """Replace an operator by its results, None where they cannot be computed."""
        sizes = [array_bytes(v.dtype, element_count(v.dims)) for v in op.results]
        self.budget.spend(sum(size or 0 for size in sizes))
        try:
            arrays = self.computing.evaluate(op)
        except LucioleError as error:
            if isinstance(error, MemoryError):
                raise
            return None
        names = [value.name for value in op.results]
        self.graph.remove(op)
        return [self.held(a, name) for a, name in zip(arrays, names, strict=True)]

    def constant(self, array: ArrayLike, name: str = "", dtype: TensorType | None = None) -> Value:
        """Add a constant; a scalar stays one. Raises RefusedError where the file may not take so
        much.
        """
        self.budget.spend(np.asarray(array).nbytes)
        return self.held(array, name, dtype)

    def held(self, array: ArrayLike, name: str = "", dtype: TensorType | None = None) -> Value:
        """Add a constant that the file holds, or that is paid already."""
        contents = np.array(array, order="C")
        return self.graph.add_constant(
            name or self.name(f"{self.prefix}/constant"), contents, dtype
        )

    def filled(self, dims: Sequence[int], number: float, dtype: DTypeLike = np.float32) -> Array:
        """Make an array of one number, [dims]. Raises RefusedError where the file may not take so
        much.
        """
        self.budget.spend(math.prod(dims) * np.dtype(dtype).itemsize)
        return np.full(dims, number, dtype)

    def int32(self, numbers: ArrayLike) -> Value:
        """Add INT32 numbers: extents, places, padding. Raises RefusedError for larger ones."""
        integers = np.asarray(numbers, np.int64)
        if integers.size and not -(1 << 31) <= integers.min() <= integers.max() < 1 << 31:
            raise RefusedError(f"a number of it has more than 32 bits: {abs(integers).max()}")
        return self.constant(integers.astype(np.int32))

    def like(self, value: Value, number: ArrayLike) -> Value:
        """Add a constant of a value's element type. Raises RefusedError for an integer that has no
        such number.
        """
        kind, exact = numpy_type(value.dtype), np.asarray(number)
        with np.errstate(invalid="ignore"):
            converted = exact.astype(kind)
        if kind.kind in "iu" and (converted != exact).any():
            raise RefusedError(f"{value.dtype.name} does not hold {quoted(exact.tolist())}")
        return self.constant(converted)

    def name(self, hint: str) -> str:
        """Make a name that nothing has yet."""
        hint = plain(hint)
        while hint in self._taken:
            count = self._counts[hint] = self._counts.get(hint, 0) + 1
            candidate = f"{hint}_{count}"
            hint = candidate if candidate not in self._taken else hint
        self._taken.add(hint)
        return hint

    def rename(self, value: Value, name: str) -> None:
        """Give a value a name of the file; what has it gets the value's, but inputs keep theirs."""
        name = plain(name)
        others = [v for v in self.graph.values if v.name == name and v is not value]
        if any(other.is_input for other in others):
            return
        for other in others:
            other.name = value.name
        value.name = name
        self._taken.add(name)

    # ------------------------------------------------------------------------ what is added often
    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """Exchange axes: result axis i is axis ``order[i]``. Of a constant it is done once, for
        layers may share one.
        """
        if list(order) == list(range(len(order))):
            return value
        codes = codes_of(value)
        if codes is not None:
            axes = [list(order).index(axis) for axis in range(len(order))]
            return self.moved_codes(codes, self.known(codes).transpose(order), axes)
        key = value, tuple(order)
        if key in self._transposed:
            return self._transposed[key]
        transposed = self.add(Transpose(value, self.constant(np.array(order, np.int32))))
        if transposed.is_constant:
            self._transposed[key] = transposed
            if not value.users:
                transposed.name, value.name = value.name, transposed.name
        return transposed

    def moved_codes(self, codes: Value, moved: Array, axes: Sequence[int]) -> Value:
        """Take constant integers in another order for those that a DEQUANTIZE reads; ``axes`` are
        those of the result that were the first, second, ...
        """
        affine = Affine.given(codes)
        assert affine is not None, "codes have a scale"
        axis = axes[affine.axis] if affine.scale.size > 1 else 0
        return self.dequantized(moved, replace(affine, axis=axis), codes)

    def dequantized(self, codes: Array, affine: Affine, source: Value) -> Value:
        """Add constant integers in the place of a ``source``, and the DEQUANTIZE that makes them
        numbers: it stays, so that a layer can read the integers.
        """
        constant = self.constant(codes, self.name(source.name), affine.dtype)
        if not any(result.users for use in source.users for result in use.op.results):
            constant.name, source.name = source.name, constant.name
        constant.quantization = affine.table()
        op = Dequantize(constant)
        self.graph.append(op, self.name(f"{self.prefix}/dequantize"))
        return op.output

    def reshape(self, value: Value, dims: Sequence[int | None]) -> Value:
        """Give a value other extents; None for one that is not known. Raises RefusedError where
        there are several of these.
        """
        if tuple(dims) == value.shape:
            return value
        open_ = sum(n is None for n in dims)
        if open_ > 1:
            raise RefusedError("more than one extent of its result is not known")
        extents = [-1 if n is None else int(n) for n in dims]
        return self.add(
            Reshape(value, self.constant(np.array(extents, np.int32)), new_shape=tuple(extents))
        )

    def cast(self, value: Value, dtype: TensorType) -> Value:
        """Convert a value's elements; INT64 that were made of INT32 are read as these."""
        if value.dtype == dtype:
            return value
        before = None if value.producer is None else value.producer.op
        if value.dtype == TensorType.INT64 and isinstance(before, Cast):
            value = before.x if before.x.dtype == TensorType.INT32 else value
        if value.dtype == dtype:
            return value
        return self.add(Cast(value, in_data_type=value.dtype, out_data_type=dtype))

    def copy(self, value: Value) -> Value:
        """Make a value that holds the same."""
        shape = [-1 if n is None else n for n in value.shape]
        if shape.count(-1) > 1:
            return self.add(Reshape(value, self.add(Shape(value, out_type=TensorType.INT32))))
        return self.add(
            Reshape(value, self.constant(np.array(shape, np.int32)), new_shape=tuple(shape))
        )

    def joined(self, make: Callable[[Value, Value], Op], values: Sequence[Value]) -> Value:
        """Add operators of two operands that join several values from the first on."""
        result = values[0]
        for value in values[1:]:
            result = self.add(make(result, value))
        return result

    # ------------------------------------------------------------------------- what rules ask for
    def dims(self, value: Value) -> tuple[int, ...]:
        """Return a value's extents. Raises RefusedError where one is not known."""
        shape = value.shape
        if None in shape:
            raise RefusedError(f"the shape of {quoted(value.name)} is not known")
        return tuple(int(n) for n in shape if n is not None)

    def known(self, value: Value | None) -> Array:
        """Return a constant's contents. Raises RefusedError for anything else."""
        if value is None:
            raise RefusedError("an operand is missing")
        if value.data is None:
            raise RefusedError(f"{quoted(value.name)} is not constant")
        return value.data

    def integers(self, value: Value | None) -> list[int]:
        """Return a constant's contents as a list of integers."""
        return [int(n) for n in self.known(value).reshape(-1)]

    def axis(self, axis: int, value: Value) -> int:
        """Count an axis from the front. Raises RefusedError for one that there is not."""
        rank = len(value.shape)
        if not -rank <= axis < max(rank, 1):
            raise RefusedError(f"there is no axis {axis} of {rank}")
        return axis + rank if axis < 0 else axis


def plain(name: str) -> str:
    """Write a name of the file as values have it."""
    return shorten(name.strip("/") or "tensor", _LONGEST_NAME)


def _refuse_large(op: Op) -> None:
    """Raise RefusedError for an attribute or an extent of the result that files have no room
    for.
    """
    named = op.attributes().items()
    numbers = [(name, n) for name, n in named if isinstance(n, int)]
    numbers += [("an extent of its result", n or 0) for shape in op.result_shapes() for n in shape]
    for name, number in numbers:
        if not -(1 << 31) <= number < 1 << 31:
            raise RefusedError(f"{name} is {number}, more than 32 bits")


def _keep_scale(op: Op) -> None:
    """Give the result of an operator that moves integers the scale of these."""
    rule = op.quant.result if op.quant is not None else None
    if not isinstance(rule, Like):
        return
    source = op.given_operands().get(rule.operands[0])
    if source is not None and source.quantization is not None and is_single(source):
        for result in op.results:
            result.quantization = source.quantization if result.dtype == source.dtype else None


def is_single(value: Value) -> bool:
    """Return whether a value has one scale."""
    affine = Affine.given(value)
    return affine is not None and affine.scale.size == 1


def codes_of(value: Value) -> Value | None:
    """Find the constant integers that a DEQUANTIZE makes a value from, None where there are
    none.
    """
    producer = value.producer
    if producer is None or not isinstance(producer.op, Dequantize):
        return None
    codes = producer.op.input
    return codes if codes.is_constant else None


def is_fixed(value: Value) -> bool:
    """Return whether a value is constant, as it is or as integers."""
    return value.is_constant or codes_of(value) is not None


def _means_quantized(op: Op) -> bool:
    """Return whether a kernel would take narrow integers for quantized numbers, which these are
    not.
    """
    plain = BitwiseXor | RightShift | StablehloBinary
    if not isinstance(op, Unary | Binary | Reduction | Pool2D) or isinstance(op, plain):
        return False
    if isinstance(op, Pool2D) and is_single(op.value):
        return False
    return any(v is not None and v.dtype in ACTIVATIONS for v in op.operands)


def numpy_type(dtype: TensorType) -> np.dtype[np.generic]:
    """Find the type of an array of these elements. Raises RefusedError where there is none."""
    from luciole.ir.dtypes import NUMPY

    if dtype not in NUMPY:
        raise RefusedError(f"{dtype.name} is not computed")
    array_type: np.dtype[np.generic] = NUMPY[dtype]
    return array_type
