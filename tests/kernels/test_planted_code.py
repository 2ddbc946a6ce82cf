"""Machine code that somebody else could have put into the cache is not executed."""

from __future__ import annotations

import os
import pwd
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from luciole.kernels.jit import trust
from luciole.kernels.jit.cache import kernel_cache
from tests.cache_support import (
    CLEAN,
    ONE,
    PLANTED,
    SOMEBODY,
    SOMEBODY_ELSE,
    Ids,
    adding,
    as_user,
    as_users,
    give,
    needs_root,
    outcome,
    plant,
    public_folder,
    run,
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a home, and no variable that names another cache."""
    for name in ("LUCIOLE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "tmp").mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.chdir(tmp_path)
    kernel_cache.cache_clear()
    yield tmp_path
    kernel_cache.cache_clear()


def in_home(here: Path) -> Path:
    return here / "home" / ".cache" / "luciole"


def use(monkeypatch: pytest.MonkeyPatch, root: Path) -> Path:
    monkeypatch.setenv("LUCIOLE_CACHE", str(root))
    return root


# ------------------------------------------------------------------ what is one's own is executed


def test_what_lies_in_ones_own_cache_is_executed(here: Path) -> None:
    """Otherwise no test here could fail."""
    plant(in_home(here))
    assert outcome() == PLANTED


def test_each_variable_names_a_cache(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = plant(here / "given")
    plant(here / "user" / "luciole")
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "user"))
    assert outcome() == PLANTED
    kernel_cache.cache_clear()
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("LUCIOLE_CACHE", "given")
    assert outcome() == PLANTED
    assert kernel_cache().folder == given.parent


def test_a_sticky_folder_may_stand_above(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "shared").mkdir()
    (here / "shared").chmod(0o1777)
    plant(use(monkeypatch, here / "shared" / "mine"))
    assert outcome() == PLANTED


def test_a_home_may_stand_anywhere(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who can exchange it needs no cache of kernels: what stands above is not looked at."""
    plant(in_home(here))
    here.chmod(0o777)
    assert outcome() == PLANTED
    kernel_cache.cache_clear()
    (here / "link").symlink_to("home")
    monkeypatch.setenv("HOME", str(here / "link"))
    assert outcome() == PLANTED


@needs_root
def test_a_home_may_be_a_sticky_folder(here: Path) -> None:
    """As in containers whose ``HOME`` is ``/tmp``; somebody else's folder there is left alone."""
    file = plant(in_home(here))
    (here / "home").chmod(0o1777)
    assert outcome() == PLANTED
    kernel_cache.cache_clear()
    os.chown(in_home(here).parent, SOMEBODY, SOMEBODY)
    refused(here, f"cache' belongs to user {SOMEBODY}")
    assert list(file.parent.iterdir()) == [file]


def test_the_home_is_as_recorded_where_no_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    record = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    for value, found in (("", record), ("/a/../b/", Path("/b")), ("relative", None)):
        monkeypatch.setenv("HOME", value)
        assert trust.home() == found
    monkeypatch.delenv("HOME")
    assert trust.home() == record


# -------------------------------------------------------------------------- what is not is left be


def refused(here: Path, fault: str) -> None:
    """The kernel is compiled into a folder of this process alone, and the reason is known."""
    assert outcome() == CLEAN
    cache = kernel_cache()
    assert re.search(fault, cache.fault), cache.fault
    assert cache.folder is None or cache.folder.parent == here / "tmp"


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o720, 0o702])
@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_the_cache_refuses_a_folder_that_others_can_write_to(
    here: Path, mode: int, level: int
) -> None:
    """The folder of files itself, or one above it; above it others may keep what is theirs."""
    folder = plant(in_home(here)).parent
    path = [folder, *folder.parents][level]
    path.chmod(mode)
    if mode == 0o1777 and level:
        assert outcome() == PLANTED
    else:
        refused(here, rf"others can write to '{path}' \(mode {mode:o}, needs chmod go-w\)")


@needs_root
@pytest.mark.parametrize("level", range(5))
def test_the_cache_refuses_a_folder_of_somebody_else(here: Path, level: int) -> None:
    """At every level, the home included."""
    folder = plant(in_home(here)).parent
    path = [folder, *folder.parents][level]
    os.chown(path, SOMEBODY, SOMEBODY)
    refused(here, f"'{path}' belongs to user {SOMEBODY}, not to 0")


