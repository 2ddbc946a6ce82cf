"""Compiled functions on disk: read where they are whole, made again where not, never stale."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.kernels import jit
from luciole.kernels.jit import Pointer, cache, compiling
from luciole.kernels.jit.cache import kernel_cache
from tests.cache_support import CLEAN, adding, files, outcome, run

CALLS: list[str] = []
ROOT = Path(__file__).parent.parent.parent
MINUTE = 60
DAY = 24 * 60 * MINUTE


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache; what is compiled is noted in CALLS."""
    monkeypatch.setenv("LUCIOLE_CACHE", str(tmp_path / "cache"))
    kernel_cache.cache_clear()
    CALLS.clear()
    compile_ = compiling.Function.compile

    def noted(self: compiling.Function) -> tuple[str, bytes]:
        CALLS.append(self.function.__qualname__)
        return compile_(self)

    monkeypatch.setattr(compiling.Function, "compile", noted)
    yield tmp_path / "cache"
    kernel_cache.cache_clear()


def version_folder() -> Path:
    """Where this version's files lie."""
    found = kernel_cache().folder
    assert found is not None
    return found


def aged(path: Path, seconds: float) -> Path:
    """The same path, last changed that long ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))
    return path


def started(program: str, **variables: str | Path) -> subprocess.Popen[str]:
    """A fresh process of Python that finds luciole and the tests."""
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", program]
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=pipe, stderr=pipe, text=True)


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


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "no head", "other symbol"])
def test_a_damaged_file_is_made_again(folder: Path, damage: str) -> None:
    assert run(adding(3), 4) == 7
    (file,) = files(folder)
    whole = file.read_bytes()
    spoiled = {
        "cut": whole[: len(whole) // 2],
        "changed": whole[:-100] + bytes(100),
        "empty": b"",
        "no head": whole.partition(b"\n")[2],
        "other symbol": b"x" + whole,
    }
    file.write_bytes(spoiled[damage])
    assert run(adding(3), 4) == 7
    assert [name for name in CALLS if "add" in name] == ["adding.<locals>.add"] * 2
    assert run(adding(3), 5) == 8
    assert len(CALLS) == 2 + CALLS.count("_run_steps")


def test_folders_and_files_are_the_user_s_alone(folder: Path) -> None:
    before = os.umask(0)
    try:
        assert outcome() == CLEAN
    finally:
        os.umask(before)
    (file,) = files(folder)
    assert [p.stat().st_mode & 0o777 for p in (file, *file.parents[:3])] == [0o600, *[0o700] * 3]


TWO = """
import os
from tests.cache_support import adding, outcome
adding(3).compile()  # what the first one takes, once for both
for _ in range(2):
    if os.fork() == 0:
        os.write(1, f"{outcome()}\\n".encode())  # at once
        os._exit(0)
print([os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(2)])
"""


def test_two_processes_fill_one_cache(folder: Path) -> None:
    out, err = started(TWO, LUCIOLE_CACHE=folder).communicate()
    assert (out, err) == (f"{CLEAN}\n{CLEAN}\n[0, 0]\n", "")
    assert len(files(folder)) == 1
    assert {path.suffix for path in files(folder)[0].parent.iterdir()} == {".o"}


# ------------------------------------------------------------------------------ what is left behind


KILLED = """
import os, signal
from tests.cache_support import adding, outcome
adding(3).compile()  # what the first one takes, once for both
os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)
for _ in range(2):
    if os.fork() == 0:
        outcome()
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_what_killed_writers_left_behind_is_removed(folder: Path) -> None:
    """Once they are surely gone, and only what is named as theirs."""
    out, _ = started(KILLED, LUCIOLE_CACHE=folder).communicate()
    assert out == 2 * f"{-signal.SIGKILL}\n"
    old, young = version_folder().iterdir()
    aged(old, 11 * MINUTE)
    aged(young, 9 * MINUTE)
    other = version_folder() / "other"
    other.touch()
    aged(other, DAY)
    assert outcome() == CLEAN
    assert {path for path in version_folder().iterdir() if path.suffix != ".o"} == {young, other}


def test_versions_that_were_not_used_for_long_are_removed(folder: Path) -> None:
    kernels = version_folder().parent
    for number in range(12):
        path = kernels / f"{number:016x}"
        (path / "more").mkdir(parents=True)
        aged(path, (number + 1) * DAY)
    aged(version_folder(), 100 * DAY)
    (kernels / "something-else").mkdir()
    kept = {f"{number:016x}" for number in range(7)}
    assert outcome() == CLEAN
    assert {p.name for p in kernels.iterdir()} == {version_folder().name, "something-else", *kept}


