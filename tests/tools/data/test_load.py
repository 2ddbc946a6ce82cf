"""Every source gives the same records for the same data; limits, kinds of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.interpreter.samples import file_of
from luciole.ir import Shape, TensorType
from luciole.schema.errors import LucioleError
from luciole.tools.data import DataError, has_batch_axis, load_data, placing
from tests.tools.data.stores import (
    IMAGES,
    RNG,
    Store,
    as_folder_of_npy,
    as_folder_of_raw,
    as_list,
    as_npy,
    as_npz,
    as_raw_hdf5,
    as_typed_hdf5,
    every_source,
    graph_of,
)

TYPES = (np.int64, np.int32, np.uint8, np.int8, np.bool_, np.float16)


@every_source
@pytest.mark.parametrize(
    ("shape", "records_shape"),
    [
        ((None, 28, 28), (12, 28, 28)),
        ((1, 28, 28, 1), (12, 28, 28, 1)),
        ((1, 784), (12, 784)),
    ],
)
def test_every_source_gives_equal_records(
    store: Store, shape: Shape, records_shape: tuple[int, ...], tmp_path: Path
) -> None:
    data = load_data(store(tmp_path, IMAGES), graph_of(shape))
    assert list(data.records) == ["image"]
    assert data.records["image"].dtype == np.float32
    assert data.records["image"].flags.c_contiguous
    np.testing.assert_array_equal(data.records["image"], IMAGES.reshape(records_shape))
    assert data.count == 12
    assert data.labels is None


@every_source
@pytest.mark.parametrize("limit", [1, 12, 100])
def test_limit_gives_the_first_records(store: Store, limit: int, tmp_path: Path) -> None:
    data = load_data(store(tmp_path, IMAGES), graph_of((1, 28, 28)), limit=limit)
    np.testing.assert_array_equal(data.records["image"], IMAGES[:limit])
    assert data.count == min(limit, 12)


@every_source
def test_preprocess_is_applied_to_every_source(store: Store, tmp_path: Path) -> None:
    path = store(tmp_path, IMAGES)
    data = load_data(path, graph_of((1, 28, 28)), preprocess="(x/255 - 0.1307)/0.3081")
    wanted = (IMAGES / 255 - 0.1307) / 0.3081
    assert wanted.dtype == np.float32
    np.testing.assert_array_equal(data.records["image"], wanted)


@pytest.mark.parametrize(
    ("store", "dtype"),
    [
        *((as_raw_hdf5, dtype) for dtype in (np.int64, np.bool_)),
        *((store, dtype) for store in (as_folder_of_raw, as_list) for dtype in TYPES),
    ],
)
def test_raw_bytes_are_read_in_the_input_type(
    store: Store, dtype: type[Any], tmp_path: Path
) -> None:
    stored = RNG.integers(0, 2, (3, 4)).astype(dtype)
    kind = TensorType[np.dtype(dtype).name.upper()]
    data = load_data(store(tmp_path, stored), graph_of((1, 4), kind))
    assert data.records["image"].dtype == dtype
    np.testing.assert_array_equal(data.records["image"], stored)


def test_a_type_is_told_by_content_not_by_name(tmp_path: Path) -> None:
    path = Path(as_npy(tmp_path, IMAGES)).rename(tmp_path / "data.h5")
    data = load_data(str(path), graph_of((1, 28, 28)))
    np.testing.assert_array_equal(data.records["image"], IMAGES)


def test_an_input_without_batch_axis_gets_whole_records(tmp_path: Path) -> None:
    graph = graph_of((4, 28, 28))
    data = load_data(as_npy(tmp_path, IMAGES.reshape(3, 4, 28, 28)), graph)
    assert data.records["image"].shape == (3, 4, 28, 28)
    assert not has_batch_axis(graph.inputs[0])
    assert has_batch_axis(graph_of((1, 3)).inputs[0])
    assert has_batch_axis(graph_of((None,)).inputs[0])
    assert not has_batch_axis(graph_of(()).inputs[0])


def test_summary_says_what_is_fed(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[0, 51], [102, 255]], np.uint8))
    data = load_data(str(tmp_path / "x.npy"), graph_of((1, 2)), preprocess="x/255")
    assert data.summary() == ["image: float32 [2,2], min 0, max 1, mean 0.4"]


def test_summary_counts_true_as_one(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([[True, False], [True, True]]))
    data = load_data(str(tmp_path / "x.npy"), graph_of((1, 2), TensorType.BOOL))
    assert data.summary() == ["image: bool [2,2], min 0, max 1, mean 0.75"]


@pytest.mark.parametrize("limit", [0, -3])
def test_load_data_refuses_a_limit_below_one(limit: int, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"^limit is {limit}, at least 1 record is needed$"):
        load_data(as_npy(tmp_path, IMAGES), graph_of((1, 28, 28)), limit=limit)


def test_load_data_refuses_a_missing_file(tmp_path: Path) -> None:
    path = str(tmp_path / "none.npz")
    with pytest.raises(LucioleError) as refusal:
        load_data(path, graph_of((1, 28, 28)))
    assert str(refusal.value) == f"{path}: no such file or folder"


@pytest.mark.parametrize("name", ["x.npz", "x.npy", "x.h5", "x.txt"])
def test_load_data_refuses_an_empty_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).touch()
    with pytest.raises(DataError, match=rf"{name}: the file is empty$"):
        load_data(str(tmp_path / name), graph_of((1, 28, 28)))


@pytest.mark.parametrize(
    ("name", "kind"), [("x.npz", ".npz"), ("x.npy", ".npy"), ("x.h5", "HDF5"), ("x.hdf5", "HDF5")]
)
def test_load_data_refuses_contents_that_are_not_what_the_name_says(
    name: str, kind: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(b"version https://example.org/spec/v1\n")
    with pytest.raises(DataError, match=rf"{name}: is damaged or no {kind} file, whatever its"):
        load_data(str(tmp_path / name), graph_of((1, 28, 28)))


def test_load_data_refuses_bytes_of_no_known_kind(tmp_path: Path) -> None:
    IMAGES.tofile(tmp_path / "images.dat")
    with pytest.raises(DataError, match=r"dat: is neither HDF5, .npz, .npy nor a list of files$"):
        load_data(str(tmp_path / "images.dat"), graph_of((1, 28, 28)))


@pytest.mark.parametrize("store", [as_typed_hdf5, as_npy, as_folder_of_npy, as_list])
def test_load_data_refuses_an_array_name_for_anything_but_npz(store: Store, tmp_path: Path) -> None:
    path = store(tmp_path, IMAGES)
    with pytest.raises(DataError, match=r"array 'x' is asked for, but only \.npz files have named"):
        load_data(path, graph_of((1, 28, 28)), array="x")


def test_load_data_refuses_two_different_array_names(tmp_path: Path) -> None:
    path = as_npz(tmp_path, IMAGES)
    with pytest.raises(DataError, match=r"names array 'x', but array 'y' is asked for$"):
        load_data(f"{path}:x", graph_of((1, 28, 28)), array="y")


def refusal_of(path: str) -> str:
    try:
        load_data(path, graph_of((1, 28, 28)))
    except DataError as error:
        return str(error)
    return ""


@every_source
@pytest.mark.parametrize("damage", ["truncated", "overwritten"])
def test_damaged_files_are_read_or_refused_in_one_line(
    store: Store, damage: str, tmp_path: Path
) -> None:
    path = Path(store(tmp_path, IMAGES))
    target = sorted(path.iterdir())[3] if path.is_dir() else path
    whole = bytearray(target.read_bytes())
    refused = 0
    places = 3 if store in (as_raw_hdf5, as_typed_hdf5) else 8  # for which processes are started
    for place in range(8, len(whole), max(1, len(whole) // places)):
        part = whole[:place] if damage == "truncated" else whole.copy()
        part[place : place + 8] = b"" if damage == "truncated" else b"\xff" * 8
        target.write_bytes(part)
        message = refusal_of(str(path))
        assert "\n" not in message
        assert message == "" or message.startswith(f"{path}: ")
        refused += bool(message)
    assert refused > 0


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_many_records_lie_in_a_file(
    dtype: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = np.random.default_rng(0).integers(0, 255, (300, 4, 4)).astype(dtype)
    np.save(tmp_path / "x.npy", array)
    graph = graph_of((1, 4, 4))
    small = load_data(str(tmp_path / "x.npy"), graph, preprocess="x/255")
    monkeypatch.setattr(placing, "IN_MEMORY", 1000)
    large = load_data(str(tmp_path / "x.npy"), graph, preprocess="x/255")
    (name,) = small.records
    assert file_of(small.records[name]) is None
    assert file_of(large.records[name]) is not None
    np.testing.assert_array_equal(large.records[name], small.records[name])
    assert large.summary() == small.summary()
