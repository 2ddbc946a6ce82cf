"""Kernels that are missing are compiled together, in processes that are forked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from luciole.kernels import jit
from luciole.kernels.jit import Kernel, Pointer, compiling, together, with_compiled
from luciole.kernels.jit.cache import KernelCache, kernel_cache
from tests.cache_support import adding, run

HERE: list[str] = []
"""Names of the functions that this process compiled."""
BEFORE: set[str] = set()
"""Processes that were there when a test began."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, and two cores; what is compiled in this process is noted in HERE."""
    run(adding(-1), 0)  # the caller is compiled here
    monkeypatch.setenv("LUCIOLE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(together, "cores", lambda: 2)
    kernel_cache.cache_clear()
    HERE.clear()
    BEFORE.update(children())
    compile_ = compiling.Function.compile

    def noted(self: compiling.Function) -> tuple[str, bytes]:
        HERE.append(self.name)
        return compile_(self)

    monkeypatch.setattr(compiling.Function, "compile", noted)
    yield tmp_path / "cache"
    kernel_cache.cache_clear()


def kernels() -> list[Kernel]:
    return [adding(number) for number in range(5)]


def results(some: list[Kernel]) -> list[int]:
    return [run(kernel, 10) for kernel in some]


def children() -> set[str]:
    """The processes that this one started: those of other tests among them."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def test_others_compile_what_is_missing_and_it_is_built_again() -> None:
    some = kernels()
    seen: list[list[int]] = []

    def build() -> list[int]:
        seen.append([k.address for k in some])
        return seen[-1]

    assert with_compiled(build) is seen[1]
    assert seen[0] == [0, 0, 0, 0, 0]
    assert len(seen) == 2
    assert results(some) == [10, 11, 12, 13, 14]
    assert HERE == []
    assert kernel_cache().contents()[0] == 5
    assert children() <= BEFORE


def test_what_was_compiled_before_is_built_once() -> None:
    with_compiled(lambda: [k.address for k in kernels()])
    kernel_cache.cache_clear()
    built: list[list[int]] = []
    with_compiled(lambda: built.append([k.address for k in kernels()]))
    assert len(built) == 1
    assert all(built[0])
    assert HERE == []


def test_parts_are_built_with_the_whole() -> None:
    some = kernels()
    seen: list[int] = []

    def part() -> list[int]:
        seen.append(len(seen))
        return [k.address for k in some[2:]]

    addresses = with_compiled(lambda: [k.address for k in some[:2]] + with_compiled(part))
    assert all(addresses)
    assert seen == [0, 1]


def test_one_core_compiles_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "cores", lambda: 1)
    some = kernels()
    assert all(with_compiled(lambda: [k.address for k in some]))
    assert len(HERE) == 5


def test_nothing_need_be_kept_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("luciole.kernels.jit.objects.kernel_cache", lambda: KernelCache(None))
    some = kernels()
    with_compiled(lambda: [k.address for k in some])
    assert results(some) == [10, 11, 12, 13, 14]
    assert HERE == []


def test_what_processes_do_not_finish_is_compiled_here(monkeypatch: pytest.MonkeyPatch) -> None:
    some, parent = kernels(), os.getpid()
    compile_ = compiling.Function.compile

    def dying(self: compiling.Function) -> tuple[str, bytes]:
        if os.getpid() != parent and self is some[3]:
            os.kill(os.getpid(), 9)
        return compile_(self)

    monkeypatch.setattr(compiling.Function, "compile", dying)
    with_compiled(lambda: [k.address for k in some])
    assert results(some) == [10, 11, 12, 13, 14]
    assert [some[3].name] == HERE
    assert children() <= BEFORE


def test_processes_that_hang_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(together, "PATIENCE", 0.5)
    some, parent = kernels(), os.getpid()
    compile_ = compiling.Function.compile

    def hanging(self: compiling.Function) -> tuple[str, bytes]:
        while os.getpid() != parent:
            os.sched_yield()
        return compile_(self)

    monkeypatch.setattr(compiling.Function, "compile", hanging)
    assert all(with_compiled(lambda: [k.address for k in some]))
    assert len(HERE) == 5
    assert children() <= BEFORE


def test_errors_show_where_the_address_is_asked_for() -> None:
    @jit.kernel
    def allocate(r: Pointer) -> None:
        r[0] = np.zeros(r[0])[0]

    some = [allocate, *kernels()]
    with pytest.raises(RuntimeError, match="which the C library lacks"):
        with_compiled(lambda: [k.address for k in some])
    assert children() <= BEFORE
