"""Operators: the base class that turns a short declaration into everything generic code needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

import numpy as np

from luciole.ir.errors import (
    SLIPS,
    DefinitionError,
    GraphError,
    LucioleError,
    ShapeError,
    UnrankedError,
    expect,
)
from luciole.ir.fields import REQUIRED, Field, attr, listed, operand, operands, subgraph, subgraphs
from luciole.ir.quant import Pole, Quant
from luciole.ir.value import UNRANKED, Shape, Use, Value, element_count
from luciole.schema.enums import BuiltinOperator, TensorType
from luciole.schema.printable import shorten

if TYPE_CHECKING:
    from luciole.ir.dtypes import Array
    from luciole.ir.graph import Graph
    from luciole.ir.rules import Ints, PartialInts

OPS: dict[BuiltinOperator, type[Op]] = {}
"""Every operator class by builtin code; filled as the modules of ``ir/ops`` are imported."""

CUSTOM_OPS: dict[str, type[Op]] = {}
"""Every operator class by its name in files behind CUSTOM. Those whose builtin code is CUSTOM are
only here: their attributes are the entries of a FlexBuffer map.
"""

HOOKS = frozenset(
    {"infer_shape", "infer_dtype", "infer_ints", "verify", "fold", "macs", "weight_shape"}
)
_LINKS = frozenset({"operands", "results", "intermediates", "graph"})
"""Attributes that tie an operator to its surroundings."""

MOST_QUOTED = 1000
"""Characters of a name in a sentence: files may have names as long as themselves."""


@dataclass(frozen=True)
class FileOptions:
    """Custom options as a file has them, and the attributes that were read from them: they are
    written again as long as these stay.
    """

    raw: bytes
    attributes: dict[str, Any]


@dataclass_transform(field_specifiers=(operand, operands, attr, subgraph, subgraphs))
class Op:
    """Base of every operator. See docs/how-to/add-an-operator.md for how a class is declared.

    ``stateful`` says that more happens than that results are computed from operands: something is
    read or written that outlives a run, or another graph is called, which may do so. Such an
    operator is never computed beforehand and never removed. ``reshapes`` says that the result is
    the first operand's elements in their order, so that both may share one place.
    ``unpacks`` says that constants were made small on purpose: passes leave it as it is.
    ``oldest_version`` is the first that TFLite's runtimes know: what a new operator is written as.
    ``packed`` says that custom options are a C struct of the attributes, an int32 each.
    ``poles`` are the operands near 0 of which results grow without bound or end.
    """

    code: ClassVar[BuiltinOperator]
    options: ClassVar[str | None] = None
    custom_code: ClassVar[str | None] = None
    result_names: ClassVar[tuple[str, ...]] = ("output",)
    variadic_results: ClassVar[bool] = False
    stateful: ClassVar[bool] = False
    reshapes: ClassVar[bool] = False
    unpacks: ClassVar[bool] = False
    oldest_version: ClassVar[int] = 1
    packed: ClassVar[bool] = False
    quant: ClassVar[Quant | None] = None
    poles: ClassVar[tuple[Pole, ...]] = ()
    fields: ClassVar[tuple[Field, ...]] = ()
    _operand_fields: ClassVar[tuple[Field, ...]] = ()
    _attr_fields: ClassVar[tuple[Field, ...]] = ()

    def __init_subclass__(
        cls,
        code: BuiltinOperator | None = None,
        options: str | None = None,
        custom_code: str | None = None,
    ) -> None:
        _check_names(cls)
        cls.fields = (*cls.fields, *(m for m in vars(cls).values() if isinstance(m, Field)))
        cls._operand_fields = tuple(f for f in cls.fields if f.kind != "attr")
        cls._attr_fields = tuple(f for f in cls.fields if f.kind == "attr")
        for index, field in enumerate(cls.operand_fields()):
            field.index = index
        for field in cls.attr_fields():
            setattr(cls, field.name, field.default)
        _check_definition(cls)
        if code is None:
            return
        cls.code, cls.options, cls.custom_code = code, options, custom_code
        _register(cls)

    def __init__(self, *args: Any, **keywords: Any) -> None:
        self._setup()
        slots: list[Value | None] = []
        rest = list(args)
        for field in self.operand_fields():
            value = rest.pop(0) if rest else keywords.pop(field.name, field.default)
            if value is REQUIRED:
                raise TypeError(f"{type(self).__name__} needs operand {field.name!r}")
            slots.extend(self._operands_for(field, value))
        while slots and slots[-1] is None and not self.operand_field(len(slots) - 1).explicit:
            slots.pop()
        self.set_operands(slots)
        self._set_attributes(keywords)
        if rest or keywords:
            raise TypeError(
                f"{type(self).__name__} got unknown arguments {sorted(keywords) or rest}"
            )

    def _operands_for(self, field: Field, value: Any) -> Iterable[Value | None]:
        kind = type(self).__name__
        if field.kind == "operands":
            return listed(value, f"{kind}.{field.name}")
        if value is None and field.default is REQUIRED:
            raise GraphError(f"{kind}: a tensor as {field.name!r} is needed, found None")
        return [value]

    def _setup(self) -> None:
        self.operands: tuple[Value | None, ...] = ()
        self.results: tuple[Value, ...] = ()
        self.graph: Graph | None = None
        self.version = self.oldest_version
        self.has_options = True
        self.file_options: FileOptions | None = None
        self.intermediates: tuple[Value, ...] = ()
        self.mutating_variable_inputs: tuple[bool, ...] = ()
        self.debug_metadata_index = -1

    def _set_attributes(self, keywords: dict[str, Any]) -> None:
        for field in self.attr_fields():
            if field.name in keywords:
                setattr(self, field.name, keywords.pop(field.name))

    @classmethod
    def from_operands(cls, slots: Sequence[Value | None], attributes: dict[str, Any]) -> Op:
        """Make an operator from operands as a file lists them (absent ones are None or not there).

        Raises ShapeError when their number does not fit the declaration.
        """
        fields, variadic = cls.operand_fields(), cls._is_variadic()
        if len(slots) > len(fields) and not variadic:
            raise ShapeError(f"{len(slots)} operands, {cls.__name__} takes at most {len(fields)}")
        for index, field in enumerate(fields):
            if field.default is REQUIRED and (index >= len(slots) or slots[index] is None):
                raise ShapeError(f"operand {field.name!r} is missing")
        if variadic and None in slots[len(fields) - 1 :]:
            raise ShapeError(f"one of the operands {fields[-1].name!r} is missing")
        op = cls.__new__(cls)
        op._setup()
        op.set_operands(slots)
        op._set_attributes(dict(attributes))
        return op

    @classmethod
    def operand_fields(cls) -> tuple[Field, ...]:
        """List the declared operands, in file order."""
        return cls._operand_fields

    @classmethod
    def operand_field(cls, slot: int) -> Field:
        """Find the declaration of an operand in a slot: the last one is that of all behind it."""
        fields = cls._operand_fields
        return fields[slot] if slot < len(fields) else fields[-1]

    @classmethod
    def _is_variadic(cls) -> bool:
        fields = cls.operand_fields()
        return bool(fields) and fields[-1].kind == "operands"

    @classmethod
    def arguments(cls, operands: Sequence[Any]) -> list[Any]:
        """Arrange operands in file order as a function of them takes them: None for absent ones, a
        tuple for a variadic one.
        """
        variadic = cls._is_variadic()
        fixed = len(cls.operand_fields()) - variadic
        absent = [None] * (fixed - len(operands))
        return [*operands[:fixed], *absent, *([tuple(operands[fixed:])] if variadic else [])]

    @classmethod
    def attr_fields(cls) -> tuple[Field, ...]:
        """List the declared attributes."""
        return cls._attr_fields

    @property
    def kind(self) -> str:
        """Circle's name of the operator, for example ``CONV_2D``, or ``CUSTOM(code)``."""
        is_custom = self.code == BuiltinOperator.CUSTOM
        return f"CUSTOM({self.custom_code})" if is_custom else self.code.name

    @property
    def name(self) -> str:
        """The name of the first result: operators have none of their own in a file."""
        return self.results[0].name if self.results else ""

    @property
    def output(self) -> Value:
        """The first result."""
        return self.results[0]

    @property
    def own_graph(self) -> Graph:
        """The graph that the operator is in. Raises GraphError where it is in none."""
        if self.graph is None:
            raise GraphError(f"{self} is in no graph")
        return self.graph

    @property
    def quantized_as(self) -> Quant:
        """What quantizers must know. Raises GraphError for an operator whose class says nothing."""
        if self.quant is None:
            raise GraphError(f"{self} is never quantized")
        return self.quant

    def required(self, slot: int) -> Value:
        """Return an operand that is there. Raises GraphError where it is absent."""
        value = self.operands[slot] if slot < len(self.operands) else None
        if value is None:
            raise GraphError(f"{self}: operand {slot} is absent")
        return value

    def __str__(self) -> str:
        return f"{type(self).__name__} {shorten(self.name, MOST_QUOTED)!r}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle an operator of a graph as its number there, with the graph."""
        if self.graph is None:
            links = (self.operands, self.results, self.intermediates)
            return _loose_op, (type(self), self.own_attributes(), *links)
        return _op_of, (self.graph, self.graph.ops.index(self))

    def __copy__(self) -> Op:
        return self.clone(self.operands)

    def set_operand(self, slot: int, value: Value | None) -> None:
        """Set an operand to another value (None: absent); both values' users are kept current."""
        expect(slot, (int, np.integer), "slot: a whole number")
        most = None if self._is_variadic() else len(self.operand_fields())
        if slot < 0 or (most is not None and slot >= most):
            bound = "" if most is None else f": it takes at most {most}"
            raise GraphError(f"{self} has no operand {slot}{bound}")
        self.set_operands(
            [value if i == slot else old for i, old in enumerate(self.operands)]
            if slot < len(self.operands)
            else [*self.operands, *[None] * (slot - len(self.operands)), value]
        )

    def set_operands(self, slots: Sequence[Value | None]) -> None:
        """Replace all operands at once. Raises GraphError for one that is of another graph."""
        slots = listed(slots, f"{type(self).__name__}.operands")
        for value in slots:
            expect(value, (Value, type(None)), f"{type(self).__name__}: a tensor as operand")
            if self.graph is not None and value is not None and value.graph is not self.graph:
                raise GraphError(f"{self}: operand {value.name!r} is not of this graph")
        for slot, old in enumerate(self.operands):
            if old is not None and (slot >= len(slots) or slots[slot] is not old):
                old.users.remove(Use(self, slot))
        for slot, new in enumerate(slots):
            if new is not None and (slot >= len(self.operands) or self.operands[slot] is not new):
                new.users.append(Use(self, slot))
        self.operands = tuple(slots)

    def called_graphs(self) -> tuple[Graph, ...]:
        """List the graphs that the operator may call, in the order of its attributes."""
        held = (getattr(self, f.name) for f in self.attr_fields() if f.is_graph)
        groups = (graphs if isinstance(graphs, tuple) else (graphs,) for graphs in held)
        return tuple(graph for graphs in groups for graph in graphs if graph is not None)

    def attributes(self) -> dict[str, Any]:
        """Return attribute values by attribute name."""
        return {f.name: getattr(self, f.name) for f in self.attr_fields()}

    def named_operands(self) -> Iterator[tuple[str, Value | None]]:
        """Return operand names with their values; a variadic one is numbered."""
        for slot, value in enumerate(self.operands):
            field = self.operand_field(slot)
            name = f"{field.name}[{slot - field.index}]" if field.kind == "operands" else field.name
            yield name, value

    def given_operands(self) -> dict[str, Value]:
        """List the operands that are there, by name."""
        return {name: value for name, value in self.named_operands() if value is not None}

    def clone(self, slots: Sequence[Value | None]) -> Op:
        """Copy the operator with other operands, in no graph yet."""
        op = self.restored(self.own_attributes())
        op.intermediates = self.intermediates
        op.set_operands(slots)
        return op

    def own_attributes(self) -> dict[str, Any]:
        """Gather an operator's attributes without the tensors and the graph around it."""
        return {name: held for name, held in vars(self).items() if name not in _LINKS}

    @classmethod
    def restored(cls, attributes: dict[str, Any]) -> Op:
        """Make an operator on no tensors, of no graph, with the given attributes."""
        op = cls.__new__(cls)
        op._setup()
        vars(op).update(attributes)
        return op

    # ------------------------------------------------------------- hooks, for subclasses to define
    def infer_shape(self, /) -> Shape | tuple[Shape, ...]:
        """Infer the results' shapes from the operands' (a tuple of shapes where there are several
        results).
        """
        raise ShapeError(f"{type(self).__name__} has no shape rule")

    def infer_dtype(self, /) -> TensorType | tuple[TensorType, ...]:
        """Infer the results' element types; that of the first operand unless a class says
        otherwise.
        """
        first = self.operands[0] if self.operands else None
        if first is None:
            raise ShapeError("the element type cannot be inferred without a first operand")
        return first.dtype

    def verify(self, /) -> Iterator[str]:
        """List, in a sentence each, the rules that attributes or operands break."""
        yield from ()

    def fold(self, /) -> Array | None:
        """Compute the result where shapes alone decide it, else return None."""
        return None

    def infer_ints(self, known: PartialInts, /) -> Ints | None:
        """Infer the entries of a vector or scalar of integers as far as extents say them, None for
        those that they do not; ``known`` are the operands'. None where nothing is known.
        """
        return None

    def weight_shape(self, /) -> tuple[int, ...] | None:
        """Infer the extents of the weights that stand behind packed constants, outputs first; None
        for an operator whose operands show their weights as they are.
        """
        return None

    def macs(self, /) -> int | None:
        """Count multiply-accumulates of one run, None where no matrices are multiplied: for an
        operator with weights, each element of the result takes as many as an output has weights.

        An unknown extent counts as 1. Additions of a bias do not count, taps on padding do.
        """
        packed, quant = self.weight_shape(), self.quant
        if packed is not None:
            return element_count(self.output.dims) * element_count(packed[1:])
        if quant is None or quant.weight is None:
            return None
        weights = self.given_operands().get(quant.weight)
        if weights is None or not _has_axis(weights, quant.axis):
            return None
        outputs = weights.dims[quant.axis]
        each = element_count(weights.dims) // outputs if outputs else 0
        return element_count(self.output.dims) * each

    # ------------------------------------------------------------- the hooks' answers, made uniform
    def result_shapes(self) -> tuple[Shape, ...]:
        """Infer one shape per result: none that a rule finds only from axes of operands which have
        no rank. Raises ShapeError that names the operator.
        """
        try:
            shapes: Any = self._answer(self.infer_shape)
        except UnrankedError:
            return (UNRANKED,) * (len(self.results) or len(self.result_names))
        several = bool(shapes) and isinstance(shapes[0], tuple)
        return shapes if several or self.variadic_results else (shapes,)

    def result_dtypes(self, count: int | None = None) -> tuple[TensorType, ...]:
        """Infer one element type per result: a single answer holds for all of them, which are as
        many as there are shapes unless ``count`` says it.
        """
        types: Any = self._answer(self.infer_dtype)
        if isinstance(types, tuple):
            return types
        return (types,) * (len(self.result_shapes()) if count is None else count)

    def broken_rules(self) -> Iterator[str]:
        """List the sentences of the class's own ``verify``, and one where it fails; nothing of
        operands that have no rank.
        """
        try:
            yield from self.verify()
        except UnrankedError:
            return
        except SLIPS as error:
            yield _slip(error)

    def _answer(self, rule: Callable[[], Any]) -> Any:
        """Ask a rule. Raises ShapeError that names the operator, whatever the rule raised: operands
        come from untrusted files.
        """
        try:
            return rule()
        except ShapeError as error:
            raise type(error)(f"{self}: {error}") from None
        except LucioleError:
            raise
        except SLIPS as error:
            raise ShapeError(f"{self}: {_slip(error)}") from error


