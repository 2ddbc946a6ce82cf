"""Models of other people's in C: which are written, and are results the interpreter's?

    python3 -m benchmarks.models_in_c FILE [NAME=1,3,48,320 ...] [NAME=16000 ...] [FILE ...]

Words with ``=`` settle inputs of the file before them: shapes have a comma, constants have none.
Each model runs twice on random records, states and all, compiled by ``cc -O1``; differences are
shares of the interpreter's largest number, of integers in steps.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.kinds import PACKAGES, random_input
from benchmarks.machine import machine
from luciole.compiler import Compiled, CompileOptions, Program, compile_model
from luciole.compiler.host import FLAGS, build_library
from luciole.importers.extents import Settled
from luciole.importers.files import read
from luciole.interpreter import Interpreter
from luciole.ir import Array, LucioleError, Model
from luciole.ir.dtypes import NUMPY

RUNS = 2


@dataclass
class Asked:
    """A file, and what is settled of its inputs."""

    path: Path
    shapes: dict[str, tuple[int | None, ...]] = field(default_factory=dict)
    constants: dict[str, ArrayLike] = field(default_factory=dict)

    def model(self) -> Model:
        """Read the file."""
        settled = Settled(1, self.shapes, {}, self.constants)
        return read(str(self.path), settled).sound()


def asked(words: Sequence[str]) -> list[Asked]:
    """Read the command line's words."""
    files: list[Asked] = []
    for word in words:
        name, equals, text = word.rpartition("=")
        if not equals:
            files.append(Asked(Path(word)))
        elif "," in text:
            files[-1].shapes[name] = tuple(map(int, text.split(",")))
        else:
            files[-1].constants[name] = int(text)
    return files


def differences(model: Model, program: Program, compiled: Compiled) -> Iterator[float]:
    """Yield how far each result of each run is from the interpreter's."""
    interpreter, outputs = Interpreter(model), [end.original for end in program.outputs]
    ends = [end.value for end in program.inputs]
    given = {
        end.original.name: random_input(value.dims, np.dtype(NUMPY[value.dtype]))
        for end, value in zip(program.inputs, ends, strict=True)
    }
    for _ in range(RUNS):
        expected = interpreter.computed(given, outputs)
        for result, array in zip(compiled.run(given), expected, strict=True):
            yield _apart(result.reshape(array.shape), array)


def _apart(result: Array, expected: Array) -> float:
    """Measure how far floats are apart as a share of the largest, integers in steps."""
    off = float(np.abs(result.astype(np.float64) - expected.astype(np.float64)).max(initial=0))
    most = float(np.abs(expected).max(initial=0)) if expected.dtype.kind == "f" else 1.0
    return off / (most or 1.0)


def line(file: Asked) -> str:
    """Write a row."""
    try:
        model = file.model()
        program = compile_model(model, CompileOptions("network"))
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "network.so"
            build_library(program, library, [*FLAGS, "-O1"])
            most = max(differences(model, program, Compiled(library)))
    except LucioleError as error:
        return f"{file.path.name} | | | | | {error} |"
    operators = sum(len(graph.ops) for graph in model.graphs)
    sizes = f"{program.table_bytes / 1024:,.0f} | {program.arena_bytes / 1024:,.0f}"
    return f"{file.path.name} | {operators} | {sizes} | {most:.1e} | |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="+", metavar="FILE")
    files = asked(parser.parse_args().words)
    print("file | operators | tables KB | arena KB | difference | refused |")
    print("---|---|---|---|---|---|")
    for file in files:
        print(line(file), flush=True)
    print(f"\n{machine(PACKAGES)}")


if __name__ == "__main__":
    main()
