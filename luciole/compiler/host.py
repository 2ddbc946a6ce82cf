"""The compiler of this machine: programs as shared libraries."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from luciole.compiler.ends import End
from luciole.compiler.options import CALLER
from luciole.compiler.program import Program
from luciole.compiler.targets import find_compiler
from luciole.compiler.text import table
from luciole.files import write_file
from luciole.ir import LucioleError
from luciole.ir.dtypes import NUMPY

FLAGS = ("-std=c99", "-fPIC", "-shared")
_LONGEST = 300
"""Characters of a compiler's complaint that are shown."""


def build_library(program: Program, target: Path, flags: Sequence[str] = ()) -> None:
    """Compile a program as ``library_of`` does and write the library to a file."""
    write_file(target, library_of(program, flags))


def library_of(program: Program, flags: Sequence[str] = ()) -> bytes:
    """Compile a program into a shared library that ``Compiled`` runs, by the flags of its
    target's libraries or by others.

    Raises LucioleError where there is no compiler or it fails.
    """
    compiler = find_compiler()
    with tempfile.TemporaryDirectory() as folder:
        for name, text in program.files.items():
            write_file(Path(folder) / name, text)
        entry, library = Path(folder) / "entry.c", Path(folder) / "library.so"
        write_file(entry, entry_text(program))
        sources = [str(entry), str(Path(folder) / f"{program.options.name}.c")]
        options = flags or (*FLAGS, *program.options.machine.library.split())
        run_compiler([compiler, *options, *sources, "-o", str(library)])
        return library.read_bytes()


def run_compiler(words: Sequence[str]) -> None:
    """Run a compiler. Raises LucioleError with the first lines of what it says."""
    done = subprocess.run(list(words), capture_output=True, text=True, check=False)
    if done.returncode:
        said = " ".join(done.stderr.split())[:_LONGEST]
        raise LucioleError(f"{words[0]} failed: {said}")


def entry_text(program: Program) -> str:
    """Write the entry that ``Compiled`` looks for in a library: a description and one function to
    call.
    """
    name = program.options.name
    inputs = [f"inputs[{k}]" for k in range(len(program.inputs))]
    outputs = [f"outputs[{k}]" for k in range(len(program.outputs))]
    arena, memory, begin, reset = "", "", "", ""
    if program.options.arena == CALLER:
        memory = f"static int64_t arena[{program.layout.size // 8 + 1}];\n"
        arena = "arena, "
    state = "".join(f"{argument}, " for argument in program.state_argument)
    if not program.inputs:
        begin = "    (void)inputs;\n"
    if not program.outputs:
        begin += "    (void)outputs;\n"
    if program.is_stateful:
        memory += f"static struct {name}_state state;\nstatic int has_begun;\n\n"
        memory += "void luciole_reset(void);\n"
        begin += "    if (!has_begun) luciole_reset();\n"
        reset = (
            f"void luciole_reset(void)\n{{\n    {name}_reset({state.removesuffix(', ')});\n"
            "    has_begun = 1;\n}\n\n"
        )
    text = json.dumps(description(program)).encode()  # C99 has no long strings
    described = table("described", "int8_t", np.frombuffer(text + b"\0", np.int8))[0]
    return (
        f'#include "{name}.h"\n\n{described}\n\n{memory}const char *luciole_describe(void);\n'
        "int luciole_run(const void *const *inputs, void *const *outputs);\n\n"
        f"const char *luciole_describe(void)\n{{\n    return (const char *)described;\n}}\n\n"
        f"{reset}int luciole_run(const void *const *inputs, void *const *outputs)\n{{\n"
        f"{begin}    return {name}_run({state}{arena}{', '.join([*inputs, *outputs])});\n}}\n"
    )


def description(program: Program) -> dict[str, object]:
    """Describe a program's inputs and outputs: names, types and shapes."""
    return {
        "name": program.options.name,
        "inputs": [_described(end) for end in program.inputs],
        "outputs": [_described(end) for end in program.outputs],
    }


def _described(end: End) -> dict[str, object]:
    dtype = NUMPY[end.value.dtype].name
    shape = list(end.value.dims)
    return {"name": end.original.name, "dtype": dtype, "shape": shape, "places": end.places}
