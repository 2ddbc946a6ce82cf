"""Cut models, and put their parts together again, from Python."""

from __future__ import annotations

import configparser
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import Any

from luciole.exporters import to_bytes
from luciole.exporters.writer import writer_of
from luciole.files import write_files
from luciole.files.json_reading import read_json
from luciole.importers import as_model, load
from luciole.importers.reader import file_bytes
from luciole.interpreter.chain import Chain
from luciole.ir import Graph, LucioleError, Model, Shape
from luciole.ir.checked import checked
from luciole.ir.errors import FormatError, expect
from luciole.ir.surgery import cut as cutting
from luciole.ir.surgery import extract as extracting
from luciole.ir.surgery import partition as partitioning
from luciole.ir.surgery import resize as resizing
from luciole.ir.surgery import split as splitting

__all__ = ["Parts", "cut", "extract", "partition", "resize", "split"]

Path_ = str | os.PathLike[str]

_COMPLY = ("opcode", "opname")
"""Words for what a partition file's groups go by."""


@checked
def extract(
    model: Path_ | Model,
    *,
    numbers: Iterable[int] = (),
    names: Iterable[str] = (),
    kinds: Iterable[str] = (),
    start: str | None = None,
    end: str | None = None,
) -> Model:
    """Make a model of some operators of a model's main graph: those of these ``numbers`` (as
    `luciole dump` has them), those whose results are called like one of the ``names`` (shell
    patterns), those of these ``kinds`` ("CONV_2D"), and those between the tensors ``start`` and
    ``end``: all that depend on the one and that the other needs.

    What they read and others compute becomes an input, and what others read an output. Names,
    quantization, metadata and the graphs that they call stay. Raises LucioleError where nothing is
    chosen, for a tensor of no such name, and where a variable's state would be split.
    """
    return extracting.extract(
        as_model(model), numbers=numbers, names=names, kinds=kinds, start=start, end=end
    )


@checked
def cut(model: Path_ | Model, *, outputs: Sequence[str] = (), inputs: Sequence[str] = ()) -> Model:
    """Make a model with other ``outputs``, any tensors that are computed (its own unless some are
    named), in which the tensors ``inputs`` are given by the caller. Operators and inputs that no
    output needs go. Raises LucioleError for a tensor that cannot be an end, for one of no such
    name, and where a variable's state would be split.
    """
    return cutting.cut(as_model(model), outputs=outputs, inputs=inputs)


def resize(model: Path_ | Model, shapes: Mapping[str, Sequence[int | None]]) -> Model:
    """Make a model with other shapes for inputs by name (None: an extent that is left open) and
    with the shapes that follow. Raises ShapeError, naming the operator, for one that does not take
    them, and LucioleError for a tensor that is no input.
    """
    expect(shapes, Mapping, "shapes: a dictionary by input")
    for name, shape in shapes.items():
        expect(name, str, "shapes: the name of an input")
        expect(shape, (list, tuple), f"the shape of {name!r}: a list of extents")
    exact: dict[str, Shape] = {name: tuple(shape) for name, shape in shapes.items()}
    return resizing.resize(as_model(model), exact)


@checked
def split(model: Path_ | Model, at: str | Sequence[str]) -> Parts:
    """Split a model at tensors: all that the first one needs, all else that the next one needs, and
    so on, and the rest. ``luciole.run`` takes the parts as it takes a model. Raises LucioleError
    for a tensor that parts nothing, and where a variable's state would be split.
    """
    if not at:
        raise LucioleError("at: at least one tensor is needed")
    whole = as_model(model)
    models = splitting.split(whole, at)
    inputs, outputs = ([v.name for v in side] for side in (whole.graph.inputs, whole.graph.outputs))
    return Parts(models, inputs, outputs)


@checked
def partition(model: Path_ | Model, groups: Path_, *, default: str | None = None) -> Parts:
    """Split a model into parts of one group each, as a partition file of ONE's circle-partitioner
    says: ``[partition]`` with ``backends``, ``default`` (unless another is given) and ``comply``,
    and for ``comply=opcode`` groups by kind (``DIV=npu``) in ``[OPCODE]``, for ``opname`` by the
    name of an operator's first result in ``[OPNAME]``.

    A part has as many operators as can run before one of another group has to. Raises FormatError
    for a file that is not understood, and LucioleError where a variable's state would be split.
    """
    whole, place = as_model(model), Path(groups)
    chosen = _groups(whole.graph, place, default)
    pairs = partitioning.partition(whole, dict(zip(whole.graph.ops, chosen, strict=True)))
    inputs, outputs = ([v.name for v in side] for side in (whole.graph.inputs, whole.graph.outputs))
    return Parts([part for _, part in pairs], inputs, outputs, [group for group, _ in pairs])


