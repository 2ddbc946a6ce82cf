"""Give the rules of operators the means to write: tensors by the values of a graph, in two layouts.

Circle keeps channels last, ONNX's layers want them behind the batch. A tensor is asked for in the
layout that a node needs, and its TRANSPOSE is written when one asks for the layout that is not
there yet: between layers, where all want channels first, there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from luciole.exporters.onnx.elements import onnx_type
from luciole.exporters.onnx.errors import RefusedError
from luciole.exporters.onnx.nodes import Body, Node, Term
from luciole.ir import Array, Graph, Shape, TensorType, Value
from luciole.ir.dtypes import NUMPY
from luciole.ir.ops.quantize import Dequantize
from luciole.ir.sparsity import dense
from luciole.ir.value import UNRANKED
from luciole.schema.onnx_dialect import DOMAIN

if TYPE_CHECKING:
    from collections.abc import Callable

_SMALL = 1024
"""Bytes up to which equal constants are one."""
_UNNAMED = re.compile(r"constant(_\d+)?")
"""Pattern of the names of constants that have no name of their own: each file numbers them anew."""
END = (1 << 63) - 1
"""ONNX's number for the end of any axis."""
Cut = tuple[int, int, int, int]
"""An axis, where a part of it starts and stops, and the step."""


@dataclass
class Shared:
    """Properties that all graphs of one file share."""

    opset: int
    convert: Callable[[Building, Graph], None]
    """Writes a graph's operators; that is the rules' business, which are found later."""
    constants: dict[Term, tuple[Array, TensorType]] = field(default_factory=dict)
    known: dict[tuple[object, ...], Term] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)
    """Names of our own operators that need their bodies in the file."""
    open: list[Graph] = field(default_factory=list)
    """Graphs that are being written, each called by the one before."""
    values: dict[Value, Term] = field(default_factory=dict)
    """Constants of the model."""


