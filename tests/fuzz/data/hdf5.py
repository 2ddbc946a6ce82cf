"""HDF5 files made by h5py with whatever the format has, then damaged."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np

from luciole.ir import Array
from tests.fuzz.data.common import DataCase, choose, emptied, load, made_apart
from tests.fuzz.mutations import Rng, damaged_bytes

PER_MODEL = 1
"""Cases that start from the same file."""

_IMPOSSIBLE = (AttributeError, KeyError, OSError, TypeError, ValueError, RuntimeError)
"""What h5py raises where strange things do not go together; at times it crashes."""

_TYPES = ("<f4", "<f4", "<f4", "<f4", ">f4", "<f8", "|u1", "|i1", "<i4", "|b1", "<f2", "<c8", "<u8")


def make(seed: int, number: int) -> DataCase:
    """The case of that number."""
    content, what = made_apart(lambda: _file(np.random.default_rng([seed, 7, number])))
    rng = np.random.default_rng([seed, 9, number])
    if content and rng.random() < 0.6:
        return DataCase(number, damaged_bytes(rng, content), f"{what}, damaged bytes")
    return DataCase(number, content, what)


def run(case: DataCase, seed: int) -> str:
    """Load the file; other files that it may name are there."""
    rng = np.random.default_rng([seed, 8, case.number])
    with emptied() as folder:
        (folder / "other.bin").write_bytes(bytes(4096))
        with h5py.File(folder / "other.h5", "w") as other:
            other["value/0/0"] = np.ones((1, 4, 4), np.float32)
        path = folder / choose(rng, ["x.h5", "x.hdf5", "data", "x.npz"])
        path.write_bytes(case.content)
        return load(path, rng, ("labels", "/labels", "value/0/0", "link/x"))


def _file(rng: Rng) -> tuple[bytes, str]:
    """ONE's layout, with strange things at some places."""
    out = io.BytesIO()
    strange = [choose(rng, _STRANGE) for _ in range(int(choose(rng, [0, 0, 0, 1, 1, 1, 2])))]
    libver = choose(rng, ["earliest", "latest", ("v108", "v110")])
    userblock = int(choose(rng, [0] * 9 + [512]))
    raw = rng.random() < 0.3
    kind = int(rng.integers(5))
    with h5py.File(out, "w", libver=libver, userblock_size=userblock) as file:
        value = file.create_group("value", track_order=rng.random() < 0.2)
        if raw:
            value.attrs["rawData"] = choose(rng, ["1", 0, np.zeros(100)])
        for number in range(int(choose(rng, [1, 2, 4, 12]))):
            record = value.create_group(str(number))
            _store(rng, record, "0", raw, kind)
        if rng.random() < 0.3:
            file["labels"] = np.arange(len(value))
        for action in strange:
            with contextlib.suppress(*_IMPOSSIBLE):
                action(rng, file)
    names = ", ".join(getattr(action, "__name__", "") for action in strange)
    return out.getvalue(), names or "as usual"


def _array(rng: Rng, raw: bool) -> Array:
    usual = raw or rng.random() < 0.7
    array = rng.integers(0, 2, (1, 4, 4)).astype("<f4" if usual else choose(rng, _TYPES))
    return np.frombuffer(array.tobytes(), np.uint8) if raw else array


