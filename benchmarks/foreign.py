"""Small files on which luciole and others once differed: equal to LiteRT, compiled, as fast?

    python3 -m benchmarks.foreign [--rounds N]

Every file of the folder ``foreign`` that LUCIOLE_DATA names, recipes as the ``.tflite`` files they
stand for. The largest difference from the results of LiteRT's reference kernels on the same random
input, in steps where they are integers; medians of interleaved calls on one thread, LiteRT with its
default kernels; operators that NumPy runs. What one of both refuses is timed alone.
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
from luciole.importers import from_bytes
from luciole.importers.recipe.cook import cook_file
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
    """Read a file, or cook a recipe, as ``.circle`` where only that has its types."""
    if path.suffix == ".tflite":
        return path.read_bytes()
    model = cook_file(path).model
    try:
        return to_bytes(model, "tflite")
    except LucioleError:
        return to_bytes(model)


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


def tried(make: Callable[[], Any]) -> tuple[list[Any], str]:
    """Make a runtime and feed it; none where it refuses, and what it says then."""
    try:
        return [ready(make())], ""
    except (LucioleError, ValueError, RuntimeError) as error:
        return [], str(error).splitlines()[0]


def line(name: str, content: bytes, rounds: int) -> str:
    """Write one row."""
    from ai_edge_litert.interpreter import Interpreter as LiteRT
    from ai_edge_litert.interpreter import OpResolverType

    ours, why = tried(lambda: Interpreter(from_bytes(content)))
    theirs, they_say = tried(lambda: LiteRT(model_content=content, num_threads=1))
    calls = [runtime.invoke for runtime in (*ours, *theirs)]
    times = interleaved_medians(calls, rounds) if calls else []
    mine, other = ([f"{times.pop(0):.2f}"] if runtime else [""] for runtime in (ours, theirs))
    apart = ratio = ""
    if ours and theirs:
        reference = OpResolverType.BUILTIN_REF
        exact = LiteRT(model_content=content, experimental_op_resolver_type=reference)
        apart = difference(results(ours[0]), results(ready(exact)))
        ratio = f"{float(*other) / float(*mine):.2f}x"
    why = why or "; ".join(not_compiled(ours[0]))
    return " | ".join([name, apart, *mine, *other, ratio, why, f"{they_say} |"])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30, help="samples of each (default 30)")
    rounds = parser.parse_args().rounds
    erf = np.vectorize(math.erf, otypes=[np.float32])
    custom_operator("Erf")(lambda x, **_: np.asarray(erf(x), np.float32))
    print("file | difference | luciole us | LiteRT us | ratio | not compiled | LiteRT says |")
    print("---|---|---|---|---|---|---|")
    for path in files():
        print(line(path.name, content_of(path), rounds), flush=True)
    print(f"\n{machine(PACKAGES)}")


if __name__ == "__main__":
    main()
