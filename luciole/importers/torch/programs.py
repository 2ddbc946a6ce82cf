"""Find the programs that a .pt2 file would make torch run, before torch reads it.

``torch.export.load`` unpickles weights, constants and example inputs that say they are pickles,
loads shared libraries that lie in the archive, calls what a node names anywhere in torch's modules,
and evaluates the texts of extents as Python. None of it is needed for a network of tensors.
"""

from __future__ import annotations

import ast
import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from luciole.ir.errors import FormatError
from luciole.schema.printable import printable, quoted, shorten

_LONGEST_TEXT = 256 << 20
"""Bytes of a graph or of a list of tensors."""
_PLAIN = re.compile(
    r"archive_format|archive_version|byteorder|\.data/\w+|\.format_version|"
    r"models/model\.json|extra/.*|data/sample_inputs/model\.pt|"
    r"data/weights/(weight_\d+|model_weights_config\.json)|"
    r"data/constants/(tensor_\d+|model_constants_config\.json)"
)
"""Members that hold graphs and tensors."""
_NODE = re.compile(
    r"torch\.ops\.(aten|prims|higher_order|torchvision|quantized_decomposed)"
    r"\.(\w+)(\.\w+)?|torch\.(_?sym_\w+)|math\.[a-z0-9]+|"
    r"_operator\.(add|sub|mul|floordiv|truediv|mod|neg|pos|pow|eq|ne|lt|le|gt|ge|and_|or_|not_|getitem)"
)
"""What nodes may call."""
_HIDDEN = re.compile(r"\.__(?!i?(and|or|xor|lshift|rshift)__)")
_FUNCTIONS = {
    "Symbol", "Integer", "Rational", "Float", "Add", "Mul", "Pow", "Mod", "Max", "Min", "Abs",
    "And", "Or", "Not", "Eq", "Ne", "Lt", "Le", "Gt", "Ge", "Equality", "Unequality",
    "StrictLessThan", "LessThan", "StrictGreaterThan", "GreaterThan", "floor", "ceiling",
    "FloorDiv", "CeilDiv", "CleanDiv", "PythonMod", "ModularIndexing", "Where", "PowByNatural",
    "FloatPow", "IntTrueDiv", "FloatTrueDiv", "TruncToInt", "FloorToInt", "CeilToInt", "RoundToInt",
    "ToFloat", "LShift", "RShift", "Identity",
}  # fmt: skip
"""What texts of extents may call: sympy's arithmetic and torch's."""
_SYMBOL = re.compile(r"[a-z]+\d+|_?[a-z]+_?\d*")
_LONGEST_EXTENT = 4096
_ARITHMETIC = (
    *(ast.Expression, ast.Call, ast.keyword, ast.Name, ast.Load, ast.Constant),
    *(ast.BinOp, ast.UnaryOp, ast.Compare, ast.operator, ast.unaryop, ast.cmpop),
)
_GRAPH = "models/model.json"
_EXAMPLES = "data/sample_inputs/model.pt"
"""A pickle of the example inputs, which are not needed: the copy has none."""
_NOT_AN_EXPORT = (
    "weights alone, TorchScript or a program of torch 2.7 and older: networks are read that "
    "torch.export.save of torch 2.8 or newer writes"
)


def checked(path: Path) -> io.BytesIO:
    """Copy an archive that holds graphs and tensors alone: torch reads what was checked.

    Raises FormatError for archives that hold or name programs, that are packed, and of another
    kind.
    """
    try:
        members = _members(path)
        _check(members)
    except FormatError as error:
        raise FormatError(f"{path.name}: {error}") from None
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError) as error:
        why = shorten(" ".join(str(error).split()) or type(error).__name__)
        raise FormatError(f"{path.name}: the archive is damaged: {why}") from None
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as copy:
        for name, content in members.items():
            copy.writestr(f"model/{name}", b"" if name == _EXAMPLES else content)
    archive.seek(0)
    return archive


def _members(path: Path) -> dict[str, bytes]:
    """Read an archive's members by their names below its only folder. Raises FormatError for
    archives of another kind, ValueError for odd ones.
    """
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        names = [entry.filename.partition("/")[2] for entry in entries]
        if _GRAPH not in names:
            raise FormatError(_NOT_AN_EXPORT)
        packed = any(e.compress_type != zipfile.ZIP_STORED for e in entries)
        if packed or sum(entry.file_size for entry in entries) > path.stat().st_size:
            raise ValueError("torch packs nothing, and this is packed")
        if len(set(names)) != len(names):
            raise ValueError("two of its members have one name")
        return {name: archive.read(e) for name, e in zip(names, entries, strict=True)}


def _check(members: dict[str, bytes]) -> None:
    for name, content in members.items():
        if not _PLAIN.fullmatch(name):
            raise FormatError(f"torch would run {quoted(name)}, which is no graph and no tensor")
        if name.endswith(".json"):
            _check_text(name, content)


def _check_text(name: str, content: bytes) -> None:
    """Check a graph or a list of tensors."""
    try:
        if len(content) > _LONGEST_TEXT:
            raise ValueError(f"longer than {_LONGEST_TEXT:,} bytes")
        tree = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{quoted(name)} is damaged: {printable(str(error))}") from None
    for key, value in _entries(tree):
        if key == "use_pickle" and value:
            raise FormatError("torch would run a pickle: one of its tensors is no plain one")
        if key == "path_name" and not re.fullmatch(r"(weight|tensor)_\d+", str(value)):
            raise FormatError(f"torch would run {quoted(str(value))}, which is no plain tensor")
        if key in ("target", "as_operator") and _is_program(value):
            raise FormatError(f"torch would call {quoted(str(value))}, which is no operator")
        if key == "expr_str" and not _is_arithmetic(str(value)):
            raise FormatError(f"torch would run the extent {quoted(str(value))}")


def _is_program(target: object) -> bool:
    text = str(target)
    return not _NODE.fullmatch(text) or _HIDDEN.search(text) is not None


def _is_arithmetic(text: str) -> bool:
    """Return whether the text of an extent is arithmetic alone: sympy runs texts as Python."""
    try:
        nodes = list(ast.walk(ast.parse(text[: _LONGEST_EXTENT + 1].strip(), mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    called = {id(n.func) for n in nodes if isinstance(n, ast.Call)}
    return len(text) <= _LONGEST_EXTENT and all(_is_plain(n, id(n) in called) for n in nodes)


def _is_plain(node: ast.AST, called: bool) -> bool:
    """Return whether a part of an extent's text is a number, an operator, a symbol's name, or where
    it is called a function of arithmetic.
    """
    if isinstance(node, ast.Name):
        return node.id in _FUNCTIONS if called else _SYMBOL.fullmatch(node.id) is not None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _SYMBOL.fullmatch(node.value) is not None
    return isinstance(node, _ARITHMETIC) and not called


def _entries(tree: Any) -> Iterator[tuple[str, Any]]:
    """Yield every entry of objects, at any depth."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            yield from node.items()
            left += node.values()
        elif isinstance(node, list):
            left += node
