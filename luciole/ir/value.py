"""A tensor of a graph: what it is called, what it holds, who makes it and who uses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from luciole.ir import dtypes, strings
from luciole.ir.dtypes import Array
from luciole.ir.errors import GraphError, UnrankedError, expect
from luciole.schema.enums import CompressionType, TensorType
from luciole.schema.printable import quoted
from luciole.schema.tables import QuantizationParameters, SparsityParameters, VariantSubType

if TYPE_CHECKING:
    from luciole.ir.graph import Graph
    from luciole.ir.op import Op

Shape = tuple[int | None, ...]
"""The extent of each axis; None where it is unknown until the model runs."""


class _Unranked(tuple[Any, ...]):
    """A shape without axes to ask for: whoever does gets an UnrankedError. It equals only itself,
    is not settled (None is in it), and stays one object when it is copied or pickled.
    """

    __slots__ = ()

    def _refuse(self, *_: object) -> NoReturn:
        raise UnrankedError("the number of axes of an operand is not known")

    __iter__ = __len__ = __getitem__ = __add__ = __radd__ = __mul__ = __rmul__ = _refuse

    def __contains__(self, extent: object) -> bool:
        return extent is None

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "UNRANKED"

    __reduce__ = __repr__


UNRANKED: Shape = _Unranked()
"""The shape of a tensor that may have any number of axes. Those of files have it only while shapes
are inferred, and in graphs that were settled to be run: files say ``[]`` of them, as of scalars.
"""


class Use(NamedTuple):
    """One place where a value is used: operand ``slot`` of ``op``."""

    op: Op
    slot: int


class Producer(NamedTuple):
    """Where a value comes from: result ``slot`` of ``op``."""

    op: Op
    slot: int


BlockTensors = tuple["Value | None", "Value | None"]
"""Other tensors of a graph: scales and zero points of a tensor's blocks."""
S = TypeVar("S")
T = TypeVar("T")


def map_blocks(
    tensors: tuple[S | None, S | None], change: Callable[[S], T | None]
) -> tuple[T | None, T | None]:
    """Change scales and zero points of blocks, tensors or their numbers, where there are any."""
    scales, points = tensors
    return None if scales is None else change(scales), None if points is None else change(points)


class Buffer:
    """Raw bytes of a constant. Values may share one; identity is what is shared."""

    def __init__(self, data: NDArray[np.uint8] | None = None) -> None:
        self.data = data

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self.data is not None:
            self.data.flags.writeable = False  # as it was before it was pickled

    def __copy__(self) -> Buffer:
        return Buffer(self.data)

    def __deepcopy__(self, known: dict[int, Any]) -> Buffer:
        """Make another buffer: with the same bytes where nobody can write to them."""
        shared = self.data is None or not self.data.flags.writeable
        return Buffer(self.data if shared else copy(self.data))

    def __len__(self) -> int:
        return 0 if self.data is None else len(self.data)

    def __bool__(self) -> bool:
        return True


_LINKS = frozenset({"graph", "producer", "users", "block_tensors"})
"""Attributes that tie a tensor to its surroundings."""


