"""Files are replaced whole; links, devices and pipes stay what they are."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from luciole.files import check_writable, replacing, write_file, write_files
from luciole.ir import LucioleError
from tests.tools.running import left_behind


def test_a_file_is_replaced_and_who_reads_the_old_one_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with path.open() as reader:
        assert write_file(path, "newer") == 5
        assert reader.read() == "old"
    assert path.read_text() == "newer"
    assert left_behind(tmp_path) == {"a.txt"}


def test_nothing_is_seen_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_what_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.writelines(b"new" if n else b"%d" % (1 // n) for n in (1, 0))
    with pytest.raises(LucioleError, match=r"cannot write .*/a\.txt: no space"), replacing(path):
        raise OSError(28, "no space")
    assert path.read_text() == "old"
    assert left_behind(tmp_path) == {"a.txt"}


def test_several_files_are_written_together_or_not_at_all(tmp_path: Path) -> None:
    first, second, link = tmp_path / "a.h", tmp_path / "a.c", tmp_path / "link"
    first.write_text("old")
    link.symlink_to("a.h")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(LucioleError, match=r"cannot write .*/a\.c: File too large"):
            write_files({link: "new", second: b"x" * 2000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert first.read_text() == "old"
    assert left_behind(tmp_path) == {"a.h", "link"}
    write_files({link: "new", second: b"x" * 2000})
    assert (first.read_text(), second.stat().st_size) == ("new", 2000)
    assert link.is_symlink()
    assert left_behind(tmp_path) == {"a.h", "link", "a.c"}


@pytest.mark.parametrize("there", [True, False])
def test_links_are_followed_and_stay(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    target = folder / "a.txt"
    if there:
        target.write_text("old")
    (tmp_path / "second").symlink_to("elsewhere/a.txt")
    (tmp_path / "first").symlink_to(tmp_path / "second")
    with replacing(tmp_path / "first") as file:
        file.write(b"new")
        assert len(left_behind(folder)) == 1 + there, "the draft lies beside what it replaces"
    assert target.read_text() == "new"
    assert (tmp_path / "first").is_symlink()
    assert os.readlink(tmp_path / "second") == "elsewhere/a.txt"
    assert left_behind(folder) == {"a.txt"}


def test_writing_refuses_folders_and_links_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "nowhere").symlink_to(tmp_path / "none" / "a.txt")
    (tmp_path / "folder").symlink_to(tmp_path)
    (tmp_path / "round").symlink_to(tmp_path / "round")
    for name, why in {
        "": "it is a folder",
        "folder": "it is a folder",
        "none/a.txt": f"there is no folder {tmp_path / 'none'}",
        "nowhere": f"there is no folder {tmp_path / 'none'}",
        "round": "Too many levels of symbolic links",
        "x" * 300: "File name too long",
    }.items():
        for call in (check_writable, lambda path: write_file(path, b"")):
            with pytest.raises(LucioleError) as refused:
                call(tmp_path / name)
            assert str(refused.value) == f"cannot write {tmp_path / name}: {why}"
    assert left_behind(tmp_path) == {"nowhere", "folder", "round"}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o200])
def test_permissions_stay(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a.txt"
    path.touch()
    path.chmod(mode)
    with replacing(path):
        (draft,) = left_behind(tmp_path) - {"a.txt"}
        assert stat.S_IMODE((tmp_path / draft).stat().st_mode) == mode
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_new_files_have_the_permissions_that_the_process_gives(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "a.txt", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


def test_the_owner_stays(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root gives files away")
    path = tmp_path / "a.txt"
    path.touch()
    os.chown(path, 12, 34)
    write_file(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12, 34)


def test_long_names_have_drafts(tmp_path: Path) -> None:
    for name in ("x" * 255, "é" * 127, "\N{FIREWORKS}" * 63):
        write_file(tmp_path / name, b"")
        assert (tmp_path / name).exists()


def test_a_device_is_written_to(tmp_path: Path) -> None:
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        device = Path("/dev/null")  # nobody but root could replace it
    check_writable(device)
    assert write_file(device, b"lost") == 4
    assert stat.S_ISCHR(device.stat().st_mode)


def test_a_full_device_is_refused() -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("needs Linux's /dev/full")
    with pytest.raises(LucioleError, match="cannot write /dev/full: No space left on device"):
        write_file("/dev/full", b"x")


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_writable(pipe)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, [memoryview(b"one"), memoryview(bytes(100_000)), memoryview(b"two")])
    reader.join()
    assert found == [b"one" + bytes(100_000) + b"two"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_pipe_gets_nothing_of_what_fails(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ZeroDivisionError), replacing(pipe) as file:
        file.writelines(b"half" if n else b"%d" % (1 // n) for n in (1, 0))
    handle = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(handle, 10) == b""
    os.close(handle)


PRINT_AND_WRITE = (
    "from luciole.files import write_file\nprint('before')\n"
    "write_file('/dev/stdout', b'content\\n')\nprint('behind')\n"
)


@pytest.mark.parametrize("to_file", [False, True])
def test_standard_output_gets_everything_in_order(tmp_path: Path, to_file: bool) -> None:
    if not os.path.exists("/proc/self/fd"):
        pytest.skip("needs Linux's /proc")
    command = [sys.executable, "-c", PRINT_AND_WRITE]
    path = tmp_path / "out.txt"
    path.write_text("already\n")
    if to_file:
        with path.open("a") as out:
            subprocess.run(command, stdout=out, check=True)
        assert path.read_text() == "already\nbefore\ncontent\nbehind\n"
    else:
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        assert done.stdout == b"before\ncontent\nbehind\n"


def test_writing_refuses_descriptors_that_are_not_open() -> None:
    if not os.path.exists("/proc/self/fd"):
        pytest.skip("needs Linux's /proc")
    with pytest.raises(LucioleError, match="cannot write /dev/fd/987: Bad file descriptor"):
        check_writable("/dev/fd/987")


def test_a_full_disk_is_one_refusal(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    path.write_text("old")
    program = (
        "import resource, signal, sys, numpy, luciole\nfrom luciole.tools.data import write_hdf5\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
        "try:\n    write_hdf5(sys.argv[1], [numpy.zeros((500, 100), numpy.float32)])\n"
        "except luciole.LucioleError as error:\n    print(error)\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"cannot write {path}: File too large\n"
    assert done.stderr == ""
    assert path.read_text() == "old"
    assert left_behind(tmp_path) == {"x.h5"}
