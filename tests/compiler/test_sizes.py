"""What the target's compiler tells of a program: its size, and how deep the stack is."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from luciole.compiler import Program, Stack, measure, sizes
from luciole.compiler.sizes import stack_of
from luciole.compiler.targets import PORTABLE, TARGETS
from luciole.ir import LucioleError
from luciole.tools.random_models import convolutions, in_int8, lq_dense
from tests.compiler_support import program_of

GRAPH = """graph: { title: "net.c"
node: { title: "net.c:sum" label: "sum\\nnet.c:2:12\\n24 bytes (static)" }
node: { title: "net.c:gather.part.0" label: "gather.part\\nnet.c:9:5\\n64 bytes (dynamic,bounded)" }
edge: { sourcename: "net.c:gather.part.0" targetname: "net.c:sum" label: "net.c:11:5" }
node: { title: "memcpy" label: "__builtin_memcpy\\n<built-in>" shape : ellipse }
edge: { sourcename: "net.c:gather.part.0" targetname: "memcpy" }
node: { title: "net_run" label: "net_run\\nnet.c:20:5\\n40 bytes (static)" }
edge: { sourcename: "net_run" targetname: "net.c:sum" label: "net.c:21:5" }
edge: { sourcename: "net_run" targetname: "net.c:gather.part.0" label: "net.c:22:5" }
}
"""
"""As gcc 12 writes it."""


def compiled_by(compiler: str, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A program whose target has a compiler."""
    monkeypatch.setitem(TARGETS, PORTABLE, replace(TARGETS[PORTABLE], compiler=compiler))
    return program_of(in_int8(convolutions(8, 4)))


def test_the_deepest_calls_are_added_up() -> None:
    assert stack_of(GRAPH, ["net_run", "net_reset"]) == Stack(40 + 64 + 24, ["memcpy"])


@pytest.mark.parametrize(
    "more",
    [
        'edge: { sourcename: "net.c:sum" targetname: "net_run" }',
        'edge: { sourcename: "net.c:sum" targetname: "__indirect_call" }',
        'node: { title: "net.c:sum" label: "sum\\nnet.c:2:12\\n24 bytes (dynamic)" }',
    ],
)
def test_nothing_bounds_the_stack_of(more: str) -> None:
    """Functions that call themselves or an address, or take as much as a number says."""
    assert stack_of(f"{GRAPH}{more}\n", ["net_run"]).bytes is None


def test_only_what_is_called_counts() -> None:
    alone = 'node: { title: "net.c:odd" label: "odd\\nnet.c:2:12\\n999 bytes (static)" }'
    assert stack_of(f"{GRAPH}{alone}\n", ["net_run"]).bytes == 128


def test_a_reset_counts_too() -> None:
    reset = 'node: { title: "net_reset" label: "net_reset\\nnet.c:2:6\\n500 bytes (static)" }'
    assert stack_of(f"{GRAPH}{reset}\n", ["net_run", "net_reset"]).bytes == 500


@pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc")
def test_gcc_tells_the_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than any function's own, and no more than all of them together."""
    program = compiled_by("gcc", monkeypatch)
    found = measure(program)
    assert found is not None
    assert found.stack is not None
    assert re.fullmatch(r"gcc \d+\.\d+\.\d+ \(.+\) -O2", found.compiler)
    assert found.object_bytes is not None
    assert program.table_bytes < found.object_bytes < program.table_bytes + 16384
    for name, text in program.files.items():
        (tmp_path / name).write_text(text)
    words = ["gcc", "-std=c99", "-O2", "-fstack-usage", "-c", "net.c", "-o", "net.o"]
    subprocess.run(words, cwd=tmp_path, check=True)
    lines = (tmp_path / "net.su").read_text().splitlines()
    frames = [int(line.split("\t")[1]) for line in lines]
    assert found.stack.bytes is not None
    assert max(frames) < found.stack.bytes < sum(frames)


@pytest.mark.skipif(not shutil.which("clang"), reason="there is no clang")
def test_clang_tells_no_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    found = measure(compiled_by("clang", monkeypatch))
    assert found is not None
    assert found.stack is None
    assert found.compiler.startswith("clang ")


def test_nothing_is_known_without_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure(compiled_by("a-compiler-that-nobody-has", monkeypatch)) is None


@pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc")
def test_measuring_refuses_what_the_compiler_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = replace(TARGETS[PORTABLE], compiler="gcc", flags="-O2 -no-such-flag")
    monkeypatch.setitem(TARGETS, PORTABLE, odd)
    with pytest.raises(LucioleError, match=r"gcc failed: .*no-such-flag"):
        measure(program_of(lq_dense((8, 4), 1)))


@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "aarch64"])
def test_machines_with_a_compiler_of_their_own(target: str) -> None:
    program = program_of(lq_dense((64, 50, 10), 2), target=target)
    if not shutil.which(program.options.machine.compiler):
        pytest.skip(f"{program.options.machine.compiler} is missing")
    found = measure(program)
    assert found is not None
    assert found.stack is not None
    assert found.stack.bytes is not None
    assert 128 < found.stack.bytes < 1024


@pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc")
def test_large_tables_are_measured_without_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code is nearly the same: a compiler looks into small tables, and aligns them."""
    program = compiled_by("gcc", monkeypatch)
    whole = measure(program)
    monkeypatch.setattr(sizes, "LARGE", 0)
    monkeypatch.setattr(sizes, "_SMALL", 0)
    text, outside = sizes.declared(program.source)
    assert len(text) < len(program.source) - outside
    assert 0 < outside <= program.table_bytes
    apart = measure(program)
    assert whole is not None
    assert apart is not None
    assert apart.stack == whole.stack
    assert whole.object_bytes is not None
    assert apart.object_bytes == pytest.approx(whole.object_bytes, rel=0.03)
