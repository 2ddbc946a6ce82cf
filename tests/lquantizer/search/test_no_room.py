"""Full disks and folders that cannot be written: a search says so in one line, leaves nothing half
written, and the same command goes on when there is room.
"""

from __future__ import annotations

import os
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.tools.search.command import main
from tests.files.full_support import full_from
from tests.networks import network, random

Capture = pytest.CaptureFixture[str]
Files = dict[str, bytes]

GOES_ON = "; what was found is kept, and with more room the same command goes on"


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, records, and a folder that was searched with room."""
    found = tmp_path_factory.mktemp("room")
    luciole.save(network((20, 12, 4)), found / "model.circle")
    np.save(found / "data.npy", random(1, 30, 20))
    assert search(found, found / "whole") == 0
    return found


def search(given: Path, folder: Path, *more: str) -> int:
    few = [
        "--evaluations",
        "8",
        "--options",
        "levels:w2a4,dynamic:int8,float",
        "--files",
        "3",
        *more,
    ]
    files = [str(given / "model.circle"), "--data", str(given / "data.npy")]
    return main([*files, *few, "-o", str(folder)])


def files(folder: Path) -> Files:
    """Read all but the storage, whose times differ."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.startswith("search.db")}


GOING = (" evaluated  front ", " that a search begins with ")
"""Parts of lines that say how a search goes."""


def error(capsys: Capture) -> str:
    """The only line but facts about the data and how it goes."""
    lines = [
        line
        for line in capsys.readouterr().err.splitlines()
        if not line.startswith("data: ") and not any(part in line for part in GOING)
    ]
    assert len(lines) == 1, lines
    return lines[0].removeprefix("luciole: error: ")


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Let no file of this process become larger."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def done(folder: Path) -> int:
    with sqlite3.connect(folder / "search.db") as db:
        ((count,),) = db.execute("select count(*) from evaluation where state='done'").fetchall()
        return int(count)


@pytest.mark.parametrize("size", [100, 120_000])
def test_a_search_that_cannot_store_says_so_and_goes_on(
    given: Path, tmp_path: Path, capsys: Capture, size: int
) -> None:
    with files_up_to(size):
        assert search(given, tmp_path) == 1
    assert error(capsys) == f"{tmp_path / 'search.db'}: disk I/O error{GOES_ON}"
    assert files(tmp_path) == {}
    assert search(given, tmp_path) == 0
    assert files(tmp_path) == files(given / "whole")


@pytest.mark.parametrize("workers", [1, 2])
def test_what_was_evaluated_before_the_disk_was_full_is_kept(
    given: Path,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    workers: int,
) -> None:
    connect = sqlite3.connect

    def small(*arguments: Any, **settings: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(*arguments, **settings)
        db.execute("pragma max_page_count=7")
        return db

    with monkeypatch.context() as context:
        context.setattr(sqlite3, "connect", small)
        assert search(given, tmp_path, "--workers", str(workers)) == 1
    assert error(capsys) == f"{tmp_path / 'search.db'}: database or disk is full{GOES_ON}"
    assert files(tmp_path) == {}
    before = done(tmp_path)
    assert before > 0
    assert search(given, tmp_path) == 0
    with connect(tmp_path / "search.db") as db:
        ((again,),) = db.execute("select sum(attempts - 1) from evaluation").fetchall()
    assert again <= workers, "what was under way alone is done again"
    if workers == 1:
        assert files(tmp_path) == files(given / "whole")


def test_a_front_that_has_no_room_leaves_the_one_before(
    given: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert search(given, tmp_path, "--max-size", "2000") == 0
    before = files(tmp_path)
    capsys.readouterr()
    with monkeypatch.context() as context:
        full_from(context, "front-03-")
        assert search(given, tmp_path) == 1
    told = re.escape(f"cannot write {tmp_path / 'front-03-'}")
    assert re.fullmatch(told + r"\d+B\.circle: No space left on device", error(capsys))
    assert files(tmp_path) == before
    assert search(given, tmp_path) == 0
    assert files(tmp_path).keys() != before.keys()


def test_reports_that_have_no_room_are_none(
    given: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):  # with no reports before, and with some
        with monkeypatch.context() as context:
            full_from(context, "report.html")
            assert search(given, tmp_path) == 1
        assert error(capsys) == f"cannot write {tmp_path / 'report.html'}: No space left on device"
        front = {name: c for name, c in files(given / "whole").items() if name.startswith("front-")}
        assert files(tmp_path) == {n: c for n, c in front.items() if not n.endswith(".html")}
        assert search(given, tmp_path) == 0
        assert files(tmp_path) == files(given / "whole")
        capsys.readouterr()


AS_NOBODY = """
import os, sys
from pathlib import Path
from luciole.lquantizer.search.storage import opened
from luciole.schema.errors import LucioleError
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for folder in sys.argv[1:]:
    try:
        opened(Path(folder), {})
    except LucioleError as error:
        print(error)
"""


def test_a_search_refuses_a_folder_that_cannot_be_written() -> None:
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        new, old = Path(name) / "new", Path(name) / "old"
        for folder in (new, old):
            folder.mkdir()
        (old / "search.db").touch()
        (old / "search.db").chmod(0o666)
        for folder in (new, old):
            folder.chmod(0o555)
        folders = [str(new), str(old), str(new / "below")]
        command = [sys.executable, "-c", AS_NOBODY, *folders]
        told = subprocess.run(command, capture_output=True, text=True, check=True)
        assert told.stderr == ""
        assert told.stdout.splitlines() == [
            f"cannot write {new / 'search.db'}: folder {new} cannot be written",
            f"cannot write {old / 'search.db-wal'}: folder {old} cannot be written",
            f"{new / 'below'}: Permission denied",
        ]
        assert [path.name for path in old.iterdir()] == ["search.db"]
        for folder in (new, old):
            folder.chmod(0o755)
