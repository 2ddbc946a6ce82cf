"""Small files on which luciole and others once differed: equal to LiteRT, compiled, as fast?

    python3 -m benchmarks.foreign [--rounds N]

Every file of the folder ``foreign`` that LUCIOLE_DATA names, recipes as the ``.tflite`` files they
stand for. The largest difference from the results of LiteRT's reference kernels on the same random
input, in steps where they are integers; medians of interleaved calls on one thread, LiteRT with its
default kernels; operators that NumPy runs. What LiteRT refuses is timed alone.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kinds import PACKAGES, not_compiled, random_input
from benchmarks.machine import machine
from luciole.exporters import to_bytes
from luciole.importers import from_bytes, load
from luciole.interpreter import Interpreter
from luciole.ir import Array, LucioleError
from luciole.kernels.core.custom import custom_operator
from luciole.tools.common.timing import interleaved_medians


def files() -> list[Path]:
    """List every file, and every recipe without one."""
    folder = Path(os.environ.get("LUCIOLE_DATA", "data")) / "foreign"
    recipes = [p for p in folder.glob("*.recipe") if not p.with_suffix(".tflite").exists()]
    return sorted([*folder.glob("*.tflite"), *recipes])


def content_of(path: Path) -> bytes:
    """Read a file, or write what a recipe describes. Raises LucioleError where it is no model."""
    return path.read_bytes() if path.suffix == ".tflite" else to_bytes(load(path), "tflite")


def ready(runtime: Any) -> Any:
    """Feed a runtime random input."""
    runtime.allocate_tensors()
    for detail in runtime.get_input_details():
        x = random_input(detail["shape"], np.dtype(detail["dtype"]))
        runtime.set_tensor(detail["index"], x)
    runtime.invoke()
    return runtime


def results(runtime: Any) -> list[Array]:
    """Copy what a runtime has computed."""
    return [np.array(runtime.get_tensor(d["index"])) for d in runtime.get_output_details()]


def difference(ours: list[Array], theirs: list[Array]) -> str:
    """Say how far results are apart."""
    if [a.shape for a in ours] != [b.shape for b in theirs]:
        return "other shapes"
    pairs = zip(ours, theirs, strict=True)
    apart = [np.abs(a.astype(np.float64) - b.astype(np.float64)) for a, b in pairs]
    most = max((float(steps.max(initial=0)) for steps in apart), default=0.0)
    return "none" if most == 0 else f"{most:.1e}"


def line(name: str, content: bytes, rounds: int) -> str:
    """Write one row. Raises LucioleError for what luciole does not run."""
    from ai_edge_litert.interpreter import Interpreter as LiteRT
    from ai_edge_litert.interpreter import OpResolverType

    ours = ready(Interpreter(from_bytes(content)))
    calls: list[Callable[[], object]] = [ours.invoke]
    try:
        theirs = ready(LiteRT(model_content=content, num_threads=1))
    except (ValueError, RuntimeError) as error:
        (mine,) = interleaved_medians(calls, rounds)
        why = str(error).splitlines()[0]
        return f"{name} | | {mine:.2f} | | | {'; '.join(not_compiled(ours))} | {why} |"
    exact = LiteRT(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    apart = difference(results(ours), results(ready(exact)))
    mine, other = interleaved_medians([*calls, theirs.invoke], rounds)
    times = f"{mine:.2f} | {other:.2f} | {other / mine:.2f}x"
    return f"{name} | {apart} | {times} | {'; '.join(not_compiled(ours))} | |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30, help="samples of each (default 30)")
    rounds = parser.parse_args().rounds
    erf = np.vectorize(math.erf, otypes=[np.float32])
    custom_operator("Erf")(lambda x, **_: np.asarray(erf(x), np.float32))
    print("file | difference | luciole us | LiteRT us | ratio | NumPy | LiteRT says |")
    print("---|---|---|---|---|---|---|")
    for path in files():
        try:
            print(line(path.name, content_of(path), rounds), flush=True)
        except LucioleError as error:
            print(f"{path.name} | | | | | | luciole: {str(error).splitlines()[0]} |", flush=True)
    print(f"\n{machine(PACKAGES)}")


if __name__ == "__main__":
    main()
