"""Kinds of models that were once slow, against LiteRT on one thread: prints a ratio table.

    python3 -m benchmarks.kinds [--rounds N] [--json FILE] [NAME ...]

The kinds are what ``kinds`` of the files ``benchmarks/kinds_*.py`` returns: names and models.
Medians of interleaved calls of both interpreters' ``invoke`` on the same random input; LiteRT has
its default kernels and delegate. NAME picks rows by a part of their name. The last column names the
operators that NumPy runs, and why they are not compiled.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import benchmarks
from benchmarks.machine import machine
from luciole.exporters import to_bytes
from luciole.files import write_file
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Array, Graph, LucioleError, Model
from luciole.ir.dtypes import integer_range, tensor_type
from luciole.tools.common.declined import declined
from luciole.tools.common.timing import interleaved_medians

PACKAGES = ("luciole", "numba", "llvmlite", "numpy", "ai-edge-litert")
PREFIX = "kinds_"

Kind = tuple[str, "bytes | Graph | Model"]
"""A name and a model, the main graph of one, or what a ``.tflite`` file holds."""


@dataclass(frozen=True)
class Row:
    """One kind: medians of a run in microseconds, LiteRT's over ours, and which kinds of operators
    NumPy runs, each with the reason.
    """

    kind: str
    luciole_us: float
    litert_us: float
    ratio: float
    numpy: list[str]


def kinds() -> Iterator[Kind]:
    """Yield everything that the files return."""
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.name.startswith(PREFIX):
            found = importlib.import_module(f"{benchmarks.__name__}.{module.name}")
            yield from found.kinds()


def content_of(model: bytes | Graph | Model) -> bytes:
    """Write a model as a ``.tflite`` file."""
    if isinstance(model, bytes):
        return model
    whole = model.model if isinstance(model, Graph) else model
    assert whole is not None, "a graph belongs to a model"
    return to_bytes(whole, "tflite")


MOST_SIZE = 9
"""Integers of 32 or 64 bits are sizes or places: 1 up to before this."""


def random_input(shape: Sequence[int] | Array, dtype: np.dtype[np.generic]) -> Array:
    """Make normal numbers, or all integers of a type alike."""
    rng = np.random.default_rng(3)
    if dtype.kind == "f":
        return rng.normal(size=tuple(shape)).astype(dtype)
    limits = integer_range(tensor_type(dtype)) if dtype.kind in "iu" else (0, 1)
    low, high = limits or (0, 1)
    if dtype.kind == "i" and dtype.itemsize > 2:
        low, high = 1, MOST_SIZE
    return rng.integers(low, high, tuple(shape), np.int64).astype(dtype)


def measured(kind: Kind, rounds: int) -> Row:
    """Run both. Raises LucioleError, and what LiteRT raises, for what one of them does not run."""
    from ai_edge_litert.interpreter import Interpreter as LiteRT

    name, model = kind
    content = content_of(model)
    ours = Interpreter(from_bytes(content))
    calls: list[Callable[[], object]] = []
    for runtime in (ours, LiteRT(model_content=content, num_threads=1)):
        runtime.allocate_tensors()
        for detail in runtime.get_input_details():
            x = random_input(detail["shape"], np.dtype(detail["dtype"]))
            runtime.set_tensor(detail["index"], x)
        calls.append(runtime.invoke)
    mine, theirs = interleaved_medians(calls, rounds)
    return Row(name, mine, theirs, theirs / mine, not_compiled(ours))


def not_compiled(interpreter: Interpreter) -> list[str]:
    """Name the kinds of operators that NumPy runs, and why, each once."""
    rows = declined(interpreter.plan)
    return list(dict.fromkeys(f"{kind}: {reason}" for _, kind, reason in rows))


def line(row: Row) -> str:
    """One row of the table."""
    figures = f"{row.luciole_us:.2f} | {row.litert_us:.2f} | {row.ratio:.2f}x"
    return f"{row.kind} | {figures} | {'; '.join(row.numpy)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of kinds' names")
    parser.add_argument("--rounds", type=int, default=30, help="samples of each (default 30)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    options = parser.parse_args()
    print("kind | luciole us | LiteRT us | ratio | NumPy |\n---|---|---|---|---|")
    rows = []
    for kind in kinds():
        if options.names and not any(part in kind[0] for part in options.names):
            continue
        try:
            rows.append(measured(kind, options.rounds))
            print(line(rows[-1]), flush=True)
        except (LucioleError, ValueError, RuntimeError) as error:
            print(f"{kind[0]} | | | | {str(error).splitlines()[0]} |", flush=True)
    print(f"\n{machine(PACKAGES)}")
    if options.json is not None:
        found = {"machine": machine(PACKAGES), "rows": [asdict(row) for row in rows]}
        write_file(options.json, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
