"""Archives of arrays and arrays alone, whose headers and members say what is not so."""

from __future__ import annotations

import io
import struct
import warnings
import zipfile
import zlib
from functools import cache
from typing import Any

import numpy as np

from luciole.ir import Array
from tests.fuzz.data.common import DataCase, choose, emptied, load
from tests.fuzz.mutations import Rng, damaged_bytes

PER_MODEL = 1
"""Cases that start from the same file."""

_NAMES = (
    "x",
    "a",
    "b",
    "y",
    "x_train",
    "y_train",
    "labels",
    "../../etc/passwd",
    "x\ny",
    "q" * 5000,
)
_TYPES = ("<f4", "<f4", "<f4", ">f4", "<f8", "|u1", "|i1", "<i4", "<i8", "|b1", "<f2", "<c8", "<u2")
_SHAPES = ("(3, 4, 4)", "(3, 16)", "(5,)", "()", "(0, 4, 4)", "(3, -4, 4)", "(1000000000, 4, 4)")
_LIES = (
    *_SHAPES,
    "(3, 1000000000000)",
    f"({2**63}, {2**63})",
    "(" + "1, " * 500 + ")",
    "(" + "9" * 4000 + ",)",
    "(3, True, 4)",
    "(3.0, 4)",
    "[3, 4, 4]",
    "3",
    "'abc'",
    "(" * 90 + ")" * 90,
    "-" * 3000 + "1",
    "(10L, 4, 4)",
    "{}",
)
_DESCRS = (
    *map(repr, _TYPES),
    "'|O'",
    "'<U3'",
    "'|V7'",
    "'|S1000000000'",
    "'<f16'",
    "'<M8[ns]'",
    "[('x', '<f4'), ('y', '|O')]",
    "[('x', '<f4', (1000, 1000, 1000))]",
    "('<f4', (2, 3))",
    "''",
    "'<f4' * 100000000",
    "None",
    "'\\\\q'",
)
_MOST_ZEROS = 64 << 20


def make(seed: int, number: int) -> DataCase:
    """The case of that number."""
    rng = np.random.default_rng([seed, 3, number])
    if rng.random() < 0.25:
        content, what = _npy(rng), "an array"
    else:
        content, what = _archive(rng), "an archive"
    if len(content) > 64 and rng.random() < 0.3:
        return DataCase(number, damaged_bytes(rng, content), f"{what}, damaged bytes")
    return DataCase(number, content, what)


def run(case: DataCase, seed: int) -> str:
    """Load the file under an honest name or another."""
    rng = np.random.default_rng([seed, 4, case.number])
    with emptied() as folder:
        path = folder / choose(rng, ["x.npz", "x.npz", "x.npy", "data", "x.h5"])
        path.write_bytes(case.content)
        return load(path, rng, ("x", "y", "none"), ("x", "a", "none"))


def _array(rng: Rng) -> Array:
    shape = choose(rng, [(3, 4, 4), (3, 4, 4), (3, 4, 4), (3, 16), (3,), (40, 4, 4), (3, 4, 4, 1)])
    array = rng.integers(0, 2, shape).astype("<f4" if rng.random() < 0.5 else choose(rng, _TYPES))
    return np.asfortranarray(array) if rng.random() < 0.2 else array


def _npy(rng: Rng) -> bytes:
    """An array whose header may lie."""
    array = _array(rng)
    descr, order, shape = repr(array.dtype.str), str(array.flags.fnc), repr(array.shape)
    data: bytes = array.tobytes("A")
    for _ in range(int(choose(rng, [0, 0, 0, 1, 2]))):
        lie = int(rng.integers(5))
        descr = choose(rng, _DESCRS) if lie == 0 else descr
        order = choose(rng, ["True", "False", "1", "None", "'C'"]) if lie == 1 else order
        shape = choose(rng, _LIES) if lie == 2 else shape
        data = data[: int(rng.integers(len(data) + 1))] if lie == 3 else data
    if rng.random() < 0.1:
        shape, data = f"({choose(rng, [1 << 20, 1 << 22])}, 4, 4)", b""
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"
    return _framed(rng, header + choose(rng, ["\n", " " * 40 + "\n", "", "\n" * 100])) + data


