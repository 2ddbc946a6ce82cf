"""Networks in C by the batch: one call of a compiler for all and one process that runs them, by
several modes: as libraries are compiled, under sanitizers, for 32 bits, called from C++.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from luciole.compiler import Program
from luciole.compiler.ends import End
from luciole.compiler.options import CALLER
from luciole.compiler.text import OF_MODEL, ctype_of
from luciole.ir import Array
from luciole.ir.dtypes import NUMPY
from luciole.ir.value import element_count
from tests.compiler_support import SOUND, STRICT

_CPP = ("-std=c++11", "-Wall", "-Wextra", "-Werror")
_OWN = re.compile(rf"\b(?=(?:luc_|LUC_|{OF_MODEL})\w|(?:arena|AT)\b)")
"""Beginnings of names that programs share. In a batch each has its own, so that one file includes
all: starting a compiler takes longer than compiling a network.
"""

_HEAD = "#include <stdio.h>\n#include <stdlib.h>\n"
_LONGEST = 400
"""Characters of a complaint that are shown."""


@dataclass(frozen=True)
class Mode:
    """A way of building: further flags, whether the target's own belong to them, and the compiler
    of what calls the networks, with its flags.
    """

    flags: tuple[str, ...] = ()
    is_tuned: bool = False
    caller: tuple[str, ...] = ("gcc", *STRICT)

    @property
    def refusal(self) -> str:
        """Return what a compiler of this machine says against the mode; empty for nothing."""
        return _refusal(self)

    @property
    def main(self) -> str:
        """The name of the file that calls the networks."""
        return "main.cpp" if self.caller[0] == "g++" else "main.c"


MODES = {
    "plain": Mode(is_tuned=True),
    "sound": Mode(("-O1", *SOUND)),
    "m32": Mode(("-O1", "-m32", "-msse2", "-mfpmath=sse", *SOUND)),
    "c++": Mode(("-O2",), caller=("g++", *_CPP)),
}
"""Modes by name. Without SSE a 32-bit x86 computes with more digits than floats have, as no board
does.
"""


@dataclass(frozen=True, eq=False)
class Case:
    """A network in C, what each of its runs is given, and what the interpreter makes of it."""

    seed: int
    program: Program
    runs: Sequence[dict[str, Array]]
    wanted: Sequence[Sequence[Array]]
    overflows: bool

    @property
    def name(self) -> str:
        """What the functions of the program begin with."""
        return self.program.options.name

    @property
    def given(self) -> bytes:
        """Return what the runs read, in order."""
        ends = self.program.inputs
        return b"".join(run[e.original.name].tobytes() for run in self.runs for e in ends)

    @property
    def result_bytes(self) -> int:
        """Count the bytes that all runs write."""
        return len(self.runs) * sum(_bytes(end) for end in self.program.outputs)

    def results(self, written: bytes) -> list[list[Array]]:
        """Read what the runs wrote."""
        found, place = list[list[Array]](), 0
        for _ in self.runs:
            found.append([])
            for end in self.program.outputs:
                raw = written[place : place + _bytes(end)]
                array = np.frombuffer(raw, NUMPY[end.value.dtype])
                found[-1].append(array.reshape(end.value.dims))
                place += len(raw)
        return found


def run_batch(
    cases: Sequence[Case], mode: Mode, tuning: Sequence[str], folder: Path
) -> Iterator[tuple[Case, bytes | str]]:
    """Yield each network of a batch with what it wrote, or with what is wrong: compilers' warnings,
    or what sanitizers say.
    """
    for case in cases:
        for name, text in case.program.files.items():
            (folder / name).write_text(_OWN.sub(f"{case.name}_", text))
    left, complaint = list(cases), _compiled(cases, mode, tuning, folder)
    while complaint:
        odd = [c for c in left if re.search(rf"\b{c.name}\.[ch]\b", complaint)] or left
        yield from ((case, complaint[:_LONGEST]) for case in odd)
        left = [case for case in left if case not in odd]
        complaint = _compiled(left, mode, tuning, folder) if left else ""
    while left:
        done = subprocess.run(
            [folder / "batch", str(left[0].seed)],
            input=b"".join(case.given for case in left),
            capture_output=True,
            check=False,
        )
        place = 0
        while left and place + left[0].result_bytes <= len(done.stdout) and _ends(left, done):
            yield left[0], done.stdout[place : place + left[0].result_bytes]
            place += left.pop(0).result_bytes
        if left:
            yield left.pop(0), _failure(done)


def _failure(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return how a process ended, and what a sanitizer said of it."""
    said = done.stderr.decode(errors="replace").rpartition(" ends\n")[2]
    return f"it ends with {done.returncode}: {said[:_LONGEST]}"


