"""Who imports whom: read off the code's own import statements."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

import luciole

ROOT = Path(luciole.__path__[0])
_FACES = (
    "",
    ".__main__",
    ".api",
    ".comparing",
    ".implanting",
    ".judging",
    ".optimizing",
    ".quantizing",
    ".running",
    ".surgery",
    ".viewing",
    ".watching",
)
FACADE = tuple(f"luciole{m}" for m in _FACES)


class Import(NamedTuple):
    """One import: who imports, what, and whether only when a function runs. Modules that are named
    in a string count, where a file imports by name.
    """

    importer: str
    target: str
    in_function: bool

    @property
    def room(self) -> str:
        return room_of(self.importer)

    @property
    def package(self) -> str:
        return self.target.partition(".")[0]


def room_of(module: str) -> str:
    """``luciole.ir.ops.cast`` is of the room ``ir``; the facade is of none."""
    return "" if module in FACADE else module.split(".")[1]


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree(path: Path) -> ast.Module:
    """A file's syntax tree, which nobody changes: the collector need not look through it again."""
    parsed = ast.parse(path.read_text())
    gc.freeze()
    return parsed


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file's syntax tree."""
    return tuple(ast.walk(tree(path)))


@cache
def is_module(name: str) -> bool:
    path = ROOT.parent.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def targets(node: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    """The modules that a node imports; ``from a import b`` is ``a.b`` where that is a module."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        package = module if is_package else module.rpartition(".")[0]
        base = resolve_name("." * node.level + (node.module or ""), package)
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            yield inner if base.startswith("luciole") and is_module(inner) else base


def named(source: ast.AST) -> Iterator[str]:
    """The modules of ours that strings name in a file that imports by name: all that an
    f-string's beginning leaves open is below the folder that it names.
    """
    calls = [node.func for node in ast.walk(source) if isinstance(node, ast.Call)]
    called = [f.attr for f in calls if isinstance(f, ast.Attribute)]
    called += [f.id for f in calls if isinstance(f, ast.Name)]
    if not any(name.endswith("import_module") for name in called):
        return
    for node in ast.walk(source):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.removesuffix(".")
            if name.startswith("luciole.") and is_module(name):
                yield name


def imports_of(source: ast.AST, module: str, is_package: bool = False) -> Iterator[Import]:
    """Every import of a syntax tree, those inside functions and conditions included."""
    imports: list[Import] = []

    def visit(node: ast.AST, in_function: bool) -> None:
        imports.extend(
            Import(module, target, in_function) for target in targets(node, module, is_package)
        )
        inside = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):  # no expression holds a statement
                visit(child, inside)

    visit(source, False)
    yield from imports
    if any(below(one.target, "importlib") for one in imports):
        yield from (Import(module, target, True) for target in named(source))


@cache
def all_imports() -> tuple[Import, ...]:
    return tuple(
        found
        for path in sorted(ROOT.rglob("*.py"))
        for found in imports_of(tree(path), module_of(path), path.name == "__init__.py")
    )


def below(target: str, prefix: str) -> bool:
    return target == prefix or target.startswith(f"{prefix}.")


Folders = Mapping[str, set[str]]
"""Folders below ``luciole`` by the folders that import from them."""


@cache
def folder_of(module: str) -> str:
    """The folder that a module stands in. A package's ``__init__`` is its folder's face: it may
    gather what the folders inside offer, so it counts as the folder above them all. So does
    ``__main__``, which starts a program and is imported by nobody.
    """
    path = ROOT.parent.joinpath(*module.split("."))
    if (path / "__init__.py").exists():
        path /= "__init__"
    stands_above = path.name in ("__init__", "__main__")
    return (path if stands_above else path.parent).relative_to(ROOT).as_posix()


@cache
def folder_imports() -> Folders:
    """For each folder below ``luciole`` the folders that its modules import from, faces apart."""
    found: dict[str, set[str]] = {}
    for one in all_imports():
        if one.package == "luciole" and one.target != "luciole":
            importer, target = folder_of(one.importer), folder_of(one.target)
            if importer != target:
                found.setdefault(importer, set()).add(target)
    return found


def circles(imports: Folders) -> list[set[str]]:
    """Folders that import each other in a round (strongly connected components of two and more)."""
    reach = {folder: _reachable(folder, imports) for folder in imports}
    knots: list[set[str]] = []
    for folder in sorted(imports):
        knot = {other for other in reach[folder] if folder in reach.get(other, ())}
        if len(knot) > 1 and knot not in knots:
            knots.append(knot)
    return knots


def _reachable(folder: str, imports: Folders) -> set[str]:
    found: set[str] = set()
    waiting = [folder]
    while waiting:
        new = imports.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found
