"""Which room may import which: the table of the house, read off the code's own imports."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator

import pytest

from tests.imports import (
    FACADE,
    ROOT,
    Import,
    all_imports,
    below,
    circles,
    folder_imports,
    imports_of,
    module_of,
    named,
    nodes,
    room_of,
)

ENUMS = "luciole.schema.enums"

MAY_IMPORT = {
    "schema": (),
    "files": ("luciole.schema.errors",),
    "ir": ("luciole.schema",),
    "importers": ("luciole.schema", "luciole.files", "luciole.ir"),
    "exporters": ("luciole.schema", "luciole.files", "luciole.ir"),
    "kernels": ("luciole.ir", ENUMS),
    "interpreter": ("luciole.ir", "luciole.kernels"),
    "compiler": ("luciole.files", "luciole.ir", "luciole.kernels", "luciole.interpreter"),
    "lquantizer": (
        "luciole.files",
        "luciole.ir",
        "luciole.interpreter",
        "luciole.kernels",
        ENUMS,
    ),
    "drawing": ("luciole.schema", "luciole.ir", "luciole.lquantizer"),
    "tools": ("luciole",),
}
"""Prefixes of modules that a room may import besides its own. Enums are the schema's vocabulary."""

OUTSIDE = {
    "schema": {"flatbuffers", "numpy"},
    "files": set(),
    "ir": {"numpy"},
    "importers": {"flatbuffers", "h5py", "numpy", "onnx", "tensorflow"},
    "exporters": {"flatbuffers", "numpy", "onnx"},
    "kernels": {"llvmlite", "numba", "numpy"},
    "interpreter": {"numpy"},
    "compiler": {"numpy"},
    "lquantizer": {"dask", "distributed", "numpy", "tensorflow"},
    "drawing": {"numpy"},
    "tools": {"h5py", "model_explorer", "numpy", "rich", "shtab"},
    "": {"numpy"},
}
"""Packages of others that a room may import; the facade is the room without a name."""

ONLY_IN = {
    "numba": ("luciole.kernels.jit",),
    "llvmlite": ("luciole.kernels.jit",),
    "tensorflow": ("luciole.importers.keras", "luciole.lquantizer.training.tensorflow"),
    "onnx": ("luciole.importers.onnx", "luciole.exporters.onnx"),
    "dask": ("luciole.lquantizer.search",),
    "distributed": ("luciole.lquantizer.search",),
}
FILES = {"io", "mmap", "os", "pathlib", "shutil", "socket", "subprocess", "tempfile", "urllib"}


def ours(room: str) -> list[Import]:
    return [i for i in all_imports() if i.room == room and i.package == "luciole"]


def test_the_scanner_sees_every_kind_of_import() -> None:
    source = (
        "import os.path, luciole.ir.op as o\nfrom . import enums\nfrom ..ir import op, Op\n"
        "from luciole import api\nif o:\n    import numba\n"
        "def f():\n    from luciole.tools.main import main\n    class C:\n        import h5py\n"
    )
    found = [
        (i.target, i.in_function) for i in imports_of(ast.parse(source), "luciole.schema.reader")
    ]
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


def test_the_scanner_sees_modules_that_strings_name() -> None:
    source = (
        "import importlib\nHOME = {'load': 'luciole.importers', 'no': 'luciole.nobody'}\n"
        "def f(name):\n    importlib.import_module(HOME[name])\n"
        "    importlib.import_module(f'luciole.tools.{name}')\n"
    )
    assert [i.target for i in imports_of(ast.parse(source), "luciole")] == [
        "importlib",
        "luciole.importers",
        "luciole.tools",
    ]
    assert list(named(ast.parse("HOME = 'luciole.importers'"))) == []


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


def test_folders_form_no_circle() -> None:
    assert circles(folder_imports()) == []


def test_circles_are_found() -> None:
    imports = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": set[str]()}
    assert circles(imports) == [{"a", "b", "c"}]


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


def test_numpy_is_taken_from_where_every_stated_version_has_it() -> None:
    found = {i.target for i in all_imports() if i.package == "numpy"}
    assert found <= {"numpy", "numpy.typing", "numpy.lib.stride_tricks"}


def readers_of(attribute: str) -> set[str]:
    """The modules that read an attribute of this name off something."""
    return {
        module_of(path)
        for path in sorted(ROOT.rglob("*.py"))
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr == attribute
    }


def test_one_module_knows_what_zero_points_are() -> None:
    assert readers_of("zero_point") == {"luciole.ir.quantization"}


def test_the_walk_over_layers_knows_no_method() -> None:
    network, methods = "luciole.lquantizer.network", "luciole.lquantizer.methods"
    walk = [i.target for i in all_imports() if below(i.importer, network)]
    assert walk
    assert not [target for target in walk if below(target, methods)]


def test_the_ir_knows_no_files() -> None:
    assert {i.package for i in all_imports() if i.room == "ir"} & FILES == set()


WRITERS = (
    "luciole.files",
    "luciole.importers.hdf5_process",
    "luciole.kernels.jit",
    "luciole.schema.derive",
    "luciole.tools.bench.child",
)
"""Who writes files: for all others, the cache of compiled kernels, and the schema's tables. The
processes that read HDF5 and that run other runtimes write to the pipes of their parents alone.
"""


def writes(module: Iterable[ast.AST]) -> Iterator[str]:
    """What a module calls that writes, renames or makes files; the null device does not count."""
    for node in module:
        if not isinstance(node, ast.Call):
            continue
        called, given = ast.unparse(node.func), [ast.unparse(a) for a in node.args]
        modes = [a.value for a in node.args if isinstance(a, ast.Constant)]
        opens = called.endswith("open") and any(set(str(m)) & set("wax+") for m in modes[-1:])
        makes = re.search(
            r"(os\.(re(place|name)|open)|\.write_(text|bytes)|mkstemp|TemporaryFile)$", called
        )
        if (opens or makes) and "os.devnull" not in given:
            yield called


def test_the_scanner_sees_who_writes_files() -> None:
    source = (
        "os.replace(a, b)\nopen(a)\nopen(a, 'rb')\npath.write_text(a)\nopen(os.devnull, 'w')\n"
        "with path.open('wb'): pass\ntempfile.mkstemp()\nname.replace('a', 'b')\nopen(a, 'r+')\n"
    )
    found = ["os.replace", "path.write_text", "tempfile.mkstemp", "open", "path.open"]
    assert sorted(writes(ast.walk(ast.parse(source)))) == sorted(found)


def test_files_are_written_in_one_place() -> None:
    found = {module_of(p): list(writes(nodes(p))) for p in ROOT.rglob("*.py")}
    assert found["luciole.files.writing"], "the scanner found the code"
    others = {m: f for m, f in found.items() if f and not any(below(m, w) for w in WRITERS)}
    assert others == {}


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
