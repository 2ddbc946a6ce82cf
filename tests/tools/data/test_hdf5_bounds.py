"""HDF5 files that name other files, claim what they do not hold, or break the library."""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from luciole.importers import hdf5
from luciole.ir.errors import FormatError
from luciole.tools.data import Bounds, DataError, load_data
from tests.tools.data.stores import graph_of

RECORD = np.arange(16, dtype=np.float32).reshape(1, 4, 4)
Make = Callable[[Any, Path], object]


def external_link(file: Any, folder: Path) -> None:
    del file["value/0/0"]
    file["value/0/0"] = h5py.ExternalLink(str(folder / "other.h5"), "/value/0/0")


def external_group(file: Any, folder: Path) -> None:
    del file["value"]
    file["value"] = h5py.ExternalLink(str(folder / "other.h5"), "/value")


def soft_link(file: Any, folder: Path) -> None:
    file["kept"] = file["value/0/0"]
    del file["value/0/0"]
    file["value/0/0"] = h5py.SoftLink("/kept")


def external_storage(file: Any, folder: Path) -> None:
    del file["value/0/0"]
    where = [(str(folder / "other.h5"), 0, 64)]
    file.create_dataset("value/0/0", (1, 4, 4), "f4", external=where)


def virtual(file: Any, folder: Path) -> None:
    del file["value/0/0"]
    layout = h5py.VirtualLayout((1, 4, 4), "f4")
    layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "value/0/0", (1, 4, 4))
    file.create_virtual_dataset("value/0/0", layout)


def never_written(file: Any, folder: Path) -> None:
    del file["value/0/0"]
    file.create_dataset("value/0/0", (1, 1000, 1000, 1000), "f4")


def never_written_in_chunks(file: Any, folder: Path) -> None:
    del file["value/0/0"]
    file.create_dataset("value/0/0", (1, 1000, 1000, 1000), "f4", chunks=True)


def huge_chunk(file: Any, folder: Path) -> None:
    del file["value/0/0"]
    options: Any = {"chunks": (1, 2**15, 2**14), "maxshape": (None,) * 3}
    made = file.create_dataset("value/0/0", (1, 4, 4), "f4", **options)
    made.id.write_direct_chunk((0, 0, 0), b"short")


def bomb(file: Any, folder: Path) -> None:
    del file["value/0/0"]
    options: Any = {"chunks": (1, 1024, 1024), "maxshape": (None,) * 3, "compression": "gzip"}
    made = file.create_dataset("value/0/0", (1, 4, 4), "f4", **options)
    made.id.write_direct_chunk((0, 0, 0), zlib.compress(bytes(200 << 20), 1))


def store(folder: Path, change: Make | None = None) -> str:
    with h5py.File(folder / "other.h5", "w") as other:
        other["value/0/0"] = RECORD
    with h5py.File(folder / "x.h5", "w") as file:
        file["value/0/0"] = RECORD
        if change is not None:
            change(file, folder)
    return str(folder / "x.h5")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (external_link, "'0' in '/value/0' is a link, which is not followed"),
        (external_group, "'value' in '/' is a link, which is not followed"),
        (soft_link, "'0' in '/value/0' is a link, which is not followed"),
        (external_storage, "'/value/0/0' is stored in other files, which are not read"),
        (virtual, "'/value/0/0' is stored in other files, which are not read"),
        (never_written, "'/value/0/0' has 4000000000 bytes, which were never written"),
        (never_written_in_chunks, "'/value/0/0' has 4000000000 bytes, which were never written"),
        (huge_chunk, "'/value/0/0' has 64 bytes in chunks of 2147483648"),
    ],
)
def test_load_data_refuses_what_a_file_does_not_hold(
    change: Make, message: str, tmp_path: Path
) -> None:
    path = store(tmp_path, change)
    with pytest.raises(DataError) as raised:
        load_data(path, graph_of((1, 4, 4)))
    assert str(raised.value) == f"{path}: {message}"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's memory limits")