def test_reading_marks_a_version_as_used(folder: Path) -> None:
    assert outcome() == CLEAN
    for days, marked in ((0.5, False), (2, True)):
        aged(version_folder(), days * DAY)
        kernel_cache.cache_clear()
        assert outcome() == CLEAN
        assert (time.time() - version_folder().stat().st_mtime < MINUTE) == marked


# --------------------------------------------------------------------------- where nothing is kept


def test_a_full_disk_is_said_once_and_no_failure(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert version_folder().exists()
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        assert [run(adding(n), 0) for n in (3, 4, 3)] == [3, 4, 3]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(version_folder().iterdir()) == [], "no halves"
    assert caplog.messages == [
        f"luciole: compiled kernels cannot be kept for later runs: '{version_folder()}': File too "
        "large; LUCIOLE_CACHE may name another folder"
    ]


def test_a_cache_that_cannot_be_made_gives_way_to_a_folder_for_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    folder.touch()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    others = [tmp_path / f"{number:016x}" for number in range(20)]
    for path in others:
        path.mkdir()
    assert run(adding(3), 4) == 7
    assert all(path.exists() for path in others), "only in a cache they are versions"
    (file,) = files(tmp_path)
    assert file.parent == version_folder()
    assert file.parent.stat().st_mode & 0o777 == 0o700
    sizes = [path.stat().st_size for path in version_folder().iterdir()]
    assert kernel_cache().contents() == (len(sizes), sum(sizes))


def test_without_any_folder_kernels_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder.touch()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert run(adding(3), 4) == 7
    assert kernel_cache().folder is None
    assert len(caplog.messages) == 1


FORKING = """
import gc, os, sys
from tests.cache_support import outcome
from luciole.kernels.jit.cache import kernel_cache
outcome()
gc.freeze()  # the child need not look through all that is there
if os.fork() == 0:
    sys.exit(0)
os.wait()
print(kernel_cache().folder, kernel_cache().folder.exists())
"""


def test_the_process_s_folder_goes_with_it_not_with_its_children(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    process = started(FORKING, LUCIOLE_CACHE=tmp_path / "file", TMPDIR=tmp_path)
    out, err = process.communicate()
    folder, existed = out.split()
    assert (Path(folder).parent, existed) == (tmp_path, "True")
    assert not Path(folder).exists()
    assert len(err.splitlines()) == 1


WITHOUT_OWNERS = """
import os, sys, numba, numpy, tempfile
import tests.support
sys.platform = "win32"
for name in ("getuid", "geteuid", "getresuid", "getgid", "getegid", "getresgid", "O_NOFOLLOW"):
    delattr(os, name)
from tests.cache_support import outcome
print(outcome())
"""


def test_a_system_that_shows_no_owners_keeps_nothing(folder: Path) -> None:
    """As Windows: nothing of what is missing there is asked for."""
    process = started(WITHOUT_OWNERS, LUCIOLE_CACHE=folder, TMPDIR=folder.parent)
    out, err = process.communicate()
    assert out == f"{CLEAN}\n", err
    assert "later runs: this system does not show whose a folder is; LUCIOLE_CACHE" in err
    assert not folder.exists()


# ------------------------------------------------------------------------------- what it is made of


def test_every_change_of_a_source_a_compiler_or_python_s_interface_changes_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "kernel.py"
    monkeypatch.setattr(cache, "SOURCES", tmp_path)
    found = set()
    for content, version, abi in (
        ("a", "1", "x"),
        ("b", "1", "x"),
        ("b", "2", "x"),
        ("b", "2", "y"),
    ):
        source.write_text(content)
        monkeypatch.setattr(metadata, "version", lambda package, v=version: v)
        monkeypatch.setattr(cache, "EXTENSION_SUFFIXES", [abi])
        found.add(cache.cache_version.__wrapped__())
    assert len(found) == 4


def test_a_kernel_refuses_to_close_over_what_has_no_name_in_the_cache() -> None:
    table: Any = np.zeros(3)
    with pytest.raises(TypeError, match=r"a kernel closes over array.*only numbers and helpers"):

        @jit.kernel
        def look(r: Pointer) -> None:
            r[0] = table[0]


def test_a_kernel_that_calls_what_the_c_library_lacks_is_refused() -> None:
    @jit.kernel
    def allocate(r: Pointer) -> None:
        r[0] = np.zeros(r[0])[0]

    with pytest.raises(RuntimeError, match=r"allocate.* calls NRT_\w+, which the C library lacks"):
        allocate.compile()
