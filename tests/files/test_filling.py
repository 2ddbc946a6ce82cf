"""Files of a folder are written all together or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from luciole.files import filling
from luciole.ir import LucioleError
from tests.files.full_support import full_from


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_are_there_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with filling(tmp_path) as fill:
        fill("a", "new")
        fill("b", b"\0")
        assert (tmp_path / "a").read_text() == "old"
        assert not (tmp_path / "b").exists()
    assert contents(tmp_path) == {"a": b"new", "b": b"\0"}


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("old")
    full_from(monkeypatch, "b")

    def write() -> None:
        with filling(tmp_path) as fill:
            fill("a", "new")
            fill("b", "newer")

    with pytest.raises(LucioleError, match=f"cannot write {tmp_path / 'b'}: No space left on dev"):
        write()
    assert contents(tmp_path) == {"a": b"old"}


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        with filling(tmp_path) as fill:
            fill("a", "half")
            os._exit(0)
    os.waitpid(child, 0)
    assert len(list(tmp_path.iterdir())) == 1
    with filling(tmp_path) as fill:
        fill("b", "new")
    assert contents(tmp_path) == {"b": b"new"}


def test_filling_refuses_a_folder_that_is_not_there(tmp_path: Path) -> None:
    where = tmp_path / "none"
    with (
        pytest.raises(LucioleError, match=f"cannot write {where}: No such file"),
        filling(where),
    ):
        raise AssertionError("there is nothing to fill")
