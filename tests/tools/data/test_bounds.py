"""What small files and lists that nobody vouches for cannot make a program read or take."""

from __future__ import annotations

import argparse
import os
import socket
import struct
import tracemalloc
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.ir import Graph
from luciole.tools.data import Bounds, DataError, load_data
from luciole.tools.data.bounds import DATA_LIMIT
from tests.tools.data.stores import graph_of

RECORD = np.arange(16, dtype=np.float32).reshape(4, 4)
MOST = 8 << 20
"""Bytes that reading a few records may take."""


def graph() -> Graph:
    return graph_of((1, 4, 4))


def header(shape: str, descr: str = "'<f4'", order: str = "False", version: int = 1) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}".encode()
    width = "<H" if version == 1 else "<I"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack(width, len(text)) + text


def archive(path: Path, contents: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> str:
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in contents.items():
            file.writestr(name, content)
    return str(path)


@contextmanager
def little_memory() -> Iterator[None]:
    """Fail where much more than a few records is held at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()


# ----------------------------------------------------------------------------- .npy and .npz
@pytest.mark.parametrize("order", ["C", "F"])
def test_limit_reads_the_first_records_of_an_array_that_is_much_larger(
    order: Any, tmp_path: Path
) -> None:
    images = np.zeros((1 << 19, 4, 4), np.float32)
    images[:10] = np.arange(160).reshape(10, 4, 4)
    labels = np.arange(1 << 19)
    np.savez_compressed(tmp_path / "d.npz", x=np.asarray(images, order=order), y=labels)
    np.save(tmp_path / "d.npy", np.asarray(images, order=order))
    for name in ("d.npz", "d.npy"):
        with little_memory():
            data = load_data(str(tmp_path / name), graph(), limit=10)
        np.testing.assert_array_equal(data.records["image"], images[:10])
        assert (data.labels is None) == (name == "d.npy")
        if data.labels is not None:
            np.testing.assert_array_equal(data.labels, labels[:10])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("rank", [1, 2, 4])
def test_any_number_of_records_is_read_in_either_order(
    order: Any, rank: int, tmp_path: Path
) -> None:
    shape = (7, *(2, 3, 5)[: rank - 1])
    array = np.random.default_rng(1).random(shape, np.float32)
    np.savez(tmp_path / "d.npz", x=np.asarray(array, order=order))
    for limit in (1, 3, 7, None):
        given = graph_of((1, *shape[1:]) if rank > 1 else (1,))
        found = load_data(str(tmp_path / "d.npz"), given, limit=limit).records["image"]
        np.testing.assert_array_equal(found, array[:limit])


def test_records_beyond_a_block_keep_their_numbers(tmp_path: Path) -> None:
    images = np.zeros((1 << 17, 4, 4), np.float32)
    images[100_000, 2, 3] = np.nan
    np.savez_compressed(tmp_path / "d.npz", x=images)
    with pytest.raises(DataError, match=r"element \[2,3\] of record 100000 of array 'x' is nan"):
        load_data(str(tmp_path / "d.npz"), graph())
    assert load_data(str(tmp_path / "d.npz"), graph(), limit=100_000).count == 100_000


@pytest.mark.parametrize("name", ["d.npz", "d.npy"])
def test_load_data_refuses_more_than_data_may_take_before_it_reads(
    name: str, tmp_path: Path
) -> None:
    content = header("(2000000000, 4, 4)", "'|u1'")
    path = tmp_path / name
    if name == "d.npy":
        path.write_bytes(content)
        os.truncate(path, len(content) + 32_000_000_000)  # a hole
    else:
        np.savez_compressed(path, x=np.zeros((1 << 19, 4, 4), np.uint8))
    records, left = (2_000_000_000, DATA_LIMIT) if name == "d.npy" else (1 << 19, 1_000_000)
    sentence = (
        f"{path}: {records} records of input 'image' take {records * 64:,} bytes, {left:,} of "
        f"{left:,} are left for data: read fewer records, or allow more (--data-limit BYTES)"
    )
    with little_memory(), pytest.raises(DataError) as raised:
        load_data(str(path), graph(), bounds=Bounds(left))
    assert str(raised.value) == sentence


def test_labels_take_room_besides_the_records(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=np.zeros((10, 4, 4), np.float32), y=np.zeros((10, 2)))
    path = str(tmp_path / "d.npz")
    assert load_data(path, graph(), bounds=Bounds(800)).labels is not None
    with pytest.raises(DataError, match="10 labels take 160 bytes, 159 of 799 are left for data"):
        load_data(path, graph(), bounds=Bounds(799))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (header("(3, 4, 4)"), r"is cut off: float32 \[3,4,4\] is 192 bytes, found 0$"),
        (header(f"({2**62}, 4, 4)"), r"is cut off: float32 \[4611686018427387904,4,4\] is"),
        (header(f"({2**63}, 4)"), "is damaged: no array has the shape that its header says$"),
        (header("(3, -4, 4)"), "is damaged: no array has the shape that its header says$"),
        (header("(" + "1, " * 40 + ")"), "is damaged: no array has the shape that its header"),
        (header("(" + "9" * 4000 + ",)"), "is damaged: no array has the shape that its header"),
        (header("(3,", "'<f4'"), "is damaged or cannot be read: "),
        (header("(3,)", "'|O'"), r"holds Python objects \(pickles\), which are programs: not read"),
        (header("(3,)" + " " * 9999), "has a header of 10[0-9]+ bytes, at most 10000 are read$"),
        (b"\x93NUMPY\2\0\0\0\0\x80" + bytes(99), "has a header of 2147483648 bytes, at most 100"),
        (b"\x93NUMPY\1\0", "is damaged or cannot be read: "),
        (header("(3, 4, 4)", "[('a', '<f4'), ('b', '<f4')]") + bytes(400), "takes float32 or"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_load_data_refuses_arrays_that_are_not_as_they_say(
    content: bytes, message: str, packed: bool, tmp_path: Path
) -> None:
    path = tmp_path / "d.npy"
    path.write_bytes(content)
    if packed:
        path = Path(archive(tmp_path / "d.npz", {"x.npy": content}))
    with little_memory(), pytest.raises(DataError, match=message) as raised:
        load_data(str(path), graph())
    assert str(raised.value).startswith(f"{path}: ")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_headers_of_every_version_are_read(version: int, tmp_path: Path) -> None:
    content = header("(1, 4, 4)", version=version) + RECORD.tobytes()
    (tmp_path / "d.npy").write_bytes(content)
    found = load_data(str(tmp_path / "d.npy"), graph()).records["image"]
    np.testing.assert_array_equal(found, RECORD[None])


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_load_data_refuses_methods_that_unpack_without_end(method: int, tmp_path: Path) -> None:
    path = archive(tmp_path / "d.npz", {"x.npy": header("(1, 4, 4)") + RECORD.tobytes()}, method)
    message = f"array 'x' is packed with method {method}, 0 and 8 .deflate. are read$"
    with pytest.raises(DataError, match=message):
        load_data(path, graph())


def test_load_data_refuses_an_archive_with_a_long_table_of_contents(tmp_path: Path) -> None:
    path = archive(tmp_path / "d.npz", {f"{n:0100}": b"" for n in range(10_000)})
    message = r"d\.npz: the archive's table of contents is longer than 1048576 bytes$"
    with little_memory(), pytest.raises(DataError, match=message):
        load_data(path, graph())


def test_load_data_refuses_a_member_that_ends_early(tmp_path: Path) -> None:
    content = header("(1, 4, 4)") + RECORD.tobytes()
    path = Path(archive(tmp_path / "d.npz", {"x.npy": content[:-20]}, zipfile.ZIP_STORED))
    raw = path.read_bytes()
    size = struct.pack("<I", len(content) - 20)
    place = raw.rindex(b"PK\1\2") + 24
    assert raw[place : place + 4] == size
    path.write_bytes(raw[:place] + struct.pack("<I", len(content)) + raw[place + 4 :])
    with pytest.raises(DataError, match=r"array 'x' is (cut off|damaged or cannot be read)"):
        load_data(str(path), graph())


# ------------------------------------------------------------------------- folders and lists
@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Records among things that are none, and some outside."""
    made = tmp_path / "data"
    (made / "sub").mkdir(parents=True)
    for path in (made / "a.raw", made / "sub/b.raw", tmp_path / "secret.raw"):
        path.write_bytes(RECORD.tobytes())
    (made / "out").symlink_to(tmp_path / "secret.raw")
    (made / "up").symlink_to(tmp_path)
    (made / "in").symlink_to("sub/b.raw")
    os.mkfifo(made / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(made / "socket"))
    return made


def listed(folder: Path, *lines: str) -> str:
    path = folder / "list.txt"
    path.write_text("\n".join(lines))
    return str(path)


OUTSIDE = "is not below the folder that names it, and is read with --allow-outside"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("pipe", "{}/pipe: is a named pipe, a file is needed"),
        ("socket", "{}/socket: is a socket, a file is needed"),
        ("sub", "{}/sub: Is a directory"),
        ("/dev/zero", f"/dev/zero: {OUTSIDE}"),
        ("../secret.raw", f"{{}}/../secret.raw: {OUTSIDE}"),
        ("out", f"{{}}/out: {OUTSIDE}"),
        ("up/secret.raw", f"{{}}/up/secret.raw: {OUTSIDE}"),
        ("/nowhere", f"/nowhere: {OUTSIDE}"),
        ("nowhere", "{}/nowhere: no such file or folder"),
        ("\n" * 5000 + "a.raw\0", "line 5002 is no path"),
        ("x" * 5000, "line 2 is no path"),
    ],
)
def test_load_data_refuses_lines_that_name_no_file_below_the_list(
    line: str, message: str, folder: Path
) -> None:
    path = listed(folder, "a.raw", line)
    with pytest.raises(DataError) as raised:
        load_data(path, graph())
    assert str(raised.value) == f"{path}: {message.format(folder)}"


