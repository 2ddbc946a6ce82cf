"""Compiled kernels of layers of bytes as a program for 64-bit Arm, made on any machine.

Written are object files of kernels, and ``program.s``: every array that a step points into, where
the addresses in it are names, so that they are right wherever the program lies; behind them the
steps and what is to be printed, for ``arm_main.c``. ``arm_target.pretend`` must have been called
before this, or anything of luciole's, is imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import numpy as np

from luciole.ir import Array
from luciole.kernels.core.contract import NativeStep
from luciole.kernels.jit import compiling
from tests.kernels.arm_layers import layers
from tests.native_support import built
from tests.support import one_op

FIRST_ADDRESS = 1 << 56
"""Where kernels are said to be, one after the other: nothing of a process lies there."""


@dataclass
class Kernels:
    """Kernels that were asked for, by what they are said to be at."""

    names: dict[int, str] = field(default_factory=dict)
    codes: list[bytes] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)

    def address_of(self, kernel: compiling.Kernel) -> int:
        """Compile a kernel, but load it nowhere."""
        if kernel.name not in self.known:
            symbol, code = kernel.compile()
            self.known[kernel.name] = FIRST_ADDRESS + len(self.known)
            self.names[self.known[kernel.name]] = symbol
            self.codes.append(code)
        return self.known[kernel.name]


def steps() -> Iterator[tuple[NativeStep, Sequence[Array], Array]]:
    """Yield each layer's step, the arrays that it was given, and its result."""
    for made in layers():
        op = one_op(made.cls, made.operands, (1, 2), **made.options).graph.ops[0]
        step, context = built(op, made.operands)
        assert step is not None, f"{op} declines"
        given = [a for a in (*context.operands, *context.results) if a is not None]
        yield step, [step.record, *step.owns, *given], context.results[0]


def text(kernels: Kernels) -> str:
    """Write all steps in the assembler's language."""
    lines, table = [".data"], []
    for step, arrays, result in steps():
        begin = len(lines)
        names = {f"array_{begin}_{k}": array for k, array in enumerate(arrays)}
        for name, array in names.items():
            words = ", ".join(_words(array, names, kernels.names))
            lines += [".balign 64", f"{name}: .quad {words}"]
        record = next(name for name, array in names.items() if array is step.record)
        found = next(name for name, array in names.items() if array is result)
        kernel = f'"{kernels.names[step.address]}"'
        table.append(f".quad {kernel}, {record}, {found}, {result.nbytes}")
    return "\n".join([*lines, ".globl steps", "steps:", *table, ".quad 0", ""])


def _words(array: Array, names: dict[str, Array], kernels: dict[int, str]) -> Iterator[str]:
    """Yield an array's bytes in words; addresses of kernels and in other arrays become names."""
    padded = array.tobytes() + bytes(-array.nbytes % 8 or 8)
    for word in np.frombuffer(padded, np.int64).tolist():
        if word in kernels:
            yield f'"{kernels[word]}"'
            continue
        yield next((t for n, a in names.items() if (t := _inside(word, n, a))), str(word))


def _inside(word: int, name: str, array: Array) -> str:
    """Name an address within an array; nothing for another one."""
    offset = word - int(array.ctypes.data)
    return f"{name} + {offset}" if 0 <= offset < array.nbytes else ""


def write(folder: Path) -> None:
    """Compile kernels and write everything into a folder."""
    kernels = Kernels()
    with patch.object(compiling.Kernel, "address", property(kernels.address_of)):
        (folder / "program.s").write_text(text(kernels))
    for number, code in enumerate(kernels.codes):
        (folder / f"kernel_{number}.o").write_bytes(code)
