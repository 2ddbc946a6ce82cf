"""Kernels to put into caches, ones that compute something else, and processes of other users."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from luciole.kernels import jit
from luciole.kernels.jit import Kernel, Pointer, objects
from luciole.kernels.jit.cache import cache_version

SOMEBODY, SOMEBODY_ELSE = 12345, 54321
"""Users that are not root."""

CLEAN = 4 + 3
PLANTED = 4 + 1000

Ids = tuple[int, int, int]
"""Real, effective and saved."""

ONE: Ids = (SOMEBODY, SOMEBODY, SOMEBODY)
"""Nobody but SOMEBODY."""

needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root makes files of other users"
)


def adding(number: int) -> Kernel:
    @jit.kernel
    def add(r: Pointer) -> None:
        r[0] += number

    return add


def files(folder: Path) -> list[Path]:
    """The files of ``adding``'s kernels somewhere below a folder."""
    return [path for path in folder.rglob("*.o") if "add" in path.name]


def run(kernel: Kernel, start: int) -> int:
    record = np.array([start], np.int64)
    table = np.array([[kernel.address, record.ctypes.data]], np.int64)
    jit.caller(table)()
    return int(record[0])


def outcome() -> int:
    """What the kernel that adds 3 to 4 computes: CLEAN, or PLANTED where planted code ran."""
    return run(adding(3), 4)


def plant(root: Path) -> Path:
    """Put a whole and well-formed file below a cache's root that adds 1000 where 3 is wanted; the
    path of the file.
    """
    return plant_as(objects._cpu(), root)


def plant_as(processor: str, root: Path) -> Path:
    """Plant such a file for a processor, as LLVM is told of it."""
    folder = root / "kernels" / cache_version()
    folder.mkdir(mode=0o700, parents=True)
    file = folder / objects._file_name(adding(3).name, processor)
    file.write_bytes(objects.packed(file.name, *adding(1000).compile()))
    file.chmod(0o600)
    return file


def give(path: Path, user: int) -> None:
    """Let a folder with all that it holds, or a file, belong to a user."""
    for inner in (path, *path.rglob("*")):
        os.chown(inner, user, user, follow_symlinks=False)


@contextmanager
def public_folder() -> Iterator[Path]:
    """A folder that every user may look into, with a home of SOMEBODY's."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "home").mkdir(mode=0o700)
        give(folder / "home", SOMEBODY)
        yield folder


AS_USERS = """
import gc, json, os, sys, tempfile
sys.path.insert(0, sys.argv[1])
from luciole.kernels.jit.ahead import ahead_folders
from luciole.kernels.jit.cache import kernel_cache
from tests.cache_support import outcome
outcome()  # reads whatever modules another user may not

def become(users, groups, environment):
    os.setgroups([])
    os.setresgid(*groups)
    os.setresuid(*users)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    kernel_cache.cache_clear()
    ahead_folders.cache_clear()
    print(json.dumps([outcome(), str(kernel_cache().folder or "")]))

gc.freeze()  # children need not look through all that is there
for line in sys.stdin:
    users, groups, environment = json.loads(line)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if not child:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            become(users, groups, environment)
            raise SystemExit
        status = os.waitpid(child, 0)[1]
        out.seek(0)
        err.seek(0)
        print(json.dumps([status, out.read(), err.read()]), flush=True)
"""


class Ran(NamedTuple):
    """What a process computed, where it kept kernels, and what it printed on stderr."""

    outcome: int
    folder: Path
    said: str


def as_user(environment: Mapping[str, Path | None]) -> Ran:
    """Run ``outcome`` in a process that becomes SOMEBODY."""
    return as_users(environment, [(ONE, ONE)])[0]


def as_users(
    environment: Mapping[str, Path | None], several: Sequence[tuple[Ids, Ids]]
) -> list[Ran]:
    """Run ``outcome`` in processes that become other users, of other groups (real, effective and
    saved), one after the other, once everything is imported. None unsets a variable.
    """
    unset = dict.fromkeys(("LUCIOLE_CACHE", "XDG_CACHE_HOME"))
    texts = {name: value and str(value) for name, value in environment.items()}
    variables = {**os.environ, **unset, **texts}
    named = {name: value for name, value in variables.items() if value is not None}
    return [_ran(*_answer([users, groups, named])) for users, groups in several]


def _answer(question: object) -> tuple[int, str, str]:
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(question) + "\n")
    server.stdin.flush()
    status, printed, said = json.loads(server.stdout.readline())
    return status, printed, said


@cache
def _server() -> subprocess.Popen[str]:
    """Start a process that forks those which become other users: it imports everything once."""
    own = tempfile.TemporaryDirectory()
    process = subprocess.Popen(
        [sys.executable, "-c", AS_USERS, str(Path(__file__).parent.parent)],
        env={**os.environ, "LUCIOLE_CACHE": own.name},
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(own.cleanup)
    atexit.register(process.communicate)  # first: its end
    return process


def _ran(status: int, printed: str, said: str) -> Ran:
    assert status == 0, said
    found, folder = json.loads(printed)
    return Ran(found, Path(folder), said)
