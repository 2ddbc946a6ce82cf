"""Compiled functions on disk: read where they are whole, made again where not, never stale."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole.kernels
from luciole.kernels import jit
from luciole.kernels.jit import Kernel, Record, compiling, objects

CALLS: list[str] = []


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache; what is compiled is noted in CALLS."""
    monkeypatch.setenv("LUCIOLE_CACHE", str(tmp_path))
    objects.cache_folder.cache_clear()
    CALLS.clear()
    compile_ = compiling.Function._compile

    def noted(self: compiling.Function) -> tuple[str, bytes]:
        CALLS.append(self.function.__qualname__)
        return compile_(self)

    monkeypatch.setattr(compiling.Function, "_compile", noted)
    yield tmp_path
    objects.cache_folder.cache_clear()


def adding(number: int) -> Kernel:
    @jit.kernel
    def add(r: Record) -> None:
        r[0] += number

    return add


def run(kernel: Kernel, start: int) -> int:
    record = np.array([start], np.int64)
    table = np.array([[kernel.address, record.ctypes.data]], np.int64)
    jit.caller(table)()
    return int(record[0])


def files(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*.o") if "add" in p.name]


def test_a_function_is_compiled_once_and_read_from_then_on(folder: Path) -> None:
    assert run(adding(3), 4) == 7
    (file,) = files(folder)
    before = file.stat().st_mtime_ns
    assert run(adding(3), 5) == 8
    assert [name for name in CALLS if "add" in name] == ["adding.<locals>.add"]
    assert file.stat().st_mtime_ns == before


def test_what_a_function_closes_over_tells_it_apart(folder: Path) -> None:
    assert [run(adding(n), 0) for n in (1, 2, 1)] == [1, 2, 1]
    assert len(files(folder)) == 2


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "no head"])
def test_a_damaged_file_is_made_again(folder: Path, damage: str) -> None:
    assert run(adding(3), 4) == 7
    (file,) = files(folder)
    whole = file.read_bytes()
    spoiled = {
        "cut": whole[: len(whole) // 2],
        "changed": whole[:-100] + bytes(100),
        "empty": b"",
        "no head": whole.partition(b"\n")[2],
    }
    file.write_bytes(spoiled[damage])
    assert run(adding(3), 4) == 7
    assert [name for name in CALLS if "add" in name] == ["adding.<locals>.add"] * 2
    assert run(adding(3), 5) == 8
    assert len(CALLS) == 2 + CALLS.count("_run_steps")


def test_a_cache_that_cannot_be_written_gives_way_to_a_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    occupied = tmp_path / "file"
    occupied.touch()
    elsewhere = tmp_path / "temporary"
    elsewhere.mkdir()
    monkeypatch.setenv("LUCIOLE_CACHE", str(occupied))
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    objects.cache_folder.cache_clear()
    assert run(adding(3), 4) == 7
    assert len(files(elsewhere)) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs chown")
def test_a_folder_of_somebody_else_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    given = tmp_path / "kernels" / objects.cache_version()
    given.mkdir(parents=True)
    os.chown(given, 12345, 12345)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    assert run(adding(3), 4) == 7
    assert list(given.iterdir()) == []


def test_every_change_of_a_source_or_a_compiler_s_version_changes_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "kernel.py"
    monkeypatch.setattr(luciole.kernels, "__path__", [str(tmp_path)])
    found = set()
    for content, version in (("a", "1"), ("b", "1"), ("b", "2")):
        source.write_text(content)
        monkeypatch.setattr(metadata, "version", lambda package, v=version: v)
        found.add(objects.cache_version.__wrapped__())
    assert len(found) == 3


def test_a_kernel_refuses_to_close_over_what_has_no_name_in_the_cache() -> None:
    table: Any = np.zeros(3)
    with pytest.raises(TypeError, match=r"a kernel closes over array.*only numbers and helpers"):

        @jit.kernel
        def look(r: Record) -> None:
            r[0] = table[0]


def test_a_kernel_that_calls_what_the_c_library_lacks_is_refused() -> None:
    @jit.kernel
    def allocate(r: Record) -> None:
        r[0] = np.zeros(r[0])[0]

    with pytest.raises(RuntimeError, match=r"allocate.* calls NRT_\w+, which the C library lacks"):
        allocate._compile()