def _framed(rng: Rng, header: str) -> bytes:
    """Magic, version and length before a header."""
    version = int(choose(rng, [1, 1, 1, 2, 3, 9]))
    length = len(header) if rng.random() < 0.9 else int(choose(rng, [0, 5, 9999, 2**16 - 1, 2**31]))
    width = 2 if version == 1 else 4
    raw = (length % 2 ** (8 * width)).to_bytes(width, "little")
    return b"".join([b"\x93NUMPY", bytes([version, 0]), raw, header.encode("latin1", "replace")])


@cache
def _zeros(size: int) -> bytes:
    """So many zeros, deflated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(bytes(size)) + packer.flush()


def _archive(rng: Rng) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two members of one name
        for _ in range(int(rng.integers(1, 4))):
            name = str(choose(rng, _NAMES[:2] if rng.random() < 0.5 else _NAMES))
            kind = int(choose(rng, [0, 0, 0, 0, 0, *[8] * 12, 12, 14]))
            info = zipfile.ZipInfo(name + choose(rng, [".npy"] * 9 + ["", "/"]))
            info.compress_type = kind
            archive.writestr(info, _npy(rng))
        if rng.random() < 0.02:
            for number in range(40_000):
                archive.writestr(f"{number:05}", b"")
        archive.comment = bytes(int(choose(rng, [0, 0, 0, 3, 65535])))
    content = out.getvalue()
    if rng.random() < 0.1:
        return _bomb(rng)
    return _lying(rng, content) if rng.random() < 0.3 else content


def _bomb(rng: Rng) -> bytes:
    """An archive of one array of many zeros."""
    size = _MOST_ZEROS
    rows, rest = choose(rng, [(size // 64, "4, 4"), (size // 16, "4"), (1, str(size // 4))])
    order = choose(rng, ["False", "False", "True"])
    header = f"{{'descr': '<f4', 'fortran_order': {order}, 'shape': ({rows}, {rest})}}".encode()
    raw = b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(raw) + packer.flush(zlib.Z_FULL_FLUSH) + _zeros(size)
    return _member(b"x.npy", packed, len(raw) + size)


def _member(name: bytes, packed: bytes, size: int) -> bytes:
    """A zip archive of one deflated member, with no checksum: nobody reads it to the end."""
    fields = (20, 0, 8, 0, 33, 0, len(packed), size, len(name), 0)
    local = struct.pack("<4s5H3I2H", b"PK\3\4", *fields) + name
    central = struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, *fields, 0, 0, 0, 0, 0) + name
    begin = len(local) + len(packed)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 1, 1, len(central), begin, 0)
    return local + packed + central + end


def _lying(rng: Rng, content: bytes) -> bytes:
    """Another number in a field of an entry of the table of contents, or of a local header."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        magic, fields = choose(rng, [(b"PK\1\2", _CENTRAL), (b"PK\3\4", _LOCAL), (b"PK\5\6", _END)])
        places = [n for n in range(len(data) - 60) if data[n : n + 4] == magic]
        if places:
            at, width = choose(rng, fields)
            place = choose(rng, places) + at
            numbers: tuple[Any, ...] = (0, 1, 8, 9, 12, 14, 99, 255, len(content), 2**16 - 1)
            number = int(choose(rng, (*numbers, 2**31, 2**32 - 1))) % 2 ** (8 * width)
            data[place : place + width] = number.to_bytes(width, "little")
    return bytes(data)


_CENTRAL = ((6, 2), (8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (32, 2), (42, 4))
_LOCAL = ((4, 2), (6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2))
_END = ((4, 2), (6, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2))
"""Places and widths of fields of a zip archive's records."""
