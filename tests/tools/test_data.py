"""Every source gives the same records for the same data; limits, labels, kinds of files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from luciole.ir import Array, Graph, Shape, TensorType
from luciole.schema.errors import LucioleError
from luciole.tools.data import DataError, has_batch_axis, load_data

RNG = np.random.default_rng(7)
IMAGES = RNG.random((12, 28, 28), np.float32)
LABELS = np.arange(12) % 10


def graph_of(shape: Shape, dtype: TensorType = TensorType.FLOAT32) -> Graph:
    graph = Graph("main")
    graph.add_input("image", shape, dtype)
    return graph


def as_typed_hdf5(folder: Path, images: Array) -> str:
    with h5py.File(folder / "typed.h5", "w") as file:
        for i, image in enumerate(images):
            file[f"value/{i}/0"] = image[None]
    return str(folder / "typed.h5")


def as_raw_hdf5(folder: Path, images: Array) -> str:
    with h5py.File(folder / "raw.h5", "w") as file:
        file.create_group("value").attrs["rawData"] = "1"
        for i, image in enumerate(images):
            file[f"value/{i}/0"] = np.frombuffer(image.tobytes(), np.uint8)
    return str(folder / "raw.h5")


def as_npz(folder: Path, images: Array) -> str:
    np.savez(folder / "data.npz", x=images)
    return str(folder / "data.npz")


def as_npy(folder: Path, images: Array) -> str:
    np.save(folder / "data.npy", images)
    return str(folder / "data.npy")


def as_folder_of_npy(folder: Path, images: Array) -> str:
    (folder / "npy").mkdir()
    for i, image in enumerate(images):
        np.save(folder / "npy" / f"{i}.npy", image)
    return str(folder / "npy")


def as_folder_of_raw(folder: Path, images: Array) -> str:
    (folder / "raw").mkdir()
    for i, image in enumerate(images):
        image.tofile(folder / "raw" / f"{i}.bin")
    return str(folder / "raw")


def as_list(folder: Path, images: Array) -> str:
    as_folder_of_raw(folder, images)
    lines = [f"raw/{i}.bin" for i in range(len(images))]
    (folder / "files.txt").write_text("\n".join(lines) + "\n")
    return str(folder / "files.txt")


SOURCES = [
    as_typed_hdf5,
    as_raw_hdf5,
    as_npz,
    as_npy,
    as_folder_of_npy,
    as_folder_of_raw,
    as_list,
]
every_source = pytest.mark.parametrize("store", SOURCES)
Store = Callable[[Path, Array], str]


@every_source
@pytest.mark.parametrize(
    ("shape", "records_shape"),
    [
        ((1, 28, 28), (12, 28, 28)),
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
@pytest.mark.parametrize("limit", [1, 5, 12, 100])
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


@pytest.mark.parametrize("store", [as_raw_hdf5, as_folder_of_raw, as_list])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.int8, np.bool_, np.float16])
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
    IMAGES.tofile(tmp_path / "images.raw")
    with pytest.raises(DataError, match=r"raw: is neither HDF5, .npz, .npy nor a list of files$"):
        load_data(str(tmp_path / "images.raw"), graph_of((1, 28, 28)))


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
    for place in range(8, len(whole), max(1, len(whole) // 60)):
        part = whole[:place] if damage == "truncated" else whole.copy()
        part[place : place + 8] = b"" if damage == "truncated" else b"\xff" * 8
        target.write_bytes(part)
        message = refusal_of(str(path))
        assert "\n" not in message
        assert message == "" or message.startswith(f"{path}: ")
        refused += bool(message)
    assert refused > 0


# labels


def store_labels(folder: Path, kind: str, labels: Array) -> str:
    if kind == "npy":
        np.save(folder / "l.npy", labels)
        return str(folder / "l.npy")
    if kind.startswith("npz"):
        np.savez(folder / "l.npz", digits=labels)
        return str(folder / "l.npz") + kind[3:]
    with h5py.File(folder / "l.h5", "w") as file:
        file["labels"] = labels
        file["deep/er"] = labels
    return str(folder / "l.h5") + kind[2:]


KINDS = ["npy", "npz", "npz:digits", "h5", "h5:/labels", "h5:labels", "h5:/deep/er"]


@every_source
@pytest.mark.parametrize("kind", KINDS)
def test_labels_come_from_a_file_of_their_own(store: Store, kind: str, tmp_path: Path) -> None:
    path, labels = store(tmp_path, IMAGES), store_labels(tmp_path, kind, LABELS)
    data = load_data(path, graph_of((1, 28, 28)), labels=labels, limit=5)
    assert data.labels is not None
    np.testing.assert_array_equal(data.labels, LABELS[:5])


def test_labels_come_from_the_hdf5_file_itself(tmp_path: Path) -> None:
    path = as_typed_hdf5(tmp_path, IMAGES)
    with h5py.File(path, "a") as file:
        file["labels"] = LABELS
        file["coarse"] = LABELS // 5
    graph = graph_of((1, 28, 28))
    np.testing.assert_array_equal(load_data(path, graph).labels, LABELS)
    coarse = load_data(path, graph, labels="/coarse").labels
    np.testing.assert_array_equal(coarse, LABELS // 5)


def test_named_labels_win_over_those_found(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=IMAGES, y=LABELS, y_coarse=LABELS // 5)
    path, graph = str(tmp_path / "d.npz"), graph_of((1, 28, 28))
    np.testing.assert_array_equal(load_data(path, graph).labels, LABELS)
    coarse = load_data(path, graph, labels="y_coarse").labels
    np.testing.assert_array_equal(coarse, LABELS // 5)


@every_source
@pytest.mark.parametrize("count", [11, 13])
def test_load_data_refuses_labels_of_another_length(
    store: Store, count: int, tmp_path: Path
) -> None:
    path, labels = store(tmp_path, IMAGES), store_labels(tmp_path, "npy", np.zeros(count, int))
    wanted = rf"l\.npy: 12 records need 12 labels, found an array of shape \[{count}\]$"
    with pytest.raises(DataError, match=wanted):
        load_data(path, graph_of((1, 28, 28)), labels=labels, limit=3)


def test_load_data_refuses_labels_beside_the_records_of_another_length(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=IMAGES, y=LABELS[:4])
    with pytest.raises(DataError, match=r"d\.npz: 12 records need 12 labels, found .* \[4\]$"):
        load_data(str(tmp_path / "d.npz"), graph_of((1, 28, 28)))


def test_load_data_refuses_labels_that_are_not_numbers(tmp_path: Path) -> None:
    labels = store_labels(tmp_path, "npy", np.array(["cat"] * 12))
    with pytest.raises(DataError, match=r"l\.npy: labels are numbers, found <U3$"):
        load_data(as_npy(tmp_path, IMAGES), graph_of((1, 28, 28)), labels=labels)


def test_load_data_refuses_labels_that_are_not_finite(tmp_path: Path) -> None:
    labels = store_labels(tmp_path, "npy", np.where(LABELS == 4, np.nan, LABELS))
    with pytest.raises(DataError, match=r"l\.npy: label 4 is nan: not finite$"):
        load_data(as_npy(tmp_path, IMAGES), graph_of((1, 28, 28)), labels=labels)


def test_load_data_refuses_labels_it_cannot_find(tmp_path: Path) -> None:
    path = as_npz(tmp_path, IMAGES)
    with pytest.raises(DataError, match=r"npz: labels 'y_tst' are neither an array in it nor a"):
        load_data(path, graph_of((1, 28, 28)), labels="y_tst")


def test_load_data_refuses_a_label_array_that_is_not_there(tmp_path: Path) -> None:
    labels = store_labels(tmp_path, "npz:numbers", LABELS)
    with pytest.raises(DataError, match=r"l\.npz: no array 'numbers', found 'digits'$"):
        load_data(as_npy(tmp_path, IMAGES), graph_of((1, 28, 28)), labels=labels)


def test_load_data_refuses_a_label_dataset_that_is_not_there(tmp_path: Path) -> None:
    labels = store_labels(tmp_path, "h5:/numbers", LABELS)
    with pytest.raises(DataError, match=r"l\.h5: no dataset 'numbers' in '/', found 'deep'"):
        load_data(as_npy(tmp_path, IMAGES), graph_of((1, 28, 28)), labels=labels)


def test_load_data_refuses_a_label_file_with_several_candidates(tmp_path: Path) -> None:
    np.savez(tmp_path / "l.npz", a=LABELS, b=LABELS)
    with pytest.raises(DataError, match=r"several arrays could be the labels, say which: a, b$"):
        load_data(as_npy(tmp_path, IMAGES), graph_of((1, 28, 28)), labels=str(tmp_path / "l.npz"))


def test_load_data_refuses_labels_from_a_text_file(tmp_path: Path) -> None:
    (tmp_path / "l.txt").write_text("1\n2\n")
    with pytest.raises(DataError, match=r"l\.txt: labels are read from FILE\.npy, FILE\.npz:ARRAY"):
        load_data(as_npy(tmp_path, IMAGES), graph_of((1, 28, 28)), labels=str(tmp_path / "l.txt"))