def test_load_data_refuses_chunks_that_unpack_to_much_more(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'/value/0/0' is damaged or cannot be read: Can't sync"):
        load_data(store(tmp_path, bomb), graph_of((1, 4, 4)))


@pytest.mark.parametrize("where", ["labels", "kept/labels"])
def test_load_data_refuses_labels_that_are_links(where: str, tmp_path: Path) -> None:
    path = store(tmp_path)
    with h5py.File(path, "a") as file:
        file["kept/numbers"] = [3]
        file[where] = h5py.SoftLink("/kept/numbers")
    graph = graph_of((1, 4, 4))
    with pytest.raises(DataError, match=r"'labels' in '/(kept)?' is a link, which is not followed"):
        load_data(path, graph, labels=where)
    if where == "labels":  # they are found without being named
        with pytest.raises(DataError, match="'labels' in '/' is a link, which is not followed"):
            load_data(path, graph)


def test_load_data_refuses_more_hdf5_than_data_may_take(tmp_path: Path) -> None:
    path, graph = store(tmp_path), graph_of((1, None, 4))
    assert load_data(path, graph, bounds=Bounds(64)).count == 1
    with pytest.raises(DataError, match="1 records of input 'image' take 64 bytes, 63 of 63 are"):
        load_data(path, graph, bounds=Bounds(63))


# ------------------------------------------------------------------- the process that reads them
def replaced(monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """Let the process do something else as soon as it was asked for anything."""
    monkeypatch.setattr(hdf5, "_START", f"import os, signal, sys\nsys.stdin.readline()\n{body}")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "reading it crashes the HDF5 library (SIGSEGV)"),
        ("os.kill(os.getpid(), signal.SIGABRT)", "reading it crashes the HDF5 library (SIGABRT)"),
        ("sys.exit(3)", "reading it ends the HDF5 library's process with 3"),
        ("print('{', end='', flush=True)", "reading it ends the HDF5 library's process with 0"),
    ],
)
def test_load_data_refuses_files_that_end_the_library(
    body: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store(tmp_path)
    replaced(monkeypatch, body)
    with pytest.raises(DataError) as raised:
        load_data(path, graph_of((1, 4, 4)))
    assert str(raised.value) == f"{path}: the file is damaged: {message}"


def test_load_data_refuses_files_that_keep_the_library_busy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store(tmp_path)
    replaced(monkeypatch, "signal.setitimer(signal.ITIMER_PROF, 0.05)\nwhile True: pass")
    with pytest.raises(DataError, match=r"x\.h5: the file is damaged: reading it does not end$"):
        load_data(path, graph_of((1, 4, 4)))


def test_long_computing_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with h5py.File(tmp_path / "x.h5", "w", libver="latest") as file:
        for number in range(50_000):
            file[str(number)] = h5py.SoftLink("/")
    with hdf5.open_hdf5(tmp_path / "x.h5") as file:
        assert len(file.members("/")) == 50_000
    monkeypatch.setattr(hdf5, "SECONDS", 0.005)
    with (
        hdf5.open_hdf5(tmp_path / "x.h5") as file,
        pytest.raises(FormatError, match="group '/' is damaged: reading it does not end"),
    ):
        file.members("/")


def test_nothing_is_left_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def noted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", noted)
    path = store(tmp_path)
    assert load_data(path, graph_of((1, 4, 4))).count == 1
    with pytest.raises(DataError):
        load_data(path, graph_of((1, 5, 5)))
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)


def test_nothing_of_the_current_folder_is_imported(tmp_path: Path) -> None:
    for name in ("json", "runpy", "h5py", "numpy", "contextlib"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w')\nraise SystemExit(9)\n")
    store(tmp_path)
    program = (
        "import sys; sys.path = [p for p in sys.path if p not in ('', '.')]\n"
        "from luciole.importers.hdf5 import open_hdf5\n"
        "with open_hdf5('x.h5') as file: print(file.members('/value'))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.stdout, done.returncode) == ("['0']\n", 0), done.stderr
    assert not (tmp_path / "imported").exists()


def test_texts_and_attributes_are_read(tmp_path: Path) -> None:
    path = store(tmp_path)
    with h5py.File(path, "a") as file:
        file["value"].attrs["text"] = "é"
        file["value"].attrs["bytes"] = np.bytes_("é".encode())
        file["value"].attrs["number"] = 3
    with hdf5.open_hdf5(path) as file:
        assert sorted(file.attributes("/value")) == ["bytes", "number", "text"]
        assert [file.text("/value", name) for name in ("text", "bytes")] == ["é", "é"]
        with pytest.raises(FormatError, match="attribute 'number' is no text"):
            file.text("/value", "number")
        assert file.has("/value/0")
        assert not file.has("/value/1")
        assert not file.has("/other/1")
        with pytest.raises(FormatError, match="no dataset 'x' in '/value', found '0'"):
            file.dataset("/value/x")
