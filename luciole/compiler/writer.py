"""The two files of a program, in which a person finds each layer, its shape and its bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from luciole.compiler.ends import End
from luciole.compiler.headers import StructField, needed, struct_fields
from luciole.compiler.options import CALLER, CompileOptions
from luciole.compiler.text import NOT_FINITE, OF_MODEL, Names, comment, ctype_of, number, table
from luciole.ir import Array, LucioleError, Value
from luciole.ir.analysis.layout import Layout
from luciole.ir.value import element_count, shape_text
from luciole.kernels.portable.calls import CCall, Control, Field

_AT = "AT"
_DIGEST = "#digest"
"""Stands where the digest will be: comments have no such sign."""
_HELIUM = "#if defined(__ARM_FEATURE_MVE) && __ARM_FEATURE_MVE\n#include <arm_mve.h>\n#endif"
_FIXED_POINT = (
    " *",
    " * Numbers in fixed point are int32, times a power of two. Bounds hold for any input, where",
    " * each number that is encoded gets the level that it gets in exact arithmetic; one that lies",
    " * as near to a threshold as its bound may get the next one.",
)


class Writer:
    """Writes a program; names are given once, when it is made."""

    def __init__(
        self,
        options: CompileOptions,
        inputs: Sequence[End],
        outputs: Sequence[End],
        calls: Sequence[CCall],
        constants: Mapping[Value, Array],
        layout: Layout,
        rooms: Mapping[CCall, Value],
        states: Mapping[Value, Array],
        origin: str,
    ) -> None:
        self.options, self.inputs, self.outputs, self.calls = options, inputs, outputs, calls
        self._constants, self._layout, self._rooms = constants, layout, rooms
        used = {value for call in calls for value in (*call.reads, *call.writes)}
        self.states = {value: array for value, array in states.items() if value in used}
        self._origin = comment(origin)
        self._words = max((call.words for call in calls), default=0) or 1
        self.table_bytes = 0
        self._tables: dict[tuple[str, str], str] = {}
        names = Names(f"{options.name}_run", f"{options.name}_reset")
        self._values = {e.value: names.of(e.name or e.value.name) for e in (*inputs, *outputs)}
        for call in calls:
            for value in (*call.reads, *call.writes):
                if value not in self._values:
                    self._values[value] = names.of(value.name)
        own = [call for call in calls if call.control is None]
        self._layers = {call: names.of(f"{_what(call)}_layer") for call in own}
        self._names = names
        texts = ["\n".join(self._layer(call)) for call in calls]
        self._layer_texts = [text for text in texts if text]
        self._reset_texts = ["\n".join(self._reset())] if self.states else []

    # -- the header

    @cached_property
    def files(self) -> tuple[str, str]:
        """The header and the source; both hold the digest of the two, and the source does not
        compile beside another header.
        """
        header, parts = self._header(), self._source()
        self._layer_texts.clear()  # which are in the parts, and may be large
        digested = hashlib.sha256(header.encode())
        for part in parts:
            digested.update(f"{part}\n".encode())
        digest = f"0x{digested.hexdigest()[:8]}u"
        name, macro = self.options.name, f"{self.options.name.upper()}_DIGEST"
        told = f"#define {macro} {digest} /* of {name}.h and {name}.c */"
        checked = (
            f"#if {macro} != {digest}\n"
            f'#error "{name}.h and {name}.c are not of the same network"\n#endif'
        )
        source = "\n\n".join(part.replace(_DIGEST, checked) for part in parts)
        return header.replace(_DIGEST, told, 1), source

    def _header(self) -> str:
        """Write the header: sizes, and the one function."""
        upper, name = self.options.name.upper(), self.options.name
        lines = [
            f"/* {name}.h - written by {self._origin}. C99. */",
            f"#ifndef {upper}_H",
            f"#define {upper}_H",
            "",
            "#include <stdint.h>",
            "",
            _DIGEST,
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            "enum {",
            f"    {upper}_ARENA_BYTES = {self._arena}, /* {self._arena_note} */",
            f"    {upper}_TABLE_BYTES = {self.table_bytes}, /* constants, in flash */",
            *(line for end in (*self.inputs, *self.outputs) for line in self._sizes(end)),
            "};",
            "",
            *self._state_declared(),
            "/* Runs the network once; 0 means that all went well. Arguments must not overlap.",
            f" * {self._threads_note}",
            " */",
            f"{self._signature()};",
            "",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
            "#endif",
        ]
        return "\n".join(lines) + "\n"

    @property
    def _arena(self) -> int:
        return self._layout.size

    @property
    def _arena_note(self) -> str:
        if self.options.arena == CALLER:
            return "of memory that callers give, at a multiple of 8"
        return "of static memory"

    @property
    def _threads_note(self) -> str:
        """Whether runs may be at the same time."""
        if self._arena and self.options.arena != CALLER:
            return (
                "One run at a time: tensors share static memory (callers give it: --arena caller)."
            )
        own = ["an arena"] * (self.options.arena == CALLER) + ["a state"] * bool(self.states)
        each = f", each with {' and '.join(own)} of its own" if own else ""
        return f"Several threads may call it at once{each}: nothing else is written."

    def _sizes(self, end: End) -> Iterator[str]:
        value, called = end.value, self._values[end.value].removeprefix(OF_MODEL)
        upper = f"{self.options.name}_{called}".upper()
        note = f", {comment(end.note)}" if end.note else ""
        kind = f"{value.dtype.name.lower()} {shape_text(value.dims)}"
        yield f"    {upper}_SIZE = {element_count(value.dims)}, /* {kind}{note} */"
        if end.places is not None:
            yield f"    {upper}_PLACES = {end.places},"

    def _signature(self) -> str:
        state = [self._state_parameter] if self.states else []
        arena = ["void *arena"] if self.options.arena == CALLER else []
        inputs = [f"const {self._array(end.value)}" for end in self.inputs]
        outputs = [self._array(end.value) for end in self.outputs]
        return f"int {self.options.name}_run({', '.join([*state, *arena, *inputs, *outputs])})"

    @property
    def _state_parameter(self) -> str:
        return f"struct {self.options.name}_state *state"

    def _state_declared(self) -> Iterator[str]:
        """Declare the struct of what lasts, and the function that begins it."""
        if not self.states:
            return
        yield "/* Lasts from run to run: one goes on where the last one with the struct ended. */"
        yield f"struct {self.options.name}_state {{"
        for value in self.states:
            yield f"    {self._array(value)}; /* {shape_text(value.dims)} */"
        yield "};"
        yield ""
        yield "/* Lets the next run begin from the start. Call it before the first run, too. */"
        yield f"{self._reset_signature()};"
        yield ""

    def _reset_signature(self) -> str:
        return f"void {self.options.name}_reset({self._state_parameter})"

    def _array(self, value: Value) -> str:
        return f"{ctype_of(value.dtype)} {self._values[value]}[{element_count(value.dims)}]"

    # -- the source

    def _source(self) -> list[str]:
        """Write the parts of the source: the network in a comment, kernels, tables, the calls."""
        odd = any(word in text for text in self._layer_texts for word in NOT_FINITE)
        headers = ["math.h"] * odd + ["stddef.h", "string.h"]
        included = "\n".join(f"#include <{header}>" for header in headers)
        kernels = list(self._kernels())
        if any("LUC_MVE" in text for text in kernels):
            included += f"\n{_HELIUM}"
        return [
            "\n".join(self._overview()),
            f'#include "{self.options.name}.h"\n\n{included}\n\n{_DIGEST}',
            *kernels,
            _title("Layers and their tables"),
            *self._layer_texts,
            _title("The network"),
            *self._memory(),
            *self._reset_texts,
            "\n".join([*self._run(), ""]),
        ]

    def _overview(self) -> Iterator[str]:
        name = self.options.name
        yield f"/* {name}.c - written by {self._origin}."
        yield " *"
        yield f" * {self.table_bytes} bytes of tables, {self._arena} bytes of memory while it runs."
        yield " *"
        for call, layer in self._layers.items():
            yield f" *   {layer}: {comment(_title_of(call))}"
            if call.fixed is not None:
                yield f" *     {comment(str(call.fixed))}"
        if any(call.fixed is not None for call in self.calls):
            yield from _FIXED_POINT
        yield " */"

    def _kernels(self) -> Iterator[str]:
        source = ""
        functions = dict.fromkeys(call.function for call in self._layers)
        for piece in needed(functions, self._words):
            if piece.source != source:
                source = piece.source
                yield _title(f"luciole/kernels/{source}")
            yield piece.text.rstrip("\n")

    def _layer(self, call: CCall) -> Iterator[str]:
        """Write a call's tables and the struct that names them."""
        before, texts = self.table_bytes, []
        for value in call.reads:
            if value in self._constants:
                texts += self._constant(value)
        if call.control is not None:
            yield from texts
            return
        name = self._layers[call].removesuffix("_layer")
        cells = self._fields(name, call.struct, call.fields, texts)
        size = self.table_bytes - before
        note = f"; {call.note}" if call.note else ""
        yield f"/* {comment(_title_of(call) + note)}; {size} bytes of tables */"
        yield from texts
        yield f"static const struct {call.struct} {self._layers[call]} = {{"
        yield from (f"    .{cell}," for cell in cells)
        yield "};"

    def _fields(
        self, name: str, struct: str, held: Mapping[str, Field], texts: list[str]
    ) -> list[str]:
        """Write the fields of a struct. Raises LucioleError for those that it does not have."""
        fields = struct_fields(struct)
        if {f.name for f in fields} != set(held):
            odd = sorted({f.name for f in fields} ^ set(held))
            raise LucioleError(f"struct {struct} and its call differ in {', '.join(odd)}")
        return [self._field(name, field, held[field.name], texts) for field in fields]

    def _constant(self, value: Value) -> list[str]:
        """Write an operand that is constant; those with the same bytes are written once."""
        texts: list[str] = []
        ctype = ctype_of(value.dtype)
        self._values[value] = self._shared(
            self._values[value], ctype, self._constants[value], texts
        )
        return texts

    def _field(self, name: str, field: StructField, held: Field, texts: list[str]) -> str:
        if isinstance(held, Mapping):
            inside = self._fields(name, field.struct or field.name, held, texts)
            return f"{field.name} = {{{', '.join(f'.{cell}' for cell in inside)}}}"
        if held is None or isinstance(held, np.ndarray) != field.is_table:
            return f"{field.name} = {'NULL' if field.is_table else '0'}"
        if not isinstance(held, np.ndarray):
            return f"{field.name} = {number(held, field.ctype)}"
        return f"{field.name} = {self._shared(f'{name}_{field.name}', field.ctype, held, texts)}"

    def _shared(self, name: str, ctype: str, array: Array, texts: list[str]) -> str:
        """Write a table, or find the one with the same contents."""
        contents = hashlib.sha256(np.ascontiguousarray(array).tobytes())
        key = ctype, f"{array.dtype} {contents.hexdigest()}"
        if key not in self._tables:
            self._tables[key] = self._names.of(name)
            text, size = table(self._tables[key], ctype, array, self._words)
            texts.append(text)
            self.table_bytes += size
        return self._tables[key]

    def _memory(self) -> Iterator[str]:
        if not self._layout.places:
            return
        inside = "(unsigned char *)arena" if self.options.arena == CALLER else "arena.bytes"
        if self.options.arena != CALLER:
            yield (
                "/* Memory of all tensors between inputs and outputs: those that are not needed at "
                "the same\n * time share it.\n */\n"
                f"static union {{\n    unsigned char bytes[{self._arena}];\n    int64_t aligned;\n"
                "} arena;"
            )
        yield f"#define {_AT}(place) ((void *)({inside} + (place)))"

    def _reset(self) -> Iterator[str]:
        """Write the function that sets states to their beginning."""
        texts: list[str] = []
        lines = []
        for value, array in self.states.items():
            place = f"state->{self._values[value]}"
            if not any(array.tobytes()):
                lines.append(f"    (void)memset({place}, 0, sizeof {place});")
                continue
            table_name = self._shared("begin", ctype_of(value.dtype), array, texts)
            lines.append(f"    (void)memcpy({place}, {table_name}, sizeof {place});")
        yield from texts
        yield self._reset_signature()
        yield "{"
        yield from lines
        yield "}"

    def _run(self) -> Iterator[str]:
        yield f"{self._signature()}"
        yield "{"
        used = [v for v in self._values if v in self._layout.places]
        for value in used:
            place = self._layout.places[value].begin
            kind = f"{ctype_of(value.dtype)} *{self._values[value]}"
            yield f"    {kind} = {_AT}({place}); /* {shape_text(value.dims)} */"
        for value in self.states:
            name = self._values[value]
            yield f"    {ctype_of(value.dtype)} *{name} = state->{name};"
        yield from self._statements()
        yield from (f"    (void){name}; /* nothing depends on it */" for name in self._unread())
        yield "    return 0;"
        yield "}"

    def _statements(self) -> Iterator[str]:
        """Write the calls, those of branches and loops further to the right."""
        depth = 1
        for call in self.calls:
            word = call.control
            depth -= word in (Control.ELSE, Control.END)
            names = [self._values[value] for value in call.reads]
            text = f"{call.function}({', '.join(self._arguments(call))});" if word is None else ""
            yield "    " * depth + (text if word is None else word.value.format(*names))
            depth += word in (Control.IF, Control.ELSE, Control.WHILE)

    def _unread(self) -> Iterator[str]:
        """Name the parameters that nothing reads."""
        read = {value for call in self.calls for value in call.reads}
        yield from (self._values[e.value] for e in self.inputs if e.value not in read)
        if self.options.arena == CALLER and not self._layout.places:
            yield "arena"

    def _arguments(self, call: CCall) -> Iterator[str]:
        yield f"&{self._layers[call]}"
        yield from (self._values[value] for value in (*call.reads, *call.writes))
        if call in self._rooms:
            yield f"{_AT}({self._layout.places[self._rooms[call]].begin})"


def _is_operator(call: CCall) -> bool:
    """Return whether a call computes an operator, and is no conversion around it."""
    return call.source is not None and call.function.startswith(f"luc_{call.source.kind.lower()}")


def _what(call: CCall) -> str:
    """Name a call after its operator's result, or after its own result."""
    if call.source is not None and _is_operator(call):
        return call.source.results[0].name
    return call.writes[0].name


def _title_of(call: CCall) -> str:
    """Return the operator that a call is for, and the shapes of its operands and results."""
    kind = call.source.kind if call.source is not None and _is_operator(call) else ""
    shapes = [f"{v.dtype.name.lower()} {shape_text(v.dims)}" for v in (*call.reads, *call.writes)]
    read = len(call.reads)
    words = kind or call.function.removeprefix("luc_").replace("_", " ")
    return f"{words} {', '.join(shapes[:read])} -> {', '.join(shapes[read:])}"


def _title(text: str) -> str:
    return f"/* {'-' * 8} {text} {'-' * max(3, 80 - len(text))} */"