def _slip(error: Exception) -> str:
    """Put an error of Python's own in words, on one line."""
    text = " ".join(str(error).split())
    return f"{SLIP} ({type(error).__name__}: {text})"


SLIP = "its rule does not take these operands"
"""Sentence where a rule's author did not think of operands: no case of the fuzzer's may have it."""


def _op_of(graph: Graph, number: int) -> Op:
    return graph.ops[number]


def _loose_op(
    cls: type[Op],
    attributes: dict[str, Any],
    operands: tuple[Value | None, ...],
    results: tuple[Value, ...],
    intermediates: tuple[Value, ...],
) -> Op:
    op = cls.restored(attributes)
    op.set_operands(operands)
    op.results, op.intermediates = results, intermediates
    return op


def _has_axis(value: Value, axis: int) -> bool:
    return -len(value.dims) <= axis < len(value.dims)


def _reserved() -> frozenset[str]:
    """List the names that have a meaning for every operator."""
    bare = Op.__new__(Op)
    bare._setup()
    return frozenset([*dir(Op), *Op.__annotations__, *vars(bare)])


_RESERVED = _reserved()


def _register(cls: type[Op]) -> None:
    """Register a class by its codes. Raises DefinitionError where one is taken or missing."""
    code, name = cls.code, cls.custom_code
    is_custom = code == BuiltinOperator.CUSTOM
    if is_custom and not name:
        raise DefinitionError(f"{cls.__name__} is CUSTOM and has no custom_code")
    owner = CUSTOM_OPS.get(name or "") or (None if is_custom else OPS.get(code))
    if owner is not None:
        taken = name if is_custom else code.name
        raise DefinitionError(f"{taken} is declared twice: {owner.__name__} and {cls.__name__}")
    if name:
        CUSTOM_OPS[name] = cls
    if not is_custom:
        OPS[code] = cls


