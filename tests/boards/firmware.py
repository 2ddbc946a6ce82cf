"""Programs of ``luciole compile`` as firmware, run by QEMU: what they answer, how many instructions
that takes, flash, memory and stack.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from luciole.compiler import Program
from luciole.compiler.text import ctype_of, table
from luciole.ir import Array

HERE = Path(__file__).parent

SECONDS = 120
"""How long a run may take."""


@dataclass(frozen=True)
class Toolchain:
    """What makes and runs programs of one kind: the beginning of the compiler's name, QEMU, the
    source that starts programs, flags, and Debian's packages of all that.
    """

    prefix: str
    qemu: str
    start: str
    flags: str
    packages: str

    @property
    def missing(self) -> str:
        """Say which of the programs is not installed, nothing where all are."""
        needed = (f"{self.prefix}gcc", f"{self.prefix}size", self.qemu)
        lacking = [name for name in needed if shutil.which(name) is None]
        return f"{', '.join(lacking)} missing: Debian's {self.packages}" if lacking else ""


_ALONE = "-nostdlib -fno-tree-loop-distribute-patterns -Wl,--gc-sections"
CORTEX_M = Toolchain(
    "arm-none-eabi-",
    "qemu-system-arm",
    "cortex_m.c",
    f"-mthumb {_ALONE}",
    "gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm",
)
RISCV = Toolchain(
    "riscv64-unknown-elf-",
    "qemu-system-riscv32",
    "riscv.c",
    f"-ffreestanding -fbuiltin -I{HERE / 'freestanding'} -mabi=ilp32 -mno-relax {_ALONE}",
    "gcc-riscv64-unknown-elf and qemu-system-misc",
)
AARCH64 = Toolchain(
    "aarch64-linux-gnu-",
    "qemu-aarch64",
    "linux.c",
    "-static",
    "gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user",
)


@dataclass(frozen=True)
class Board:
    """A machine of QEMU's, none for programs of Linux: flags for the compiler, its memory, and what
    a tick of its clock is. ``target``: what suits it best.
    """

    machine: str
    flags: str
    memory: str
    picoseconds: int = 0
    tools: Toolchain = CORTEX_M
    target: str = "cortex-m0plus"


BOARDS = {
    "microbit": Board("microbit", "-mcpu=cortex-m0", "microbit", 62500),
    "m0plus": Board("mps2-an385", "-mcpu=cortex-m0plus", "mps2", 40000),
    "m3": Board("mps2-an385", "-mcpu=cortex-m3", "mps2", 40000),
    "m4": Board("mps2-an386", "-mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16", "mps2", 40000),
    "m7": Board("mps2-an500", "-mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16", "mps2", 40000),
    "m55": Board("mps3-an547", "-mcpu=cortex-m55 -mfloat-abi=hard", "an547", 31250),
    "riscv32": Board("virt", "-march=rv32imc", "riscv", 0, RISCV),
    "aarch64": Board("", "", "", 0, AARCH64, "aarch64"),
}
"""Boards by name; ``m0plus`` is a Cortex-M3's board that runs code for the smaller one."""


@dataclass(frozen=True)
class Ran:
    """Results in order, all records of one output after the other as bytes; means over records of
    instructions; bytes.
    """

    results: list[bytes]
    instructions: int
    flash: int
    ram: int
    stack: int


