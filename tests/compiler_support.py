"""Programs in C compiled by this machine's compiler, strictly, and run beside the interpreter."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from luciole.compiler import Compiled, CompileOptions, Program, compile_model
from luciole.compiler.host import entry_text, library_of
from luciole.compiler.targets import find_compiler
from luciole.ir import Array, Model, Value
from luciole.kernels.core import evaluation

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror")
QUICK = (*STRICT, "-O1", "-fPIC", "-shared")
SOUND = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]

needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")


def program_of(
    model: Model,
    input: str = "model",  # as the option
    output: str = "model",
    target: str = "portable",
    arena: str = "static",
    name: str = "net",
) -> Program:
    return compile_model(model, CompileOptions(name, input, output, (), "", target, arena))


_MADE: dict[bytes, bytes] = {}
"""What compilers made, by the hash of what they were given."""


def _once(texts: Sequence[str], make: Callable[[], bytes]) -> bytes:
    """Compile the same texts by the same words once for all tests of a process."""
    key = hashlib.sha256("\0".join(texts).encode()).digest()
    if key not in _MADE:
        _MADE[key] = make()
    return _MADE[key]


def built(
    program: Program, folder: Path, name: str = "net.so", flags: Sequence[str] = QUICK
) -> Compiled:
    """Compile a program for this machine; any warning is an error here."""
    texts = [find_compiler(), *flags, *program.files.values(), entry_text(program)]
    (folder / name).write_bytes(_once(texts, lambda: library_of(program, flags)))
    return Compiled(folder / name)


def results(model: Model, folder: Path, given: dict[str, Array]) -> list[Array]:
    return built(program_of(model), folder).run(given)


def interpreted(
    model: Model, given: dict[str, Array], states: Mapping[Value, Array] = MappingProxyType({})
) -> list[Array]:
    """What reference kernels compute, operator by operator: nothing has to be compiled for it.
    ``states`` are written over.
    """
    arrays = {v: v.data for v in model.graph.values if v.is_constant}
    arrays |= states
    arrays |= {v: given[v.name] for v in model.graph.inputs}
    for op in model.graph.ops:
        found = evaluation.computed(op, [None if v is None else arrays[v] for v in op.operands])
        arrays |= dict(zip(op.results, found, strict=True))
    return [array for v in model.graph.outputs if (array := arrays[v]) is not None]


def run_sound(program: Program, folder: Path, test: str, compiler: str = "gcc") -> int:
    """Compile a program with its self test under sanitizers; its exit code."""
    for name, text in {**program.files, "net_test.c": test}.items():
        (folder / name).write_text(text)
    sound = SOUND if compiler == "gcc" else ()  # Debian's clang comes without their library
    words = [compiler, *STRICT, *sound]

    def compiled() -> bytes:
        subprocess.run([*words, "-c", "net.c"], cwd=folder, check=True)
        return (folder / "net.o").read_bytes()

    (folder / "net.o").write_bytes(_once([*words, *program.files.values()], compiled))
    subprocess.run([*words, "net.o", "net_test.c", "-o", "test"], cwd=folder, check=True)
    return subprocess.run([str(folder / "test")], check=False).returncode


def close(found: Array, wanted: Array, within: float = 1e-5) -> None:
    np.testing.assert_allclose(found, wanted, rtol=within, atol=within)