class Value:
    """One tensor.

    ``dims`` are the extents to allocate when nothing else is known (1 for an unknown axis, as files
    have it) and ``shape_signature``, kept as it was read, marks the unknown ones with -1; ``shape``
    shows both as one. What has contents has the extents that they have, whatever a signature says.
    ``block_tensors`` are the scales and zero points that a blockwise quantization speaks of.
    """

    def __init__(
        self, name: str, dtype: TensorType, shape: Shape = (), buffer: Buffer | None = None
    ) -> None:
        expect(name, str, "the name of a tensor: a text")
        self.graph: Graph | None = None
        self._name = name
        self.dtype = dtype
        self.dims: tuple[int, ...] = ()
        self.shape_signature: tuple[int, ...] | None = None
        self.is_unranked = False
        self.shape = shape
        self.buffer = buffer
        self.quantization: QuantizationParameters | None = None
        self.block_tensors: BlockTensors = (None, None)
        self.sparsity: SparsityParameters | None = None
        self.is_variable = False
        self.has_rank = False
        self.variant_tensors: list[VariantSubType] | None = None
        self.compression_type = CompressionType.NONE
        self.producer: Producer | None = None
        self.users: list[Use] = []

    def __repr__(self) -> str:
        return f"<{self.dtype.name} {shape_text(self.shape)} {quoted(self.name)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a tensor of a graph as its number there, with the graph."""
        if self.graph is None:
            return Value.restored, (self.own_attributes(),)
        return _value_of, (self.graph, self.graph.values.index(self))

    def __copy__(self) -> Value:
        return self.clone()

    def clone(self) -> Value:
        """Copy the tensor, of no graph yet. Its contents are shared."""
        attributes = self.own_attributes()
        tables = {name: copy(attributes[name]) for name in ("quantization", "sparsity")}
        return Value.restored(attributes | tables)

    def own_attributes(self) -> dict[str, Any]:
        """Gather a tensor's attributes without the graph around it."""
        return {name: held for name, held in vars(self).items() if name not in _LINKS}

    @classmethod
    def restored(cls, attributes: dict[str, Any]) -> Value:
        """Make a tensor of no graph with the given attributes."""
        value = cls.__new__(cls)
        vars(value).update(attributes)
        value.graph, value.producer, value.users = None, None, []
        value.block_tensors = (None, None)
        return value

    @property
    def name(self) -> str:
        """What files and programs call the tensor. Several may have one name."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        expect(name, str, "the name of a tensor: a text")
        old, self._name = self._name, name
        if self.graph is not None:
            self.graph.count_renamed(old, name)

    @property
    def dtype(self) -> TensorType:
        """The type of the elements."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: TensorType) -> None:
        expect(dtype, TensorType, f"{self._name!r}: a TensorType as dtype")
        self._dtype = dtype

    @property
    def shape(self) -> Shape:
        """The extent of each axis, None where unknown. A known one is that of ``dims``: memory has
        it, so a signature that contradicts (``verify`` says so) must not count.
        """
        signature, dims = self.shape_signature, self.dims
        if self.is_unranked:
            return UNRANKED
        if signature is None or len(signature) != len(dims) or self.has_contents:
            return dims
        return tuple(None if s < 0 else n for s, n in zip(signature, dims, strict=True))

    @shape.setter
    def shape(self, shape: Shape) -> None:
        self.is_unranked = shape is UNRANKED
        if self.is_unranked:
            self.dims, self.shape_signature = (), None  # what a file says then
            return
        self._refuse_no_shape(shape)
        known = all(n is not None for n in shape)
        self.dims = tuple(1 if n is None else int(n) for n in shape)
        self.shape_signature = None if known else tuple(-1 if n is None else int(n) for n in shape)

    def _refuse_no_shape(self, shape: object) -> None:
        if not isinstance(shape, tuple | list):
            expect(shape, (tuple, list), f"{self._name!r}: a list of extents as shape")
            return
        for extent in shape:
            if extent is not None and type(extent) is not int:
                expect(extent, (int, np.integer), f"{self._name!r}: a whole number as extent")

    @property
    def has_contents(self) -> bool:
        """Whether the model keeps contents of these extents: a constant's, or a variable's state.
        Nothing needs to be stored of a sparse constant that is 0, and where an extent is.
        """
        if self.producer is not None or self.is_input:
            return False
        stored = self.buffer is not None and len(self.buffer) > 0
        return stored or self.is_variable or self.sparsity is not None or 0 in self.dims

    @property
    def has_open_rank(self) -> bool:
        """Whether the file gives no extents and does not say either that this is a scalar, as only
        ``has_rank`` does: it is one unless inference finds another shape.
        """
        return not self.has_rank and not self.dims and not self.has_contents

    @property
    def is_constant(self) -> bool:
        """Whether the contents are part of the model (also when there are none: an axis of extent
        0).
        """
        return not self.is_variable and self.has_contents

    @property
    def is_input(self) -> bool:
        """Whether the graph's caller provides the contents."""
        return self.graph is not None and self in self.graph.inputs

    @property
    def is_output(self) -> bool:
        """Whether the graph's caller gets the contents."""
        return self.graph is not None and self in self.graph.outputs

    @property
    def contents(self) -> Array:
        """The contents of a constant as ``data`` has them. Raises GraphError for all others."""
        data = self.data
        if data is None:
            raise GraphError(f"tensor {self.name!r} is no constant with contents")
        return data

    @property
    def data(self) -> Array | None:
        """The contents of a constant, read-only, shaped and unpacked; None for everything else,
        also for ``texts``.

        Raises GraphError when the buffer is not as long as shape and dtype say, and for extents
        that no array has.
        """
        if not self.is_constant or self.sparsity is not None:
            return None
        raw = self._stored()
        needed = dtypes.byte_count(self.dtype, element_count(self.dims))
        if needed is not None and needed != len(raw):
            raise GraphError(
                f"tensor {self.name!r}: {shape_text(self.dims)} of {self.dtype.name} "
                f"takes {needed} bytes, "
                f"its buffer has {len(raw)}"
            )
        self._refuse_impossible()
        return dtypes.unpack(raw, self.dtype, self.dims)

    @property
    def texts(self) -> Array | None:
        """The contents of a constant of type STRING, bytes objects in its shape; None for
        everything else.

        Raises GraphError when the buffer is damaged or holds another number of texts, and for
        extents that no array has.
        """
        if self.dtype != TensorType.STRING or not self.is_constant:
            return None
        self._refuse_impossible()
        fault = self.text_fault()
        if fault is not None:
            raise GraphError(f"tensor {self.name!r}: {fault}")
        return strings.array_of(strings.decode(self._stored()) or (), self.dims)

    def text_fault(self) -> str | None:
        """Return why the buffer of a constant of type STRING does not hold its texts, None where it
        does.
        """
        offsets, count = strings.ends(self._stored()), element_count(self.dims)
        if offsets is not None and len(offsets) == count + 1:
            return None
        holds = "is damaged" if offsets is None else f"holds {len(offsets) - 1}"
        return f"{shape_text(self.dims)} of STRING takes {count} texts, its buffer {holds}"

    def _stored(self) -> NDArray[np.uint8]:
        raw = self.buffer.data if self.buffer is not None else None
        return np.empty(0, np.uint8) if raw is None else raw

    def _refuse_impossible(self) -> None:
        reason = impossible(self.dims)
        if reason is not None:
            raise GraphError(f"tensor {self.name!r} has {reason}")

    def set_data(self, array: Array) -> None:
        """Give a constant or a variable other contents, of the type and the extents that it has.
        What it held before leaves the model where no other tensor holds it.

        Raises GraphError for an array of another type or shape (``make_constant`` takes them), and
        for a tensor whose contents are computed or given by the graph's caller.
        """
        self._refuse_other(array)
        self._hold(self._packed(array, self.dtype)[0])

    def make_constant(self, array: Array, dtype: TensorType | None = None) -> None:
        """Make this a constant of the array's contents, type and shape, whatever it was (``dtype``
        for types that NumPy does not have). Operators that use it must take these: ``verify`` says
        which do not. Raises GraphError for a tensor whose contents are computed or given.
        """
        self._refuse_contents()
        self._refuse_no_array(array)
        expect(dtype, (TensorType, type(None)), f"{self.name!r}: a TensorType as dtype")
        raw, dtype = self._packed(array, dtype)
        self.dtype, self.shape = dtype, array.shape
        self._hold(raw)

    def _refuse_contents(self) -> None:
        if self.producer is not None:
            raise GraphError(
                f"tensor {self.name!r} is computed by {self.producer.op}: it takes no contents"
            )
        if self.is_input:
            raise GraphError(
                f"tensor {self.name!r} is an input, whose contents its caller gives: "
                "it takes no contents"
            )

    def _refuse_no_array(self, contents: object) -> None:
        if not isinstance(contents, np.ndarray):
            kind = type(contents).__name__
            raise GraphError(f"tensor {self.name!r} takes a NumPy array as contents, found {kind}")

    def _refuse_other(self, array: Array) -> None:
        """Refuse contents of another type or shape than the tensor's own; all kinds of texts do."""
        self._refuse_contents()
        self._refuse_no_array(array)
        has_array = self.dtype in dtypes.NUMPY or self.dtype in dtypes.PACKED
        own = dtypes.array_type(self.dtype) if has_array else array.dtype  # ``pack`` looks at it
        if array.dtype != own or array.shape != self.dims:
            raise GraphError(
                f"tensor {self.name!r} is {self.dtype.name} {shape_text(self.dims)} ({own} in "
                f"NumPy), given was {array.dtype} {shape_text(array.shape)}: "
                "make_constant takes another type or shape"
            )

    def _packed(
        self, array: Array, dtype: TensorType | None
    ) -> tuple[NDArray[np.uint8], TensorType]:
        """Turn an array into the bytes of a buffer, and find their type where none is asked for.
        Raises GraphError for elements that no tensor, or none of the type, can have.
        """
        try:
            dtype = dtypes.tensor_type(array.dtype) if dtype is None else dtype
            dtypes.check_whole(array, dtype)
            return dtypes.pack(array, dtype), dtype
        except (TypeError, ValueError) as error:
            raise GraphError(f"tensor {self.name!r}: {error}") from None

    def _hold(self, packed: NDArray[np.uint8]) -> None:
        """Hold a copy of an array's bytes in a buffer that replaces the one before."""
        raw = packed.copy()  # the caller may go on using the array
        raw.flags.writeable = False
        before, self.buffer, self.sparsity = self.buffer, Buffer(raw), None
        model = self.graph.model if self.graph is not None else None
        if before is not None and model is not None:
            model.replace_buffer(before, self.buffer)

    def replace_with(self, other: Value) -> None:
        """Make everything that uses this value use another one, the graph's outputs and signatures
        included.
        """
        expect(other, Value, "a tensor to use instead")
        if other.graph is not self.graph:
            raise GraphError(f"tensor {other.name!r} is of another graph than {self.name!r}")
        for op, slot in list(self.users):
            op.set_operand(slot, other)
        if self.graph is not None:
            self.graph.outputs = [other if v is self else v for v in self.graph.outputs]
            self.graph.rename_in_signatures(self, other)