class Building:
    """One graph while it is written."""

    def __init__(self, shared: Shared, name: str) -> None:
        self.shared = shared
        self.body = Body(name)
        self.last: dict[Value, Term] = {}
        """Tensors as the model has them."""
        self.first: dict[Value, Term] = {}
        """Tensors [n, ..., c] as [n, c, ...]."""

    @property
    def opset(self) -> int:
        """The version of ONNX's operators."""
        return self.shared.opset

    # ------------------------------------------------------------------------------------- tensors
    def of(self, value: Value) -> Term:
        """Find a tensor in the model's layout. Raises RefusedError where nothing computes it."""
        if value not in self.last and value in self.first:
            self.put(value, self._last(value))
        if value in self.last:
            return self.last[value]
        if value not in self.shared.values:
            name = "" if _UNNAMED.fullmatch(value.name) else value.name
            term = self.constant(data_of(value), name, value.dtype)
            term.named = bool(name)
            self.shared.values[value] = term
        return self.shared.values[value]

    def _last(self, value: Value) -> Term:
        """Turn a tensor whose channels are first; of real numbers behind codes, the codes."""
        codes = _codes_behind(value)
        if codes is not None and not codes.is_constant:
            return self._real(codes, self.of(codes))
        return self._turned(self.first[value], _to_last(len(value.shape)))

    def _real(self, codes: Value, term: Term, order: Sequence[int] | None = None) -> Term:
        from luciole.exporters.onnx.integers import dequantized

        return dequantized(self, codes, term, order)

    def given(self, value: Value | None) -> Term | None:
        """Find a tensor that may be absent."""
        return None if value is None else self.of(value)

    def channels_first(self, value: Value) -> Term:
        """Find a tensor [n, ..., c] as [n, c, ...]."""
        if value not in self.first:
            order, codes = to_first(len(value.shape)), _codes_behind(value)
            if codes is None or codes.is_constant:
                self.first[value] = self.weights(value, order)
            else:
                self.first[value] = self._real(codes, self.channels_first(codes), order)
        return self.first[value]

    def is_first(self, value: Value) -> bool:
        """Return whether a tensor is there with its channels first."""
        return value in self.first and not value.is_constant

    def weights(self, value: Value, order: Sequence[int]) -> Term:
        """Find a layer's weights with their axes in another order: constants are stored so, also
        those of which a DEQUANTIZE makes real numbers.
        """
        if list(order) == sorted(order):
            return self.of(value)
        codes = _codes_behind(value)
        if codes is not None and codes.is_constant:
            stored = np.ascontiguousarray(data_of(codes).transpose(order))
            return self._real(codes, self.constant(stored, codes.name, codes.dtype), order)
        if value.is_constant:
            turned = np.ascontiguousarray(data_of(value).transpose(order))
            return self.constant(turned, value.name, value.dtype)
        return self._turned(self.of(value), order)

    def _turned(self, term: Term, order: Sequence[int]) -> Term:
        return self.add("Transpose", term, perm=list(order))

    def put(self, value: Value, term: Term) -> None:
        """Set the tensor that stands for a value, in the model's layout."""
        self.last[value] = self._called(term, value.name)

    def put_first(self, value: Value, term: Term) -> None:
        """Set the tensor that stands for a value, with its channels first."""
        self.first[value] = self._called(term, value.name)

    def _called(self, term: Term, name: str) -> Term:
        if not term.named:
            term.name, term.named = name, True
        return term

    # --------------------------------------------------------------------------------------- nodes
    def add(self, kind: str, *operands: Term | None, **attributes: object) -> Term:
        """Append a node with one result."""
        return self.add_all(kind, 1, *operands, **attributes)[0]

    def add_all(
        self, kind: str, count: int, *operands: Term | None, **attributes: object
    ) -> list[Term]:
        """Append a node with several results."""
        present = list(operands)
        while present and present[-1] is None:
            present.pop()
        results = [Term(kind.lower()) for _ in range(count)]
        self.body.nodes.append(Node(kind, present, results, attributes))
        return results

    def own(self, kind: str, *operands: Term | None, **attributes: object) -> Term:
        """Append a node of our own domain, whose body comes into the file."""
        result = self.add(kind, *operands, **attributes)
        self.body.nodes[-1].domain = DOMAIN
        self.shared.functions.add(kind)
        return result

    # ----------------------------------------------------------------------------------- constants
    def constant(self, array: Array, name: str = "", dtype: TensorType | None = None) -> Term:
        """Store a constant, small equal ones once."""
        array = np.asarray(array, order="C")
        kind = dtype_of(array) if dtype is None else dtype
        key = (kind, array.shape, array.tobytes()) if array.nbytes <= _SMALL and not name else None
        if key is not None and key in self.shared.known:
            return self.shared.known[key]
        term = Term(name or "constant")
        self.shared.constants[term] = (array, kind)
        if key is not None:
            self.shared.known[key] = term
        return term

    def ints(self, *numbers: int) -> Term:
        """Store int64 numbers [n], the form of shapes and axes."""
        return self.constant(np.array(numbers, np.int64))

    def number(self, number: float, dtype: TensorType = TensorType.FLOAT32) -> Term:
        """Store one number of a type, without axes."""
        return self.constant(np.array(number, NUMPY[dtype]), dtype=dtype)

    def int64(self, value: Value) -> Term:
        """Find a tensor of integers as INT64."""
        if value.is_constant:
            return self.constant(data_of(value).astype(np.int64))
        term = self.of(value)
        return term if value.dtype == TensorType.INT64 else self.cast(term, TensorType.INT64)

    def cast(self, term: Term, dtype: TensorType) -> Term:
        """Append a conversion to another element type."""
        return self.add("Cast", term, to=onnx_type(dtype))

    def reshape(self, term: Term, *extents: int) -> Term:
        """Append a RESHAPE to these extents."""
        options = {"allowzero": 1} if 0 in extents else {}
        return self.add("Reshape", term, self.ints(*extents), **options)

    def scalar(self, value: Value) -> Term:
        """Find a tensor of one element without its axes."""
        return self.of(value) if value.shape == () else self.reshape(self.of(value))

    def slice(self, term: Term, shape: Shape, cuts: Iterable[Cut]) -> Term:
        """Append a SLICE of a tensor of this shape, each axis in the form that it is read as: with
        the first place and the one behind the last. Axes that stay whole are not named.
        """
        rows = [cut for cut in (_settled(cut, shape[cut[0]]) for cut in cuts) if cut is not None]
        if not rows:
            return term
        axes, starts, ends, steps = zip(*rows, strict=True)
        places = [self.ints(*row) for row in (starts, ends, axes)]
        far = [self.ints(*steps)] if any(step != 1 for step in steps) else []
        return self.add("Slice", term, *places, *far)

    def squeeze(self, term: Term, axes: Sequence[int], shape: Shape) -> Term:
        """Drop axes of one element, ``shape`` is left: as the RESHAPE that it is read as."""
        return self._new_axes("Squeeze", term, axes, shape)

    def unsqueeze(self, term: Term, axes: Sequence[int], shape: Shape) -> Term:
        """Insert axes of one element, which makes ``shape``: as ``squeeze`` does."""
        return self._new_axes("Unsqueeze", term, axes, shape)

    def _new_axes(self, kind: str, term: Term, axes: Sequence[int], shape: Shape) -> Term:
        open_ = sum(n is None for n in shape)
        if shape is UNRANKED or open_ > 1 or (open_ and 0 in shape):
            return self.add(kind, term, self.ints(*axes))
        return self.reshape(term, *(-1 if n is None else n for n in shape))

    def reshaped(self, value: Value, *extents: int) -> Term:
        """Find a tensor with other extents; of real numbers behind codes, the codes have them:
        onnxruntime's own way of moving them over goes wrong from opset 21 on.
        """
        codes = _codes_behind(value)
        if codes is None or codes.is_constant:
            return self.reshape(self.of(value), *extents)
        return self._real(codes, self.reshape(self.of(codes), *extents))

    # ------------------------------------------------------------------------------------- calling
    def inside(self, name: str) -> Building:
        """Begin a graph that a node of this one holds."""
        return Building(self.shared, name)

    def run(self, graph: Graph, arguments: Sequence[Term]) -> list[Term]:
        """Write a graph's operators here, with these tensors for its inputs. Returns its outputs.

        Raises RefusedError for a graph that calls itself.
        """
        if graph in self.shared.open:
            raise RefusedError(f"graph {graph.name!r} calls itself")
        self.last.update(zip(graph.inputs, arguments, strict=True))
        self.shared.open.append(graph)
        self.shared.convert(self, graph)
        self.shared.open.pop()
        return [self.of(value) for value in graph.outputs]


