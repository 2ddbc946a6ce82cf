"""Measure a program on the machine that it is for, as that machine's compiler makes it."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from luciole.compiler.host import run_compiler
from luciole.compiler.program import Program
from luciole.compiler.text import item_bytes
from luciole.files import write_file
from luciole.ir import LucioleError

CALL_GRAPH = "-fcallgraph-info=su"
"""GCC's flag, since version 10, to write which function calls which and the stack of each."""

_NODE = re.compile(r'^node: { title: "(.*?)" label: "(.*?)"', re.M)
_EDGE = re.compile(r'^edge: { sourcename: "(.*?)" targetname: "(.*?)"', re.M)
_FRAME = re.compile(r"(\d+) bytes \((static|dynamic,bounded)\)")
_UNBOUNDED = re.compile(r"bytes \(dynamic\)")
_ANY = "__indirect_call"
"""Name in a call graph for a call by an address."""

LARGE = 1 << 22
"""Bytes of tables from which on the tables are declared for the measurement, and not defined: a
compiler takes 40 bytes of memory for each byte of floats, and a microsecond.
"""
_SMALL = 1 << 10
"""Bytes of tables that are always defined."""
_HERE = ' __attribute__((visibility("hidden")))'
_BEGIN, _END = "\nstatic const ", "\n};"
_TABLE = re.compile(r"(\w+) (\w+)\[(\d+)\](.*) = \{")


@dataclass(frozen=True)
class Stack:
    """The most ``bytes`` of stack that a call takes, by the frames of the program's own functions;
    None where nothing bounds them. ``outside``: functions of libraries that are called, whose
    frames, and those of interrupts, come on top.
    """

    bytes: int | None
    outside: Sequence[str]


@dataclass(frozen=True)
class Measured:
    """Sizes of a program that ``compiler``, with its version and flags, makes: bytes of code and of
    constants, None where there is no ``size`` for the machine; and the stack, None where the
    compiler does not report it.
    """

    compiler: str
    object_bytes: int | None
    stack: Stack | None


def measure(program: Program) -> Measured | None:
    """Compile a program with its target's compiler and flags and measure it; None where that
    compiler is not installed.

    Raises LucioleError where it fails.
    """
    machine = program.options.machine
    compiler = shutil.which(machine.compiler)
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{program.options.name}.c"
        is_large = program.table_bytes > LARGE
        text, outside = declared(program.source) if is_large else (program.source, 0)
        write_file(source, text)
        write_file(source.with_suffix(".h"), program.header)
        made = Path(folder) / "program.o"
        words = [compiler, "-std=c99", *machine.flags.split(), "-c", str(source), "-o", str(made)]
        graph = _call_graph(words, Path(folder))
        size = _object_bytes(made, machine.compiler)
        size = None if size is None else size + outside
    entries = [f"{program.options.name}_{end}" for end in ("run", "reset")]
    stack = None if graph is None else stack_of(graph, entries)
    return Measured(f"{_named(machine.compiler)} {machine.flags}", size, stack)


def declared(source: str) -> tuple[str, int]:
    """Declare tables of a program, which are then in another place, and count their bytes."""
    parts, begin, left_out = list[str](), 0, 0
    place = source.find(_BEGIN)
    while place >= 0:
        table = _TABLE.match(source, place + len(_BEGIN))
        size = 0 if table is None else item_bytes(table[1]) * int(table[3])
        if table is not None and size > _SMALL:
            ctype, name, count, aligned = table.groups()
            parts += [
                source[begin:place],
                f"\nextern const {ctype} {name}[{count}]{aligned}{_HERE};",
            ]
            begin = source.index(_END, place) + len(_END)
            left_out += size
        place = source.find(_BEGIN, max(begin, place + 1))
    return "".join([*parts, source[begin:]]), left_out


def _call_graph(words: Sequence[str], folder: Path) -> str | None:
    """Run a compiler; what it writes about calls and frames, None where it cannot."""
    try:
        run_compiler([*words, CALL_GRAPH])
    except LucioleError:  # an unknown flag, or what fails without it, too
        run_compiler(words)
    return next((path.read_text() for path in folder.glob("*.ci")), None)


def _object_bytes(made: Path, compiler: str) -> int | None:
    """Measure code and constants of an object file; None without the compiler's ``size``."""
    size = shutil.which(compiler.removesuffix("gcc").removesuffix("cc") + "size")
    if size is None:
        return None
    done = subprocess.run([size, str(made)], capture_output=True, text=True, check=True)
    return int(done.stdout.splitlines()[1].split()[0])


def _named(compiler: str) -> str:
    """Name a compiler with its version, and its target where its name does not say it."""
    version = re.search(r"\b\d+\.\d+\.\d+\b", _answer(compiler, "--version"))
    machine = _answer(compiler, "-dumpmachine")
    words = [compiler, version[0] if version else "", "" if machine in compiler else f"({machine})"]
    return " ".join(word for word in words if word)


def _answer(compiler: str, question: str) -> str:
    done = subprocess.run([compiler, question], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def stack_of(call_graph: str, entries: Iterable[str]) -> Stack:
    """Find the stack of the deepest calls from some functions, where a program has them, in the
    file that ``CALL_GRAPH`` makes the compiler write.
    """
    graph = _Graph.of(call_graph)
    there = [entry for entry in entries if entry in graph.frames]
    depths = [graph.depth(entry) for entry in there]
    known = [depth for depth in depths if depth is not None]
    most = max(known) if known and len(known) == len(depths) else None
    return Stack(most, sorted(graph.outside()))


@dataclass(frozen=True)
class _Graph:
    """Bytes of the frames of functions, None for unbounded ones, and the functions that each
    calls.
    """

    frames: dict[str, int | None] = field(default_factory=dict)
    calls: Mapping[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> _Graph:
        frames: dict[str, int | None] = {_ANY: None}
        for name, label in _NODE.findall(text):
            if frame := _FRAME.search(label):
                frames[name] = int(frame[1])
            elif _UNBOUNDED.search(label):
                frames[name] = None
        calls: dict[str, set[str]] = {}
        for caller, called in _EDGE.findall(text):
            calls.setdefault(caller, set()).add(called)
        return cls(frames, calls)

    def outside(self) -> set[str]:
        """Return the called functions that have no frame here."""
        return {name for called in self.calls.values() for name in called} - set(self.frames)

    def depth(self, function: str, above: frozenset[str] = frozenset()) -> int | None:
        """Return the bytes of a function's frame and of those below; None where nothing bounds
        them, as where one calls itself.
        """
        own = self.frames[function]
        if own is None or function in above:
            return None
        below = [0]
        for called in self.calls.get(function, set()) & set(self.frames):
            depth = self.depth(called, above | {function})
            if depth is None:
                return None
            below.append(depth)
        return own + max(below)