def test_lists_lead_where_the_user_allows_it(folder: Path) -> None:
    path = listed(folder, "../secret.raw", "out", "up/secret.raw", "a.raw", "in", "sub/../a.raw")
    found = load_data(path, graph(), bounds=Bounds(allow_outside=True)).records["image"]
    np.testing.assert_array_equal(found, [RECORD] * 6)
    path = listed(folder, "in", "sub/../a.raw", str(folder / "a.raw"), "./sub//b.raw")
    np.testing.assert_array_equal(load_data(path, graph()).records["image"], [RECORD] * 4)


def test_load_data_refuses_devices_whatever_the_user_allows(folder: Path) -> None:
    path = listed(folder, "/dev/zero")
    with pytest.raises(DataError, match=r"/dev/zero: is a device, a file is needed$"):
        load_data(path, graph(), bounds=Bounds(allow_outside=True))


def test_load_data_refuses_links_out_of_a_folder_of_records(folder: Path) -> None:
    (folder / "up").unlink()
    with pytest.raises(DataError) as raised:
        load_data(str(folder), graph())
    assert str(raised.value) == f"{folder}: {folder}/out: {OUTSIDE}"
    found = load_data(str(folder), graph(), bounds=Bounds(allow_outside=True))
    assert found.count == 3  # a.raw, in and out; what is no file is passed over


