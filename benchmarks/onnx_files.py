"""ONNX files that other people made, imported and run beside onnxruntime: prints a table.

    python3 -m benchmarks.onnx_files FOLDER [--size N] [--rounds N] [--output FILE.json]

Each file below FOLDER is imported as it is, and once more with every open extent settled: the first
of each input and those called batch are 1, the others ``--size``. Both runtimes get the same random
inputs of that size, integers below 100 or, where onnxruntime refuses these, 0 and 1; results are
equal where they differ by no more than 1e-4 of the largest number. Times are medians of the
process's own time, turn by turn. NumPy counts operators without a compiled form.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time_ns
from typing import Any

import numpy as np

from benchmarks.accuracy_table import markdown
from benchmarks.machine import machine
from luciole.files import write_file
from luciole.importers import load
from luciole.interpreter import Interpreter
from luciole.ir import Array, LucioleError
from luciole.tools.common.console import to_json
from luciole.tools.common.declined import declined
from luciole.tools.common.timing import Limits, measured

PACKAGES = ("luciole", "numba", "llvmlite", "numpy", "onnx", "onnxruntime")
EQUAL = 1e-4
"""How far results may be apart, as a share of the largest number."""
_SMALLEST = 1e-6
"""What is no difference, whatever the largest number is."""
_BELOW = (100, 2)
"""What random integers lie below: embeddings may have few rows."""
_TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16, "bool": np.bool_}

Inputs = Mapping[str, Array]


@dataclass(frozen=True)
class Row:
    """One file: what became of it as it is and with settled extents (equal, different or refused,
    with the reason), medians in microseconds, and operators that NumPy computes.
    """

    file: str
    as_it_is: str
    settled: str
    luciole_us: float = 0.0
    onnxruntime_us: float = 0.0
    in_numpy: int = 0

    def cells(self) -> list[str]:
        """The file's line of the table."""
        if not self.luciole_us:
            return [self.file, self.as_it_is, self.settled, "", "", "", ""]
        times = [f"{us / 1000:.2f}" for us in (self.luciole_us, self.onnxruntime_us)]
        ratio = f"{self.onnxruntime_us / self.luciole_us:.2f}"
        return [self.file, self.as_it_is, self.settled, *times, ratio, str(self.in_numpy)]


HEAD = ["file", "as it is", "settled", "luciole ms", "onnxruntime ms", "ratio", "NumPy"]


def row(path: Path, name: str, size: int, rounds: int) -> Row:
    """Import and run one file; what onnxruntime refuses is told so."""
    import onnxruntime  # type: ignore[import-untyped]  # it has no types

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        inputs, expected = _fed(session, size)
    except Exception as error:  # of onnxruntime's own classes, which have no common base
        return Row(name, f"onnxruntime: {_line(error)}", "")
    shapes = {n: array.shape for n, array in inputs.items()}
    ways: list[Callable[[], Interpreter]] = [
        lambda: Interpreter(load(path)),
        lambda: Interpreter(load(path, shapes=shapes)),
    ]
    runs = [_tried(way, inputs, expected) for way in ways]
    (first, _), (second, _) = runs
    interpreter = next((one for _, one in reversed(runs) if one is not None), None)
    if interpreter is None:
        return Row(name, first, second)
    limits = Limits(runs=rounds, min_seconds=0.2, warmup_seconds=0.2)
    calls = [interpreter.invoke, lambda: session.run(None, inputs)]
    ours, theirs = (t.median_us for t in measured(calls, limits, clock=process_time_ns))
    in_numpy = len(declined(interpreter.plan))
    return Row(name, first, second, ours, theirs, in_numpy)


def _fed(session: Any, size: int) -> tuple[Inputs, list[Array]]:
    """Run onnxruntime on random inputs; returns these and the results."""
    for below in _BELOW:
        inputs = {port.name: _random(port, size, below) for port in session.get_inputs()}
        try:
            return inputs, session.run(None, inputs)
        except Exception:  # of onnxruntime's own classes
            if below == _BELOW[-1]:
                raise
    raise AssertionError("the last numbers were tried")


def _random(port: Any, size: int, below: int) -> Array:
    """Make an input: 1 for the first extent and for what is called batch where these are open."""
    shape = [
        n if isinstance(n, int) and n >= 0 else 1 if not place or n == "batch" else size
        for place, n in enumerate(port.shape)
    ]
    element = port.type.removeprefix("tensor(").removesuffix(")")
    kind = np.dtype(_TYPES.get(element, element))
    rng = np.random.default_rng(1)
    array = rng.random(shape) if kind.kind == "f" else rng.integers(0, below, shape)
    return np.asarray(array).astype(kind)


def _tried(
    interpreter: Callable[[], Interpreter], inputs: Inputs, expected: list[Array]
) -> tuple[str, Interpreter | None]:
    """Import and run; returns what became of it, and the interpreter where it ran."""
    try:
        ours = interpreter()
        taken = {value.name for value in ours.graph.inputs}
        results = list(ours.run({n: a for n, a in inputs.items() if n in taken}).values())
    except LucioleError as error:
        return f"refused: {_line(error)}", None
    apart = max(map(_apart, expected, results), default=0.0)
    return ("equal" if apart <= EQUAL else f"different: {apart:.1e}"), ours


def _apart(expected: Array, result: Array) -> float:
    if np.shape(expected) != result.shape:
        return float("inf")
    exact = np.asarray(expected, np.float64)
    largest = np.abs(exact).max(initial=0.0)
    difference = np.abs(exact - result).max(initial=0.0)
    return 0.0 if difference <= _SMALLEST else float(difference / max(largest, _SMALLEST))


def _line(error: Exception, longest: int = 90) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= longest else f"{text[:longest]}..."


def main() -> None:
    """Measure, print the table, write what was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--size", type=int, default=64, help="of open extents (default: 64)")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--output", type=Path, metavar="FILE.json", help="also write the figures")
    arguments = parser.parse_args()
    files = sorted(arguments.folder.rglob("*.onnx"))
    rows = [
        row(path, str(path.relative_to(arguments.folder)), arguments.size, arguments.rounds)
        for path in files
    ]
    print(markdown([HEAD, *(one.cells() for one in rows)]))
    facts = machine(PACKAGES)
    print(f"\n{facts}")
    if arguments.output:
        write_file(arguments.output, to_json({"machine": facts, "rows": [asdict(r) for r in rows]}))


if __name__ == "__main__":
    main()