def _store(rng: Rng, group: Any, name: str, raw: bool, kind: int) -> None:
    """A dataset of a record, in one of the usual ways."""
    array = _array(rng, raw)
    options: dict[str, Any] = {}
    if kind == 1:
        options = {"chunks": tuple(max(1, n // 2) for n in array.shape)}
    elif kind == 2:
        options = {"compression": choose(rng, ["gzip", "gzip", "lzf"]), "shuffle": True}
    elif kind == 3:
        options = {"fletcher32": True, "maxshape": (None,) * array.ndim}
    group.create_dataset(name, data=array, **options)


def _again(rng: Rng, file: Any, **options: Any) -> None:
    """Another dataset in the place of one."""
    place = f"value/{int(rng.integers(len(file['value'])))}/0"
    if rng.random() < 0.2:
        place = "labels"
    if place in file:
        del file[place]
    file.create_dataset(place, **options)


def _odd_type(rng: Rng, file: Any) -> None:
    text, inner = h5py.string_dtype(), np.dtype([("a", "<f4"), ("b", "<i8")])
    odd = [text, h5py.string_dtype(length=7), "S5", inner, h5py.vlen_dtype("f4"), h5py.ref_dtype]
    odd += [
        h5py.enum_dtype({"A": 0, "B": 9}),
        "V16",
        np.dtype(("f4", (2, 3))),
        h5py.regionref_dtype,
    ]
    _again(rng, file, shape=(1, 4, 4), dtype=choose(rng, odd))


def _custom_float(rng: Rng, file: Any) -> None:
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_fields(14, 9, 5, 0, 9)
    kind.set_size(int(choose(rng, [2, 4])))
    _raw_type(rng, file, kind)


def _named_type(rng: Rng, file: Any) -> None:
    file["kind"] = np.dtype("f4")
    _again(rng, file, shape=(1, 4, 4), dtype=file["kind"])


def _raw_type(rng: Rng, file: Any, kind: Any) -> None:
    space = h5py.h5s.create_simple((1, 4, 4))
    h5py.h5d.create(file["value"].id, b"odd", kind, space)


def _never_written(rng: Rng, file: Any) -> None:
    shape = choose(rng, [(1, 4, 4), (1, 30_000, 30_000), (2**40,), (2**20, 4, 4)])
    _again(rng, file, shape=shape, dtype="f4", chunks=choose(rng, [None, True]))


def _huge_chunks(rng: Rng, file: Any) -> None:
    chunk = choose(rng, [(1, 4, 2**26), (2**20, 4, 4), (1, 2**15, 2**14)])
    options = {"maxshape": (None, None, None), "compression": choose(rng, [None, "gzip"])}
    _again(rng, file, shape=(1, 4, 4), dtype="f4", chunks=chunk, **options)


def _bomb(rng: Rng, file: Any) -> None:
    """Zeros by the million in one chunk that says it is small."""
    chunk = choose(rng, [(1, 4, 4), (1, 1024, 1024)])  # its size bounds what can be stored of it
    options = {"maxshape": (None,) * 3, "chunks": chunk, "compression": "gzip"}
    _again(rng, file, shape=(1, 4, 4), dtype="f4", **options)
    dataset = file["value/0/0"]
    packed = _packed(int(choose(rng, [1 << 16, 1 << 20, 1 << 26])))
    dataset.id.write_direct_chunk((0, 0, 0), packed)


def _packed(size: int, made: dict[int, bytes] = {}) -> bytes:  # noqa: B006  # what was made is kept
    import zlib

    if size not in made:
        made[size] = zlib.compress(bytes(size), 9)
    return made[size]


def _filters(rng: Rng, file: Any) -> None:
    storage = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    storage.set_chunk((1, 2, 2))
    for _ in range(int(rng.integers(1, 6))):
        kind = int(choose(rng, [1, 1, 2, 3, 4, 5, 6, 32000, 307, 32015, 999]))
        with contextlib.suppress(ValueError):
            storage.set_filter(kind, h5py.h5z.FLAG_OPTIONAL, (int(rng.integers(10)), 4, 2))
    space = h5py.h5s.create_simple((1, 4, 4))
    h5py.h5d.create(file["value/0"].id, b"1", h5py.h5t.IEEE_F32LE, space, storage)


def _links(rng: Rng, file: Any) -> None:
    file["link"] = choose(rng, [
        h5py.ExternalLink("other.h5", "/value/0"), h5py.ExternalLink("/etc/passwd", "/"),
        h5py.SoftLink("/value/0"), h5py.SoftLink("/nowhere"), h5py.SoftLink("/link"),
    ])  # fmt: skip
    place = choose(rng, ["value/0", "value/0/0", "labels", "value"])
    kept = file["link"] if rng.random() < 0.3 else None
    del file[place]
    file[place] = kept or choose(rng, [
        h5py.ExternalLink("other.h5", f"/{place}"), h5py.SoftLink("/value"),
        h5py.ExternalLink("x.h5", "/value"), h5py.SoftLink("/value/1/0"),
    ])  # fmt: skip


def _cycle(rng: Rng, file: Any) -> None:
    place = choose(rng, ["value/0/0", "value/0/1", "value/1", "labels"])
    with contextlib.suppress(KeyError):
        del file[place]
    file[place] = file[choose(rng, ["/", "value", "value/0"])]


def _external(rng: Rng, file: Any) -> None:
    places = [("other.bin", 0, 64), ("/dev/zero", 0, h5py.h5f.UNLIMITED), ("/etc/passwd", 5, 64)]
    _again(rng, file, shape=(1, 4, 4), dtype="f4", external=[choose(rng, places)])


def _virtual(rng: Rng, file: Any) -> None:
    layout = h5py.VirtualLayout((1, 4, 4), "f4")
    layout[:] = h5py.VirtualSource(choose(rng, ["other.h5", ".", "%b"]), "value/0/0", (1, 4, 4))
    del file["value/0/0"]
    file.create_virtual_dataset("value/0/0", layout)


def _names(rng: Rng, file: Any) -> None:
    value = file["value"]
    for name in ("00", "-1", "x\ny", "é", "q" * 3000, "1e3", "²")[: int(rng.integers(1, 8))]:
        value.create_group(name)


def _many(rng: Rng, file: Any) -> None:
    for number in range(100, 400):
        file["value/0"].create_group(str(number))


def _attributes(rng: Rng, file: Any) -> None:
    for number in range(int(rng.integers(1, 40))):
        file["value"].attrs[f"a{number}"] = np.zeros(int(choose(rng, [1, 100, 7000])))


def _empty(rng: Rng, file: Any) -> None:
    _again(rng, file, data=choose(rng, [h5py.Empty("f4"), np.zeros((0, 4, 4), "f4"), 3.0]))


def _resized(rng: Rng, file: Any) -> None:
    _again(rng, file, shape=(1, 4, 4), dtype="f4", maxshape=(None, None, None), chunks=(1, 4, 4))
    file["value/0/0"][...] = 1
    file["value/0/0"].resize(
        choose(rng, [(2**33, 4, 4), (2**20, 2**20, 2**20), (1, 4, 5), (0, 0, 0)])
    )


def _two(rng: Rng, file: Any) -> None:
    for name in file["value"]:
        file[f"value/{name}"]["1"] = np.ones((1, 2), "f4")


_STRANGE: tuple[Callable[[Rng, Any], None], ...] = (
    *(_odd_type, _odd_type, _custom_float, _named_type, _never_written, _huge_chunks, _bomb),
    *(_filters, _links, _links, _cycle, _external, _virtual, _names, _many, _attributes, _empty),
    *(_resized, _two),
)
