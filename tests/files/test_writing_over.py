"""What cannot be replaced is written over, where that is allowed and nobody needs it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import luciole
from tests.networks import network
from tests.tools.running import left_behind

NOBODY = 65534


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter, as those of pytest are not."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


PRELUDE = f"""
import os, resource, sys
import luciole
from luciole.exporters import save, to_bytes
from luciole.files import check_writable, replacing, write_file
from luciole.importers import load
to_bytes(load(luciole.__path__[0] + "/demo_data/digits.circle"))  # imports what nobody may read
if os.getuid() == 0:
    os.setgroups([])
    os.setgid({NOBODY})
    os.setuid({NOBODY})
path = sys.argv[1]
def refused(call, *arguments):
    try:
        call(*arguments)
    except luciole.LucioleError as error:
        print(error)
    else:
        print("not refused")
"""


def as_nobody(statements: str, path: Path) -> str:
    """What a process prints whose user may not do what root may."""
    command = [sys.executable, "-c", PRELUDE + statements, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def locked(folder: Path, content: str = "old", name: str = "a.txt") -> Path:
    """A file that everybody may write, in a folder that takes no other one."""
    path = folder / "locked" / name
    path.parent.mkdir()
    path.write_text(content)
    path.chmod(0o666)
    path.parent.chmod(0o555)
    return path


def test_a_file_that_cannot_be_replaced_is_written_over(open_folder: Path) -> None:
    path = locked(open_folder, "old and long")
    before = path.stat()
    for content in ("new", "new and much longer", ""):
        as_nobody(f"check_writable(path); write_file(path, {content!r})", path)
        assert path.read_text() == content
    assert (path.stat().st_ino, path.stat().st_mode) == (before.st_ino, before.st_mode)
    assert left_behind(path.parent) == {"a.txt"}


def test_a_file_of_another_user_in_a_shared_folder_is_written_over(open_folder: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root gives files away")
    folder = open_folder / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    path = folder / "a.txt"
    path.write_text("old")
    path.chmod(0o666)
    as_nobody("write_file(path, 'new')", path)
    assert (path.read_text(), path.stat().st_uid) == ("new", 0)
    assert left_behind(folder) == {"a.txt"}


def test_what_is_written_over_stays_where_there_is_no_room(open_folder: Path) -> None:
    path = locked(open_folder)
    statements = (
        "def write():\n"
        "    with replacing(path) as file:\n"
        "        file.write(b'x' * 5000)\n        file.flush()\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "refused(write)"
    )
    said = as_nobody(statements, path)
    assert said == f"cannot write {path}: File too large"
    assert path.read_text() == "old"


def test_writing_refuses_what_may_not_be_written(open_folder: Path) -> None:
    path = locked(open_folder)
    path.chmod(0o444)
    said = as_nobody("refused(check_writable, path); refused(write_file, path, b'new')", path)
    assert said == "\n".join([f"cannot write {path}: folder {path.parent} cannot be written"] * 2)
    said = as_nobody("refused(write_file, path + 'x', b'new')", path)
    assert said == f"cannot write {path}x: folder {path.parent} cannot be written"


def test_writing_refuses_devices_that_may_not_be_written(open_folder: Path) -> None:
    pipe = open_folder / "pipe"
    os.mkfifo(pipe, 0o444)
    said = as_nobody("refused(check_writable, path)", pipe)
    if os.getuid() == 0:
        assert said == f"cannot write {pipe}: it is no file, and cannot be written to"


MAPPED = "import luciole.files.mapping\nluciole.files.mapping.MOST_COPIED = 0\n"


def test_writing_refuses_to_write_over_a_large_model_in_use(open_folder: Path) -> None:
    luciole.save(network(), open_folder / "model.circle")
    content = (open_folder / "model.circle").read_bytes()
    path = locked(open_folder, "", "a.circle")
    path.write_bytes(content)
    said = as_nobody(f"{MAPPED}model = load(path)\nrefused(save, model, path)", path)
    assert said == (
        f"cannot write {path}: it cannot be replaced, and a model loaded from it is in use"
    )
    assert path.read_bytes() == content
    as_nobody(f"{MAPPED}model = load(path)\ndel model\nwrite_file(path, 'new')", path)
    assert path.read_text() == "new"


def test_a_model_of_which_there_is_a_copy_is_written_over(open_folder: Path) -> None:
    luciole.save(network(), open_folder / "model.circle")
    content = (open_folder / "model.circle").read_bytes()
    path = locked(open_folder, "", "a.circle")
    path.write_bytes(content)
    said = as_nobody("model = load(path)\nsave(model, path)\nprint(to_bytes(model).hex())", path)
    assert path.read_bytes() == bytes.fromhex(said) == content