def _ends(left: Sequence[Case], done: subprocess.CompletedProcess[bytes]) -> bool:
    """Whether the next case came to its end, which it says on the standard error."""
    return f"{left[0].name} ends\n".encode() in done.stderr


def _compiled(cases: Sequence[Case], mode: Mode, tuning: Sequence[str], folder: Path) -> str:
    """Compile networks and what calls them; return what compilers say against it."""
    sources = "".join(f'#include "{case.name}.c"\n' for case in cases)
    (folder / "networks.c").write_text(sources)
    (folder / mode.main).write_text(_main(cases))
    tuned = tuning if mode.is_tuned else ()
    for words in (
        ["gcc", *STRICT, *tuned, *mode.flags, "-c", "networks.c"],
        [*mode.caller, *mode.flags, mode.main, "networks.o", "-o", "batch"],
    ):
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr or f"{words[0]} ends with {done.returncode}"
    return ""


def _main(cases: Sequence[Case]) -> str:
    """Write a program, in what C and C++ share, that runs all networks from the one of a number on:
    it reads what they are given, and writes their results.
    """
    includes = "".join(f'#include "{case.name}.h"\n' for case in cases)
    functions = "\n".join("\n".join(_function(case)) for case in cases)
    calls = "".join(
        f"    if (first <= {case.seed} && run_{case.name}()) return 1;\n" for case in cases
    )
    return (
        f"{_HEAD}{includes}\n{functions}\nint main(int count, char **words)\n{{\n"
        f"    const int first = count > 1 ? atoi(words[1]) : 0;\n{calls}    return 0;\n}}\n"
    )


def _function(case: Case) -> Iterator[str]:
    """Write the function that runs a network: its arrays have no byte more than they say."""
    program, name = case.program, case.name
    rooms = [(f"x{k}", end) for k, end in enumerate(program.inputs)]
    written = [(f"y{k}", end) for k, end in enumerate(program.outputs)]
    pointers = [f"{ctype_of(e.value.dtype)} *{room}" for room, e in (*rooms, *written)]
    held = list(zip(pointers, (_bytes(e) for _, e in (*rooms, *written)), strict=True))
    if program.options.arena == CALLER:
        held.append(("int64_t *arena", program.layout.size))
    yield f"static int run_{name}(void)\n{{\n    int failed = 0;"
    if program.is_stateful:
        yield f"    struct {name}_state *state = (struct {name}_state *)malloc(sizeof *state);"
        yield f"    {name}_reset(state);"
    for pointer, size in held:
        yield f"    {pointer} = ({pointer.partition('*')[0]}*)malloc({size});"
    yield f"    for (int run = 0; run < {len(case.runs)}; run++) {{"
    for room, end in rooms:
        yield f"        failed |= fread({room}, {_bytes(end)}, 1, stdin) != 1;"
    states = ["state"] * program.is_stateful
    arena = ["arena"] * (program.options.arena == CALLER)
    arguments = ", ".join([*states, *arena, *(room for room, _ in (*rooms, *written))])
    yield f"        failed |= {name}_run({arguments});"
    for room, end in written:
        yield f"        failed |= fwrite({room}, {_bytes(end)}, 1, stdout) != 1;"
    yield "    }"
    for pointer, _ in held:
        yield f"    free({pointer.rpartition('*')[2]});"
    yield from ["    free(state);"] * program.is_stateful
    yield f'    fflush(stdout);\n    if (!failed) fputs("{name} ends\\n", stderr);'
    yield "    return failed;\n}\n"


def _bytes(end: End) -> int:
    return element_count(end.value.dims) * np.dtype(NUMPY[end.value.dtype]).itemsize


@cache
def _refusal(mode: Mode) -> str:
    if not shutil.which(mode.caller[0]):
        return f"there is no {mode.caller[0]}"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / mode.main).write_text(f"{_HEAD}int main(void)\n{{\n    return 0;\n}}\n")
        words = [*mode.caller, *mode.flags, mode.main]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return " ".join(done.stderr.split())[:_LONGEST]
