"""torch modules and exported programs, through torch's own exporter to ONNX (extra ``torch``).

Files are checked first: docs/what-guards-you.md says what is refused.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from luciole.importers.onnx.model import import_proto
from luciole.importers.onnx.modules import name_by_modules, name_by_weights, renamed
from luciole.importers.reader import Example
from luciole.importers.silence import quiet, silent
from luciole.importers.torch.programs import checked
from luciole.ir import LucioleError, UnsupportedError
from luciole.ir.errors import FormatError, expect, missing_extra
from luciole.schema.printable import shorten

if TYPE_CHECKING:
    from luciole.importers.extents import Settled
    from luciole.importers.imported import Imported

_LONGEST = 300
_OPERATOR = re.compile(r"(?:target=torch\.ops\.|OpOverload\(op=')([\w.]+)")
_PACKAGES = ("torch", "onnx", "onnxscript")
_FIXED = "0/1 specialized"
"""Words of torch's where the extent of an example is 1 and was to stay open."""


def load(path: Path, settled: Settled | None = None) -> Imported:
    """Import a .pt2 file of torch.export.save, with what is ``settled`` of its inputs.

    Raises LucioleError where torch is not installed, FormatError for files that hold or name
    programs, where torch cannot read or convert it, and what the importer of ONNX raises.
    """
    torch = _framework(path.name)
    archive = checked(path)
    try:
        with silent():
            program = torch.export.load(archive)
    except Exception as error:  # torch raises whatever its parts do
        raise FormatError(f"{path.name}: torch cannot read it: {_reason(error)}") from None
    return _converted(torch, program, path.name, settled)


def from_live(live: object, example: Example, settled: Settled | None = None) -> Imported:
    """Import a module, traced with example inputs, or an exported program. The module is traced as
    it is evaluated, and left as it was.

    Raises LucioleError where packages of the extra are not installed and for examples that are
    missing or too many, FormatError where torch cannot trace or convert it.
    """
    name = type(live).__name__
    torch = _framework(name)
    if isinstance(live, torch.export.ExportedProgram):
        if example:
            raise LucioleError("an exported program has its shapes: no example goes with it")
        return _converted(torch, live, name, settled)
    if example.inputs is None:
        raise LucioleError(f"{name}: a module needs example inputs: load(module, example_inputs)")
    program = _traced(torch, live, example)
    return _converted(torch, program, name, settled, example.dynamic_shapes)


def _framework(what: str) -> ModuleType:
    """Import torch, and see that its exporter has its packages. Raises LucioleError, saying what
    needs them.
    """
    try:
        with quiet():
            torch, *_ = map(import_module, _PACKAGES)
    except ImportError:
        needed = f"{what}: this needs torch, onnx and onnxscript"
        raise missing_extra(needed, "torch") from None
    return torch


def _traced(torch: ModuleType, module: Any, example: Example) -> Any:
    """Export a module as torch.export does. Raises FormatError with torch's reason, and
    LucioleError for open extents that are no dictionary or list.
    """
    needed = 'dynamic_shapes: a dictionary by axis, {0: "batch"}, or one for each input'
    expect(example.dynamic_shapes, (Mapping, tuple, list, type(None)), needed)
    inputs = _mapped(example.inputs, np.ndarray, torch.from_numpy)
    shapes = _mapped(example.dynamic_shapes, str, lambda _: torch.export.Dim.DYNAMIC)
    if not isinstance(inputs, tuple | list | Mapping):
        inputs, shapes = (inputs,), shapes if _is_listed(shapes) else (shapes,)
    by_name = isinstance(inputs, Mapping)
    modes = {part: part.training for part in module.modules()}
    try:
        with silent():
            return torch.export.export(
                module.eval(),
                () if by_name else tuple(inputs),
                inputs if by_name else {},
                dynamic_shapes=shapes,
                strict=False,
            )
    except Exception as error:  # torch raises whatever its parts do
        name = type(module).__name__
        raise FormatError(f"{name}: torch.export cannot trace it: {_reason(error)}") from None
    finally:
        for part, training in modes.items():
            part.training = training


def _is_listed(shapes: object) -> bool:
    """Return whether shapes are those of all inputs, not of one."""
    by_axis = isinstance(shapes, Mapping) and all(isinstance(key, int) for key in shapes)
    return shapes is None or not by_axis


def _mapped(value: object, kind: type, function: Callable[[Any], object]) -> Any:
    """Apply a function to everything of a kind, at any depth of tuples, lists and dicts."""
    if isinstance(value, kind):
        return function(value)
    if isinstance(value, Mapping):
        return {key: _mapped(inner, kind, function) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return tuple(_mapped(inner, kind, function) for inner in value)
    return value


def _converted(
    torch: ModuleType, program: Any, name: str, settled: Settled | None, shapes: object = None
) -> Imported:
    """Convert an exported program to ONNX, whose open extents get the names that ``shapes`` has."""
    outputs = _output_names(program)
    try:
        with silent():
            exported = torch.onnx.export(
                program,
                dynamo=True,
                verbose=False,
                output_names=outputs,
                dynamic_shapes=shapes,
            )
            proto = exported.model_proto
        name_by_modules(proto.graph, len(outputs or ()))
    except Exception as error:  # as above
        raise FormatError(f"{name}: torch cannot write it as ONNX: {_reason(error)}") from None
    try:
        imported = import_proto(proto, settled)
    except UnsupportedError as error:
        raise UnsupportedError(f"{name}: {error}", error.missing) from None
    except FormatError as error:
        raise FormatError(f"{name}: {error}") from None
    names = name_by_weights(imported.model.graph)
    return imported._replace(nodes=renamed(imported.nodes, names))


def _output_names(program: Any) -> list[str] | None:
    """Return the keys of a dict of outputs, None for outputs without names."""
    spec = program.call_spec.out_spec
    is_flat = spec.type in (dict, OrderedDict) and spec.num_leaves == len(spec.context)
    return list(map(str, spec.context)) if is_flat else None


def _reason(error: BaseException) -> str:
    """Return the cause of a failure in one line: torch puts advice around it and below."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = str(error)
    operator = _OPERATOR.search(text)
    if operator is not None:
        return f"there is no ONNX form of {operator[1]}"
    if _FIXED in text:
        return "an extent that stays open is 1 in the example: torch needs 2 or more there"
    paragraph = text.strip().partition("\n\n")[0]
    return shorten(" ".join(paragraph.split()) or type(error).__name__, _LONGEST)