def _value_of(graph: Graph, number: int) -> Value:
    return graph.values[number]


def element_count(shape: tuple[int, ...]) -> int:
    """Number of elements, exact for all that tensors may have, and for others as long as it does
    not need thousands of digits.
    """
    if 0 in shape:
        return 0
    count = 1
    for n in shape:
        count *= n
        if abs(count) > _ABSURD_COUNT:
            break
    return count


_ABSURD_COUNT = 2 ** (31 * 32)


MOST_AXES = 32
"""Axes that a tensor may have: as many as every NumPy takes."""

_WIDEST = 16
"""Bytes of the widest element."""

_LARGEST_EXTENT = 2**31 - 1
_LARGEST_ARRAY = 2**62


def impossible(dims: Sequence[int], itemsize: int = _WIDEST) -> str | None:
    """Return why no array has these extents, None where one may. An extent of 0 hides no absurd
    one.
    """
    if len(dims) > MOST_AXES:
        return f"{len(dims)} axes, at most {MOST_AXES} are possible"
    if min(dims, default=0) < 0:
        return f"an extent of {min(dims)}, 0 is the least"
    if max(dims, default=0) > _LARGEST_EXTENT:
        return f"an extent of {max(dims)}, at most {_LARGEST_EXTENT} are possible"
    if element_count(tuple(max(n, 1) for n in dims)) * itemsize > _LARGEST_ARRAY:
        return f"more than {_LARGEST_ARRAY} bytes along the axes that are not 0"
    return None


def shape_text(shape: Shape) -> str:
    """Write a shape as ``[1,?,3]``, of a tensor that cannot be only how many axes it has, and
    ``[*]`` where that is not known.
    """
    if shape is UNRANKED:
        return "[*]"
    if len(shape) > MOST_AXES:
        return f"[{len(shape)} axes]"
    return "[" + ",".join("?" if n is None else str(n) for n in shape) + "]"


def compatible(a: Shape, b: Shape) -> bool:
    """Return whether two shapes can be the same; an unknown extent or rank fits any."""
    if a is UNRANKED or b is UNRANKED:
        return True
    return len(a) == len(b) and all(None in (m, n) or m == n for m, n in zip(a, b, strict=True))


def has_batch_axis(value: Value) -> bool:
    """Return whether a tensor's first axis counts records: it is 1 or unknown."""
    return bool(value.shape) and value.shape[0] in (None, 1)