@dataclass(frozen=True, eq=False)
class Parts:
    """Models that run one behind the other: outputs are inputs of those behind, by name; the names
    of what the caller gives and gets; and the group of each part where they have some.
    """

    models: Sequence[Model]
    inputs: Sequence[str]
    outputs: Sequence[str]
    groups: Sequence[str] = ()
    graph: Graph = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Join the parts' ends, which refuses those that do not fit each other. Raises LucioleError
        for what are no models or no names.
        """
        expect(self.models, Sequence, "models: a list of models")
        if not self.models:
            raise LucioleError("models: at least one part is needed")
        for model in self.models:
            expect(model, Model, "models: a list of models")
        for side, names in (("inputs", self.inputs), ("outputs", self.outputs)):
            expect(names, (list, tuple), f"{side}: a list of names")
            for name in names:
                expect(name, str, f"{side}: a list of names")
        object.__setattr__(self, "graph", self.chain().graph)

    def chain(self, num_threads: int = 1, compiled: bool = True) -> Chain:
        """Make a chain of interpreters, which runs as one of the whole model does."""
        return Chain(
            self.models, self.inputs, self.outputs, num_threads=num_threads, compiled=compiled
        )

    @checked
    def save(self, path: Path_, *, source: str = "", extension: str = ".circle") -> list[Path]:
        """Write a description, a JSON file as ONE's circle-partitioner writes it, and beside it a
        file for each part: all of them or none. ``source`` is the file that was split. Returns the
        parts' files.
        """
        place = Path(path)
        if place.suffix.lower() != ".json":
            raise LucioleError(f"{place.name}: parts are described in a .json file")
        stem = place.stem.removesuffix(".conn")
        files = [place.with_name(f"{stem}.{mark}{extension}") for mark in self._marks()]
        ends = [(m.graph.inputs, m.graph.outputs) for m in self.models]
        parts = [
            _described(file.name, [v.name for v in taken], [v.name for v in told])
            for file, (taken, told) in zip(files, ends, strict=True)
        ]
        whole = {"source": _described(source, self.inputs, self.outputs), "parts": parts}
        contents: dict[Path, bytes | str] = {place: json.dumps(whole, indent=2) + "\n"}
        for file, model in zip(files, self.models, strict=True):
            contents[file] = to_bytes(model, writer_of(file).format)
        write_files(contents)
        return files

    def _marks(self) -> list[str]:
        """Number the parts' files, as ONE does where parts have groups."""
        if not self.groups:
            return [str(n) for n in range(1, len(self.models) + 1)]
        return [f"{n:05}_{group}" for n, group in enumerate(self.groups, 1)]

    @classmethod
    @checked
    def load(cls, path: Path_) -> Parts:
        """Read a description and the parts' files beside it. Raises FormatError for one that is not
        understood.
        """
        place = Path(path)
        content = read_json(place, FormatError)
        source, parts = (_entry(place, content, key) for key in ("source", "parts"))
        inputs, outputs = (_names(place, source, key) for key in ("inputs", "outputs"))
        files = [_file(place, part) for part in parts] if isinstance(parts, list) else []
        if not files:
            raise FormatError(f'{place.name}: "parts" is a list of at least one part')
        return cls([load(file) for file in files], inputs, outputs)


def _groups(graph: Graph, place: Path, default: str | None) -> list[str]:
    """Read the group of each operator."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    try:
        parser.read_string(file_bytes(place).decode())
        table = parser["partition"]
        known = [word.strip() for word in table["backends"].split(",")]
        default, comply = default or table["default"], table.get("comply", "opcode")
    except (configparser.Error, UnicodeError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise FormatError(f"{place.name}: [partition] needs backends, default: {reason}") from None
    if comply not in _COMPLY:
        raise FormatError(f"{place.name}: comply is {comply!r}: {' or '.join(_COMPLY)} is needed")
    section = parser[comply.upper()] if parser.has_section(comply.upper()) else {}
    for name, group in (*section.items(), ("default", default)):
        if group not in known:
            raise FormatError(f"{place.name}: {name} is in {group!r}, backends are {known}")
    keys = [op.kind if comply == "opcode" else op.name for op in graph.ops]
    return list(map(dict(section).get, keys, repeat(default)))


def _described(file: str, inputs: Sequence[str], outputs: Sequence[str]) -> dict[str, Any]:
    return {"file": file, "inputs": list(inputs), "outputs": list(outputs)}


def _entry(place: Path, content: object, key: str) -> object:
    if not isinstance(content, dict) or key not in content:
        raise FormatError(f'{place.name}: an object with "{key}" is needed')
    return content[key]


def _names(place: Path, content: object, key: str) -> list[str]:
    names = _entry(place, content, key)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FormatError(f'{place.name}: "{key}" is a list of names')
    return names


def _file(place: Path, part: object) -> Path:
    """Find a part's file, which lies beside the description."""
    name = _entry(place, part, "file")
    if not isinstance(name, str) or Path(name).name != name:
        raise FormatError(f'{place.name}: "file" is the name of a file beside it, found {name!r}')
    return place.with_name(name)
