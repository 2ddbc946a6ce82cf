"""Which room may import which: the table of the house, read off the code's own imports."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

import pytest

import luciole

ROOT = Path(luciole.__path__[0])
FACADE = ("luciole", "luciole.__main__", "luciole.api")
ENUMS = "luciole.schema.enums"

MAY_IMPORT = {
    "schema": (),
    "ir": ("luciole.schema",),
    "importers": ("luciole.schema", "luciole.ir"),
    "exporters": ("luciole.schema", "luciole.ir"),
    "kernels": ("luciole.ir", ENUMS),
    "interpreter": ("luciole.ir", "luciole.kernels"),
    "lquantizer": ("luciole.ir", "luciole.interpreter", "luciole.kernels", ENUMS),
    "tools": ("luciole",),
}
"""Prefixes of modules that a room may import besides its own. Enums are the schema's vocabulary."""

OUTSIDE = {
    "schema": {"flatbuffers", "numpy"},
    "ir": {"numpy"},
    "importers": {"flatbuffers", "numpy", "tensorflow"},
    "exporters": {"flatbuffers", "numpy"},
    "kernels": {"llvmlite", "numba", "numpy"},
    "interpreter": {"numpy"},
    "lquantizer": {"numpy", "tensorflow"},
    "tools": {"h5py", "numpy", "rich"},
    "": {"numpy"},
}
"""Packages of others that a room may import; the facade is the room without a name."""

ONLY_IN = {
    "numba": ("luciole.kernels.jit",),
    "llvmlite": ("luciole.kernels.jit",),
    "tensorflow": ("luciole.importers.keras", "luciole.lquantizer.finetune.tensorflow"),
}
FILES = {"io", "mmap", "os", "pathlib", "shutil", "socket", "subprocess", "tempfile", "urllib"}


class Import(NamedTuple):
    """One import statement's target: who imports, what, and whether only when a function runs."""

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


def imports_of(source: str, module: str, is_package: bool = False) -> Iterator[Import]:
    """Every import of a source text, those inside functions and conditions included."""

    def visit(node: ast.AST, in_function: bool) -> Iterator[Import]:
        for target in targets(node, module, is_package):
            yield Import(module, target, in_function)
        inside = in_function or isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
        )
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    yield from visit(ast.parse(source), False)


@cache
def all_imports() -> tuple[Import, ...]:
    return tuple(
        found
        for path in sorted(ROOT.rglob("*.py"))
        for found in imports_of(path.read_text(), module_of(path), path.name == "__init__.py")
    )


def ours(room: str) -> list[Import]:
    return [i for i in all_imports() if i.room == room and i.package == "luciole"]


def below(target: str, prefix: str) -> bool:
    return target == prefix or target.startswith(f"{prefix}.")


def test_the_scanner_sees_every_kind_of_import() -> None:
    source = (
        "import os.path, luciole.ir.op as o\nfrom . import enums\nfrom ..ir import op, Op\n"
        "from luciole import api\nif o:\n    import numba\n"
        "def f():\n    from luciole.tools.main import main\n    class C:\n        import h5py\n"
    )
    found = [(i.target, i.in_function) for i in imports_of(source, "luciole.schema.reader")]
    assert found == [
        ("os.path", False),
        ("luciole.ir.op", False),
        ("luciole.schema.enums", False),
        ("luciole.ir.op", False),
        ("luciole.ir", False),
        ("luciole.api", False),
        ("numba", False),
        ("luciole.tools.main", True),
        ("h5py", True),
    ]


def test_every_folder_and_module_is_a_room_or_the_facade() -> None:
    modules = {module_of(p) for p in ROOT.rglob("*.py")}
    assert {room_of(m) for m in modules} == {*MAY_IMPORT, ""}
    assert len(modules) > 100, "the scanner found the code"


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_what_the_table_allows(room: str) -> None:
    allowed = (f"luciole.{room}", *MAY_IMPORT[room])
    found = ours(room)
    assert found
    assert [i for i in found if not any(below(i.target, prefix) for prefix in allowed)] == []


def test_nobody_imports_the_facade_or_the_tools() -> None:
    rooms = [i for i in all_imports() if i.package == "luciole" and i.room not in ("", "tools")]
    assert [i for i in rooms if below(i.target, "luciole.tools")] == []
    assert [i for i in rooms if i.target in FACADE] == []


def test_the_facade_imports_tools_only_to_start_them() -> None:
    tools = [i.importer for i in ours("") if below(i.target, "luciole.tools")]
    assert tools == ["luciole.__main__"]


@pytest.mark.parametrize("room", OUTSIDE)
def test_a_room_imports_only_its_packages_of_others(room: str) -> None:
    found = {i.package for i in all_imports() if i.room == room}
    assert found - {"luciole", *sys.stdlib_module_names} <= OUTSIDE[room]


@pytest.mark.parametrize("package", ONLY_IN)
def test_heavy_packages_have_one_door(package: str) -> None:
    found = {i.importer for i in all_imports() if i.package == package}
    assert found
    assert [m for m in found if not any(below(m, door) for door in ONLY_IN[package])] == []


def test_tensorflow_is_imported_only_when_a_function_runs() -> None:
    assert [i.in_function for i in all_imports() if i.package == "tensorflow"] == [True] * 2


def readers_of(attribute: str) -> set[str]:
    """The modules that read an attribute of this name off something."""
    trees = {module_of(path): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
    return {
        module
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == attribute
    }


def test_one_module_knows_what_zero_points_are() -> None:
    assert readers_of("zero_point") == {"luciole.ir.quantization"}


def test_the_ir_knows_no_files() -> None:
    assert {i.package for i in all_imports() if i.room == "ir"} & FILES == set()


def loaded_by(statement: str, *arguments: str) -> set[str]:
    """The top-level packages that a fresh interpreter has loaded after a statement."""
    program = (
        f"import json, sys\ntry:\n    {statement}\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "print('\\n' + json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


HEAVY = {"h5py", "llvmlite", "numba", "numpy", "rich", "tensorflow"}


def test_importing_luciole_imports_nothing_heavy() -> None:
    loaded = loaded_by("import luciole")
    assert "luciole" in loaded
    assert loaded & HEAVY == set()


def test_help_imports_nothing_heavy() -> None:
    loaded = loaded_by("import luciole.tools.main as m; sys.exit(m.main())", "--help")
    assert "argparse" in loaded
    assert loaded & HEAVY == set()


def test_loading_a_model_imports_neither_numba_nor_tensorflow() -> None:
    loaded = loaded_by(
        "import luciole; luciole.load(luciole.__path__[0] + '/demo_data/digits.circle')"
    )
    assert loaded & HEAVY == {"numpy"}