@pytest.mark.parametrize(("name", "kind"), [("pipe", "a named pipe"), ("socket", "a socket")])
def test_load_data_refuses_what_is_no_file(name: str, kind: str, folder: Path) -> None:
    np.save(folder / "x.npy", RECORD[None])
    with pytest.raises(DataError, match=f"{name}: is {kind}, a file is needed$"):
        load_data(str(folder / name), graph())
    with pytest.raises(DataError, match=f"{name}: is {kind}, a file is needed$"):
        load_data(str(folder / "x.npy"), graph(), labels=str(folder / name))


def test_load_data_refuses_record_files_before_it_reads_them(tmp_path: Path) -> None:
    for name, start in (("big.raw", b""), ("big.npy", header("(100000, 100000)"))):
        (tmp_path / name).write_bytes(start)
        os.truncate(tmp_path / name, len(start) + 40_000_000_000)  # a hole
        path = listed(tmp_path, name)
        with little_memory(), pytest.raises(DataError, match=r"found .*00000"):
            load_data(path, graph())


def test_a_long_list_is_not_held(tmp_path: Path) -> None:
    (tmp_path / "a.raw").write_bytes(RECORD.tobytes())
    path = listed(tmp_path, *["a.raw", ""] * 200_000)
    with little_memory():
        assert load_data(path, graph(), limit=3).count == 3


@pytest.mark.parametrize("limit", [0, -1])
def test_bounds_refuse_a_limit_below_one(limit: int) -> None:
    arguments = argparse.Namespace(data_limit=limit, allow_outside=False)
    with pytest.raises(DataError, match=f"^data_limit is {limit}, at least 1 byte is needed$"):
        Bounds.of(arguments)


def test_arguments_become_bounds() -> None:
    given = argparse.Namespace(data_limit=None, allow_outside=True)
    assert Bounds.of(given) == Bounds(DATA_LIMIT, True)
    given = argparse.Namespace(data_limit=7, allow_outside=False)
    assert Bounds.of(given) == Bounds(7, False)