def _codes_behind(value: Value) -> Value | None:
    """Find the codes from which a DEQUANTIZE makes a tensor."""
    maker = None if value.producer is None else value.producer.op
    return maker.input if isinstance(maker, Dequantize) else None


def _settled(cut: Cut, extent: int | None) -> Cut | None:
    """Count the places of a cut from the front; None for one that leaves all."""
    axis, start, end, step = cut
    if extent is None:
        return cut
    indices = range(*slice(start, end, step).indices(extent))
    if not indices:
        return axis, 0, 0, step
    if indices == range(extent):
        return None
    return axis, indices.start, indices.stop if indices.stop >= 0 else -END, step


def to_first(rank: int) -> list[int]:
    """List the axes of [n, ..., c] in the order of [n, c, ...]. Raises RefusedError for too few."""
    if rank < 3:
        raise RefusedError(f"a tensor of {rank} axes has no channels and pixels")
    return [0, rank - 1, *range(1, rank - 1)]


def _to_last(rank: int) -> list[int]:
    return [0, *range(2, rank), 1]


def data_of(value: Value) -> Array:
    """Read a constant, a sparse one in full. Raises RefusedError for a value that is none."""
    if value.is_constant and value.sparsity is not None:
        return dense(value)
    data = value.data
    if data is None:
        raise RefusedError(
            f"{value.name!r} is {_what(value)}, a computed tensor or a constant is needed"
        )
    return data


def _what(value: Value) -> str:
    if value.is_variable:
        return "a variable, which ONNX has not"
    return f"of type {value.dtype.name}" if value.is_constant else "not computed"


def constant_of(value: Value | None, what: str) -> Array:
    """Read an operand that must be known. Raises RefusedError where it is computed."""
    if value is None or not value.is_constant:
        verb = "are" if what == "the axes" else "is"
        raise RefusedError(f"{what} {verb} computed, ONNX needs a constant")
    return data_of(value)


def ints_of(value: Value | None, what: str) -> list[int]:
    """Read an operand of integers that must be known, as a list."""
    return [int(n) for n in constant_of(value, what).reshape(-1)]


def known_shape(value: Value) -> tuple[int, ...]:
    """Read a shape all of which must be known. Raises RefusedError where it is not."""
    if None in value.shape:
        raise RefusedError(f"the shape of {value.name!r} is not known")
    return value.dims


def dtype_of(array: Array) -> TensorType:
    """Find the element type of an array."""
    from luciole.ir.dtypes import tensor_type

    return tensor_type(array.dtype)