def run(
    program: Program,
    records: Sequence[Mapping[str, Array]],
    board: Board,
    folder: Path,
    optimize: str = "-Os",
) -> Ran:
    """Compile a program with records into firmware, and run it. Flash is without the records.

    Raises CalledProcessError where the compiler, or QEMU, fails.
    """
    elf = _built(program, records, board, folder, optimize)
    code, data, bss = _sizes(elf, board)
    given = sum(array.nbytes for record in records for array in record.values())
    run_here = _run_linux if board.tools is AARCH64 else _run_machine
    said = list(_said(run_here(elf, board)))
    results = [bytes.fromhex(value) for key, value in said if key == "result"]
    numbers = {k: int.from_bytes(bytes.fromhex(v), "little") for k, v in said if k != "result"}
    total = _counted(elf) if board.tools is AARCH64 else numbers["instructions"]
    return Ran(results, total // len(records), code + data - given, data + bss, numbers["stack"])


def _built(
    program: Program,
    records: Sequence[Mapping[str, Array]],
    board: Board,
    folder: Path,
    optimize: str,
) -> Path:
    name, tools = program.options.name, board.tools
    for file, text in {**program.files, "main.c": main_text(program, records)}.items():
        (folder / file).write_text(text)
    elf = folder / "firmware.elf"
    flags = [
        "-std=gnu99",
        "-ffp-contract=off",
        optimize,
        *board.flags.split(),
        *tools.flags.split(),
        f"-I{HERE}",
    ]
    flags += ["-ffunction-sections", "-fdata-sections", f"-DTICK_PICOSECONDS={board.picoseconds}"]
    files = [_object(HERE / file, tools, tuple(flags)) for file in ("board.c", tools.start)]
    files += [folder / "main.c", folder / f"{name}.c"]
    link = [f"-L{HERE}", f"-T{HERE / board.memory}.ld"] if board.memory else []
    words = [f"{tools.prefix}gcc", *flags, *map(str, files), *link, "-lgcc", "-o", str(elf)]
    subprocess.run(words, check=True, capture_output=True)
    return elf


@cache
def _object(source: Path, tools: Toolchain, flags: tuple[str, ...]) -> Path:
    """Compile a file that all programs have, once for those of the same flags."""
    made = Path(tempfile.mkdtemp(dir=_folder())) / f"{source.stem}.o"
    words = [f"{tools.prefix}gcc", *flags, "-c", str(source), "-o", str(made)]
    subprocess.run(words, check=True, capture_output=True)
    return made


def _sizes(elf: Path, board: Board) -> tuple[int, int, int]:
    words = [f"{board.tools.prefix}size", str(elf)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    text, data, bss = done.stdout.splitlines()[1].split()[:3]
    return int(text), int(data), int(bss)


def _run_machine(elf: Path, board: Board) -> str:
    """Run firmware on a board; what it prints."""
    words = [board.tools.qemu, "-M", board.machine, "-nographic", "-icount", "shift=0"]
    words += ["-semihosting-config", "enable=on,target=native", "-monitor", "none"]
    words += ["-serial", "none", "-bios", "none", "-kernel", str(elf)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=SECONDS)
    return done.stdout + done.stderr


def _run_linux(elf: Path, board: Board) -> str:
    """Run a program of Linux under a plugin that counts; what it prints."""
    nm = f"{board.tools.prefix}nm"
    symbols = subprocess.run([nm, str(elf)], capture_output=True, text=True, check=True).stdout
    at = next(line.split()[0] for line in symbols.splitlines() if line.endswith(" board_ticks"))
    arguments = f"{_plugin()},at={at},out={elf.with_suffix('.counts')}"
    words = [board.tools.qemu, "-plugin", arguments, str(elf)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=SECONDS)
    return done.stdout


@cache
def _plugin() -> Path:
    """Compile the plugin once for all programs."""
    made = _folder() / "counts.so"
    words = ["cc", "-O2", "-shared", "-fPIC", str(HERE / "counts.c"), "-o", str(made)]
    subprocess.run(words, check=True, capture_output=True)
    return made


@cache
def _folder() -> Path:
    """Make a folder that goes with the process."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    return folder


def _counted(elf: Path) -> int:
    """Add up the instructions between pairs of looks at the clock."""
    counts = [int(line) for line in elf.with_suffix(".counts").read_text().split()]
    return sum(after - before for before, after in zip(counts[::2], counts[1::2], strict=True))


def _said(printed: str) -> Iterator[tuple[str, str]]:
    """Yield names and hexadecimal bytes that a program prints."""
    for line in printed.splitlines():
        key, _, value = line.partition(" ")
        if key in ("result", "instructions", "stack"):
            yield key, value


def main_text(program: Program, records: Sequence[Mapping[str, Array]]) -> str:
    """Write the firmware's ``main``: it runs records and prints what came of them."""
    name = program.options.name
    parts = [f'#include "board.h"\n#include "{name}.h"']
    inputs, outputs, prints = [], [], []
    for k, end in enumerate(program.inputs):
        array = np.stack([record[end.original.name] for record in records])
        parts.append(table(f"given_{k}", ctype_of(end.value.dtype), array)[0])
        inputs.append(f"given_{k} + record * {array[0].size}")
    for k, end in enumerate(program.outputs):
        size = int(np.prod(end.value.dims))
        parts.append(f"static {ctype_of(end.value.dtype)} found_{k}[{size}];")
        outputs.append(f"found_{k}")
        prints.append(f'        board_bytes("result", found_{k}, sizeof found_{k});')
    reset = ""
    if program.is_stateful:
        parts.append(f"static struct {name}_state state;")
        reset = f"    {name}_reset(&state);\n"
    parts.append(
        f"int main(void)\n{{\n    uint32_t total = 0, deepest = 0;\n{reset}"
        f"    for (int record = 0; record < {len(records)}; record++) {{\n"
        "        uint32_t before, used;\n        board_paint();\n"
        "        before = board_ticks();\n"
        f"        {name}_run({', '.join([*program.state_argument, *inputs, *outputs])});\n"
        "        total += board_between(before, board_ticks());\n"
        "        used = board_painted_over();\n"
        "        deepest = used > deepest ? used : deepest;\n" + "\n".join(prints) + "\n    }\n"
        '    board_number("instructions", total);\n'
        '    board_number("stack", deepest);\n    return 0;\n}'
    )
    return "\n\n".join(parts) + "\n"