def _check_names(cls: type[Op]) -> None:
    """Refuse members that would hide one of every operator."""
    for name, member in vars(cls).items():
        if isinstance(member, Field) and name in _RESERVED:
            raise DefinitionError(
                f"{cls.__name__}.{name}: that name has a meaning for every operator"
            )


def _check_definition(cls: type[Op]) -> None:
    """Refuse a declaration that contradicts itself."""
    names = [f.name for f in cls.operand_fields()]
    for name, member in vars(cls).items():
        public = callable(member) and not name.startswith("_") and not isinstance(member, Field)
        if public and name not in HOOKS:
            raise DefinitionError(f"{cls.__name__}.{name} is not one of the hooks {sorted(HOOKS)}")
        spoken_of = getattr(member, "operand", None)
        if spoken_of is not None and spoken_of not in names:
            raise DefinitionError(
                f"{cls.__name__}.{name} speaks of {spoken_of!r}; the operands are {names}"
            )
    facts = [("quant", name) for name in (cls.quant.spoken_of if cls.quant else ())]
    facts += [("poles", name) for pole in cls.poles for name in pole.spoken_of]
    for fact, name in facts:
        if name not in names:
            raise DefinitionError(
                f"{cls.__name__}.{fact} speaks of {name!r}; the operands are {names}"
            )
    variadic = [f for f in cls.operand_fields() if f.kind == "operands"]
    if variadic and variadic != [cls.operand_fields()[-1]]:
        raise DefinitionError(
            f"{cls.__name__}.{variadic[0].name} takes all remaining operands: it comes last"
        )
