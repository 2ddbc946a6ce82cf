"""Programs of ``luciole compile`` as firmware, run by QEMU: what they answer, how many instructions
that takes, flash, memory and stack.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from luciole.compiler import Program
from luciole.compiler.text import ctype_of, table
from luciole.ir import Array

HERE = Path(__file__).parent
GCC, SIZE, QEMU = "arm-none-eabi-gcc", "arm-none-eabi-size", "qemu-system-arm"
PACKAGES = "Debian's gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm"

SECONDS = 120
"""How long a run may take."""


@dataclass(frozen=True)
class Board:
    """A machine of QEMU's: flags for the compiler, its memory, and what a tick of its clock is."""

    machine: str
    flags: str
    memory: str
    picoseconds: int


BOARDS = {
    "microbit": Board("microbit", "-mcpu=cortex-m0", "microbit", 62500),
    "m0plus": Board("mps2-an385", "-mcpu=cortex-m0plus", "mps2", 40000),
    "m3": Board("mps2-an385", "-mcpu=cortex-m3", "mps2", 40000),
    "m4": Board("mps2-an386", "-mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16", "mps2", 40000),
    "m7": Board("mps2-an500", "-mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16", "mps2", 40000),
    "m55": Board("mps3-an547", "-mcpu=cortex-m55 -mfloat-abi=hard", "an547", 31250),
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


def missing() -> str:
    """Say which of the programs is not installed, nothing where all are."""
    lacking = [name for name in (GCC, SIZE, QEMU) if shutil.which(name) is None]
    return f"{', '.join(lacking)} missing: {PACKAGES}" if lacking else ""


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
    name = program.options.name
    sources = {**program.files, "main.c": main_text(program, records)}
    for file, text in sources.items():
        (folder / file).write_text(text)
    elf = folder / "firmware.elf"
    flags = ["-std=gnu99", optimize, "-mthumb", *board.flags.split(), "-ffunction-sections"]
    flags += ["-fdata-sections", "-fno-tree-loop-distribute-patterns", f"-I{HERE}"]
    flags += [f"-DTICK_PICOSECONDS={board.picoseconds}", "-nostdlib", f"-L{HERE}"]
    files = [HERE / "cortex_m.c", folder / "main.c", folder / f"{name}.c"]
    link = [f"-T{HERE / board.memory}.ld", "-Wl,--gc-sections", "-lgcc", "-o", str(elf)]
    subprocess.run([GCC, *flags, *map(str, files), *link], check=True, capture_output=True)
    code, data, bss = _sizes(elf)
    given = sum(array.nbytes for record in records for array in record.values())
    said = list(_said(elf, board))
    results = [bytes.fromhex(value) for key, value in said if key == "result"]
    numbers = {k: int.from_bytes(bytes.fromhex(v), "little") for k, v in said if k != "result"}
    counted = numbers["instructions"] // len(records)
    return Ran(results, counted, code + data - given, data + bss, numbers["stack"])


def _sizes(elf: Path) -> tuple[int, int, int]:
    done = subprocess.run([SIZE, str(elf)], capture_output=True, text=True, check=True)
    text, data, bss = done.stdout.splitlines()[1].split()[:3]
    return int(text), int(data), int(bss)


def _said(elf: Path, board: Board) -> Iterator[tuple[str, str]]:
    """Run firmware; yield names and hexadecimal bytes that it prints."""
    words = [QEMU, "-M", board.machine, "-nographic", "-icount", "shift=0", "-kernel", str(elf)]
    words += ["-semihosting-config", "enable=on,target=native", "-monitor", "none"]
    done = subprocess.run(
        [*words, "-serial", "none"], capture_output=True, text=True, check=True, timeout=SECONDS
    )
    for line in (done.stdout + done.stderr).splitlines():
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
    parts.append(
        "int main(void)\n{\n    uint32_t total = 0, deepest = 0;\n"
        f"    for (int record = 0; record < {len(records)}; record++) {{\n"
        "        uint32_t before, used;\n        board_paint();\n"
        "        before = board_ticks();\n"
        f"        {name}_run({', '.join([*inputs, *outputs])});\n"
        "        total += board_between(before, board_ticks());\n"
        "        used = board_painted_over();\n"
        "        deepest = used > deepest ? used : deepest;\n" + "\n".join(prints) + "\n    }\n"
        '    board_number("instructions", total);\n'
        '    board_number("stack", deepest);\n    return 0;\n}'
    )
    return "\n\n".join(parts) + "\n"