@needs_root
def test_a_home_of_somebody_else_is_left_untouched(here: Path) -> None:
    """As with sudo: root's files there would be in its owner's way."""
    give(here / "home", SOMEBODY)
    refused(here, f"home' belongs to user {SOMEBODY}, not to 0")
    assert list((here / "home").iterdir()) == []


@needs_root
def test_the_cache_refuses_a_parent_of_somebody_else(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of the home every folder counts, up to the root of the file system."""
    plant(use(monkeypatch, here / "theirs" / "a" / "b" / "cache"))
    os.chown(here / "theirs", SOMEBODY, SOMEBODY)
    refused(here, f"theirs' belongs to user {SOMEBODY}")


@pytest.mark.parametrize("level", range(4))
def test_the_cache_refuses_links_to_folders(here: Path, level: int) -> None:
    folder = plant(in_home(here)).parent
    path = [folder, *folder.parents][level]
    path.rename(here / "elsewhere")
    path.symlink_to(here / "elsewhere")
    refused(here, f"'{path}' is a link, not a folder")


def test_the_cache_refuses_what_is_no_folder(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, here / "file").touch()
    refused(here, "file' is not a folder")


@needs_root
def test_a_shared_temporary_folder_is_never_taken_over(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was: a folder of a known name where everybody may make one, used without a home."""
    (here / "tmp").chmod(0o1777)
    for name in (f"luciole-{os.getuid()}", "luciole"):
        plant(here / "tmp" / name)
        give(here / "tmp" / name, SOMEBODY)
    monkeypatch.setenv("HOME", "/nowhere")
    refused(here, "'/nowhere': No such file or directory")


def test_the_process_s_own_folder_refuses_an_unsafe_place(here: Path) -> None:
    """Others could exchange it: then nothing is written at all."""
    (here / "tmp").chmod(0o777)
    (here / "home").chmod(0o777)
    refused(here, "others can write to")
    assert kernel_cache().folder is None
    assert kernel_cache().contents() == (0, 0)
    assert list((here / "tmp").iterdir()) == []


LEFT_BEHIND = """
import os, signal, sys, tempfile
from luciole.kernels.jit.cache import kernel_cache
tempfile.tempdir = sys.argv[1]
folder = kernel_cache().folder
(folder / "kernel.o").touch()
os.utime(folder, (0, 0))
print(folder, flush=True)
sys.stdin.read()
"""


def test_folders_of_processes_that_were_killed_are_removed_once_they_are_old(here: Path) -> None:
    (here / "home").chmod(0o777)  # it is no place for a cache
    command = [sys.executable, "-c", LEFT_BEHIND, str(here / "tmp")]
    others = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        folders = [Path(other.stdout.readline().strip()) for other in others if other.stdout]
        others[0].kill()
        others[0].wait()
        young = here / "tmp" / f"luciole-{'a' * 16}"
        young.mkdir()
        own = kernel_cache().folder
        assert own is not None
        assert {*(here / "tmp").iterdir()} == {own, young, folders[1]}
        assert (folders[1] / "kernel.o").exists()
    finally:
        for other in others:
            other.kill()
            other.communicate()


@pytest.mark.parametrize("value", ["", "relative"])
def test_a_user_cache_that_is_no_absolute_path_counts_as_unset(
    here: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    """It meant the working folder, whatever lay there."""
    plant(here / "work" / value / "luciole")
    monkeypatch.chdir(here / "work")
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    assert outcome() == CLEAN
    assert kernel_cache().fault == ""
    assert len(list(in_home(here).rglob("*.o"))) == 1


# ------------------------------------------------------------------------------------ file by file


def by_a_symbolic_link(file: Path) -> None:
    target = file.rename(file.parent.parent / "target")
    file.symlink_to(target)


def by_a_hard_link(file: Path) -> None:
    os.link(file, file.parent.parent / "other")


def by_somebody_else(file: Path) -> None:
    os.chown(file, SOMEBODY, SOMEBODY)


def by_the_group(file: Path) -> None:
    file.chmod(0o620)


def by_anybody(file: Path) -> None:
    file.chmod(0o602)


def by_an_empty_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def by_a_full_pipe(file: Path) -> None:
    content = file.read_bytes()
    by_an_empty_pipe(file)
    os.write(os.open(file, os.O_RDWR), content)


def by_another_kernel(file: Path) -> None:
    """A whole file of the cache under a name that is not its own."""
    assert run(adding(5), 4) == 9
    (other,) = [path for path in file.parent.iterdir() if "add-5" in path.name]
    file.write_bytes(other.read_bytes())


WAYS = [
    by_a_symbolic_link,
    by_a_hard_link,
    pytest.param(by_somebody_else, marks=needs_root),
    by_the_group,
    by_anybody,
    by_an_empty_pipe,
    by_a_full_pipe,
    by_another_kernel,
]


@pytest.mark.parametrize("change", WAYS)
def test_a_file_that_may_be_somebody_else_s_is_replaced(
    here: Path, change: Callable[[Path], None]
) -> None:
    file = plant(in_home(here))
    change(file)
    assert outcome() == CLEAN
    assert kernel_cache().fault == ""
    status = file.lstat()
    assert (status.st_uid, status.st_mode, status.st_nlink) == (os.geteuid(), 0o100600, 1)
    assert outcome() == CLEAN


# --------------------------------------------------------------------------------- for other users


@pytest.fixture
def public() -> Iterator[Path]:
    with public_folder() as folder:
        yield folder


@needs_root
def test_a_user_reads_what_the_same_user_wrote(public: Path) -> None:
    for found in as_users({"HOME": public / "home"}, [(ONE, ONE)] * 2):
        assert (found.outcome, found.said) == (CLEAN, "")
        assert found.folder.is_relative_to(in_home(public))
    assert {path.stat().st_uid for path in found.folder.iterdir()} == {SOMEBODY}


@needs_root
def test_a_user_without_a_home_may_name_a_folder(public: Path) -> None:
    found = as_user({"HOME": None, "LUCIOLE_CACHE": public / "home" / "cache"})
    assert (found.outcome, found.said) == (CLEAN, "")
    assert found.folder.is_relative_to(public / "home" / "cache")


@needs_root
def test_a_user_without_a_home_has_a_folder_for_one_process(public: Path) -> None:
    found = as_user({"HOME": None, "TMPDIR": public / "home"})
    assert found.outcome == CLEAN
    assert found.folder.parent == public / "home"
    assert found.said == (
        "luciole: compiled kernels cannot be kept for later runs: there is no home; "
        "LUCIOLE_CACHE may name another folder\n"
    )
    assert list((public / "home").iterdir()) == [], "it goes with the process"


@needs_root
def test_a_user_reads_what_root_keeps_for_all(public: Path) -> None:
    """And what only root may add to is read all the same; what is missing is compiled."""
    file = plant(public / "all")
    for path in (*file.parents[:2], file):
        path.chmod(0o755)
    assert as_user({"LUCIOLE_CACHE": public / "all"}).outcome == PLANTED
    file.unlink()
    found = as_user({"LUCIOLE_CACHE": public / "all"})
    assert found.outcome == CLEAN
    assert f"later runs: '{file.parent}': Permission denied; LUCIOLE_CACHE may" in found.said
    assert len(found.said.splitlines()) == 1


@needs_root
def test_the_cache_refuses_another_user_s_folder(public: Path) -> None:
    plant(public / "theirs")
    give(public / "theirs", SOMEBODY_ELSE)
    found = as_user({"LUCIOLE_CACHE": public / "theirs"})
    assert found.outcome == CLEAN
    assert f"theirs' belongs to user {SOMEBODY_ELSE}, not to {SOMEBODY}; LUCIOLE" in found.said


SEVERAL: list[tuple[Ids, Ids]] = [
    ((SOMEBODY, SOMEBODY, 0), ONE),
    ((0, SOMEBODY, SOMEBODY), ONE),
    (ONE, (SOMEBODY, SOMEBODY_ELSE, SOMEBODY_ELSE)),
]
"""Users and groups of programs that are setuid or setgid."""


@needs_root
def test_the_cache_refuses_a_process_with_rights_of_several_users(public: Path) -> None:
    """Such a program must not run what who started it keeps at home."""
    file = plant(public / "home" / ".cache" / "luciole")
    give(public / "home", SOMEBODY)
    owner, *others = as_users({"HOME": public / "home"}, [(ONE, ONE), *SEVERAL])
    assert owner.outcome == PLANTED
    assert len(others) == len(SEVERAL)
    for found in others:
        assert found.outcome == CLEAN
        assert found.folder == Path()
        assert "this process has the rights of several users or groups (setuid);" in found.said
    assert list(file.parent.iterdir()) == [file]
