"""Lists and folders of record files, among things that are no files and ways out of the folder."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import numpy as np

from tests.fuzz.data.common import DataCase, choose, emptied, load
from tests.fuzz.mutations import Rng, damaged_bytes

PER_MODEL = 1
"""Cases that start from the same file."""

_LINES = (
    *(f"{n}.raw" for n in range(4)),
    *(f"{n}.npy" for n in range(4)),
    "pipe", "socket", "sub", "sub/0.raw", "loop", "dangling", "out", "outdoor/0.raw",
    "indoor/0.raw",
    "/dev/zero", "/dev/null", "/dev/stdin", "/dev/full", "/proc/self/mem", "/proc/self/environ",
    "/etc/hostname", "../secret.raw", "sub/../../secret.raw", "sub/../0.raw", ".", "..", "/", "~",
    "none.raw", "0.raw\0", "0.raw/", "//0.raw", "./0.raw", "", "   ", "\t0.raw ", "0.raw\r", "#",
    "é.raw", "\u202e", "x" * 300, "y/" * 2000, "z" * 5000, "w" * 100_000, "-", "http://x/y",
    "0.raw:x",
)  # fmt: skip
_END = ("\n", "\n", "\n", "\r\n", "\n\n", "\r", "\v")


def make(seed: int, number: int) -> DataCase:
    """The case of that number: the list; its folder is made when it runs."""
    rng = np.random.default_rng([seed, 5, number])
    usual = rng.random() < 0.3
    lines = [
        str(choose(rng, _LINES[:8] if usual or rng.random() < 0.6 else _LINES))
        for _ in range(int(rng.integers(1, 6)))
    ]
    if rng.random() < 0.02:
        lines = [line for line in lines if len(line) < 100] * 400
    text = str(choose(rng, _END)).join(lines)
    content = choose(rng, [b"", b"", b"", b"\xef\xbb\xbf"]) + text.encode()
    what = ", ".join(sorted({line[:20] for line in lines})[:5])
    if len(content) > 64 and rng.random() < 0.2:
        return DataCase(number, damaged_bytes(rng, content), f"{what}, damaged bytes")
    return DataCase(number, content, what)


def run(case: DataCase, seed: int) -> str:
    """Load the list, or now and then the folder that it stands in."""
    rng = np.random.default_rng([seed, 6, case.number])
    with emptied() as place:
        folder = _folder(place, rng)
        path = folder / "list.txt"
        if rng.random() < 0.2:
            return load(folder, rng)
        path.write_bytes(case.content)
        return load(path, rng)


def _folder(place: Path, rng: Rng) -> Path:
    """Records, and what is none."""
    folder = place / "folder"
    (folder / "sub").mkdir(parents=True)
    record = rng.integers(0, 2, (4, 4)).astype(np.float32)
    for number in range(4):
        (folder / f"{number}.raw").write_bytes(_damaged(rng, record.tobytes()))
        with (folder / f"{number}.npy").open("wb") as file:
            np.save(file, record if rng.random() < 0.8 else np.zeros(choose(rng, _SHAPES), "f4"))
        if rng.random() < 0.1:
            saved = (folder / f"{number}.npy").read_bytes()
            (folder / f"{number}.npy").write_bytes(damaged_bytes(rng, saved))
    for path in (
        folder / "sub/0.raw",
        place / "secret.raw",
        folder / "é.raw",
        folder / "new\nline.raw",
    ):
        path.write_bytes(record.tobytes())
    if rng.random() < 0.5:
        _add_strange(folder, place)
    if rng.random() < 0.05:
        with (folder / "9.raw").open("wb") as file:
            file.truncate(1 << 40)  # a hole: it takes no room on the disk
    return folder


def _add_strange(folder: Path, place: Path) -> None:
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(folder / "socket"))
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "out").symlink_to(place / "secret.raw")
    (folder / "outdoor").symlink_to("/")
    (folder / "indoor").symlink_to("sub")
    (folder / "zero").symlink_to("/dev/zero")


_SHAPES = ((3, 4), (4, 4, 1), (0,), (16,), (1, 1, 4, 4), (1 << 20,), ())


def _damaged(rng: Rng, record: bytes) -> bytes:
    if rng.random() < 0.9:
        return record
    return damaged_bytes(rng, record) if rng.random() < 0.5 else record + b"\0"
