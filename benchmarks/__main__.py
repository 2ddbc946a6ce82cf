"""The figures of README and docs by one command, but for those beside which another one stands.

    python3 -m benchmarks [--quick] [--only latency,cold_start] [--output FOLDER]
    python3 -m benchmarks [--quick] --beside CHECKOUT

Each part is a program of its own (``python3 -m benchmarks.NAME --help`` says what it measures) and
runs in a process of its own. What it prints is shown, and kept in FOLDER as NAME.json: the machine,
the command, how long it took, and every table as rows of cells; messages go to NAME.log. Accuracy
needs data: LUCIOLE_DATA names a folder with mnist.npz and cifar10_subset.npz (Keras's layout) and
MLPerf Tiny's and an LSTM's .tflite files in models/. On a machine that others use, say
``taskset -c 1 nice -n -15 python3 -m benchmarks``. ``--beside CHECKOUT`` measures only how fast
kernels and networks are here beside that tree of luciole's sources; it ends with exit code 1 where
one is slower here.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import beside
from benchmarks.networks import NETWORKS
from luciole.files import write_file
from luciole.ir import LucioleError
from luciole.tools.common.command import UsageError
from luciole.tools.common.console import say, to_json
from luciole.tools.common.machine import machine_facts

PACKAGES = ("luciole", "numpy", "numba", "llvmlite", "ai-edge-litert", "tensorflow-cpu")
DATA = Path(os.environ.get("LUCIOLE_DATA", "data"))
ACCURACY = {
    "--mnist": DATA / "mnist.npz",
    "--cifar": DATA / "cifar10_subset.npz",
    "--resnet": DATA / "models" / "resnet8_fp32.tflite",
    "--lstm": DATA / "models" / "mnist_lstm_fp32.tflite",
    "--ad01": DATA / "models" / "ad01_fp32.tflite",
}
"""What the accuracy benchmark takes."""

MODELS = tuple(DATA / "models" / f"{name}.tflite" for name in NETWORKS)

UNIFORM = (
    DATA / "cifar10_subset.npz",
    *(DATA / "models" / f"{name}_fp32.tflite" for name in ("resnet8", "mbnet_bad")),
)


@dataclass(frozen=True)
class Part:
    """A program of this package: its arguments, those that make it short, the files it needs, and
    whether it takes ``--output`` and ``--plot`` itself (which it is given where matplotlib is).
    """

    name: str
    arguments: tuple[str, ...] = ()
    quick: tuple[str, ...] = ()
    needs: tuple[Path, ...] = ()
    writes: bool = False
    plots: bool = False

    def command(self, folder: Path, quick: bool) -> list[str]:
        """What runs it."""
        words = [sys.executable, "-m", f"benchmarks.{self.name}", *self.arguments]
        words += self.quick if quick else ()
        words += ["--output", str(folder / f"{self.name}_rows.json")] if self.writes else []
        draws = self.plots and find_spec("matplotlib") is not None
        return words + (["--plot", str(folder / f"{self.name}.png")] if draws else [])

    def missing(self) -> str:
        """Why it cannot run here, nothing when it can."""
        absent = [str(path) for path in self.needs if not path.exists()]
        if absent:
            return f"there is no {', '.join(absent)} (LUCIOLE_DATA names the folder)"
        return (
            "" if find_spec(f"benchmarks.{self.name}") else f"there is no benchmarks/{self.name}.py"
        )


PARTS = (
    Part("latency", quick=("--quick",), writes=True, plots=True),
    Part("lq_fully_connected", quick=("--rounds", "30")),
    Part("lq_conv_2d", quick=("--rounds", "30")),
    Part("networks", quick=("--rounds", "30"), needs=MODELS),
    Part("elementwise", quick=("--rounds", "30")),
    Part("kinds", quick=("--rounds", "3")),
    Part("foreign", quick=("--rounds", "3")),
    Part("onnx_speed", quick=("--rounds", "3")),
    Part("cold_start", quick=("--quick",), writes=True),
    Part("large_file", quick=("--gigabytes", "0.1")),
    Part("large_tools", quick=("--megabytes", "4")),
    Part("uniform", quick=("--quick",), needs=UNIFORM, writes=True),
    Part(
        "pareto",
        quick=("--formats", "int:w8a8,int:w4a8", "--records", "100", "--images", "500"),
        needs=UNIFORM,
        plots=True,
    ),
    Part(
        "accuracy",
        tuple(word for option, path in ACCURACY.items() for word in (option, str(path))),
        ("--only", "mnist97", "--widths", "1,3", "--seeds", "1"),
        tuple(ACCURACY.values()),
        writes=True,
        plots=True,
    ),
)


def chosen(only: str | None) -> list[Part]:
    """The parts that were asked for. Raises UsageError for a name that is none."""
    known = {part.name: part for part in PARTS}
    names = list(known) if only is None else only.split(",")
    for name in names:
        if name not in known:
            raise UsageError(f"{name!r} is no part: there is {', '.join(known)}")
    return [known[name] for name in names]


def run_part(part: Part, folder: Path, quick: bool) -> int:
    """Run a part, show and keep what it prints; its exit code."""
    command = part.command(folder, quick)
    begun = time.perf_counter()
    log = (folder / f"{part.name}.log").open("w")
    with log, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process:
        assert process.stdout is not None, "a pipe was asked for"
        lines = []
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip("\n"))
    content = {
        "part": part.name,
        "command": ["python3", *command[1:]],
        "exit_code": process.returncode,
        "seconds": time.perf_counter() - begun,
        "machine": machine_facts(PACKAGES),
        "tables": tables_in(lines),
        "text": lines,
    }
    write_file(folder / f"{part.name}.json", to_json(content))
    return process.returncode


def tables_in(lines: Sequence[str]) -> list[list[list[str]]]:
    """The Markdown tables of a text: each a list of rows of cells, headings first."""
    tables: list[list[list[str]]] = []
    for before, line, after in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        if _is_rule(after) and "|" in line:
            tables.append([])
        if tables and "|" in line and not _is_rule(line) and (_is_row(before) or _is_rule(after)):
            tables[-1].append([cell.strip() for cell in line.strip("|").split("|")])
    return tables


def _is_rule(line: str) -> bool:
    return "---" in line and set(line) <= set("-|: ")


def _is_row(line: str) -> bool:
    return "|" in line


def run(arguments: argparse.Namespace) -> int:
    """Run the parts in turn, or compare two checkouts; how many failed, or are slower. Raises
    LucioleError for wrong arguments.
    """
    parts = chosen(arguments.only)
    if arguments.beside is not None:
        if arguments.only is not None:
            raise UsageError("--only chooses programs, --beside runs none of them: give one")
        return beside.run(arguments.beside, arguments.output, arguments.quick)
    arguments.output.mkdir(parents=True, exist_ok=True)
    facts: dict[str, Any] = machine_facts(PACKAGES)
    write_file(arguments.output / "machine.json", to_json(facts))
    failed = 0
    for part in parts:
        why = part.missing()
        if why:
            say(f"{part.name}: left out: {why}")
            continue
        print(f"\n## {part.name}\n", flush=True)
        code = run_part(part, arguments.output, arguments.quick)
        if code:
            say(
                f"{part.name}: failed with exit code {code}, see {arguments.output / part.name}.log"
            )
            failed += 1
    print(f"\nwritten: {arguments.output}")
    return failed


def parser() -> argparse.ArgumentParser:
    """The program's arguments."""
    made = argparse.ArgumentParser(
        "python3 -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = ", ".join(part.name for part in PARTS)
    made.add_argument("--only", metavar="NAMES", help=f"parts with commas between, of {names}")
    made.add_argument(
        "--beside", metavar="CHECKOUT", help="compare with another checkout, in turns"
    )
    made.add_argument(
        "--quick", action="store_true", help="minutes instead of hours, rough figures"
    )
    made.add_argument(
        "--output", type=Path, default=Path("benchmark-results"), metavar="FOLDER", help="for JSON"
    )
    return made


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program."""
    arguments = parser().parse_args(argv)
    try:
        return min(1, run(arguments))
    except LucioleError as error:
        parser().exit(2, f"benchmarks: error: {error}\n")


if __name__ == "__main__":
    sys.exit(main())
