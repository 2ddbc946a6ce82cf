"""Where labels come from, and which are refused."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from luciole.ir import Array
from luciole.tools.data import DataError, load_data
from tests.tools.data.stores import (
    IMAGES,
    SOURCES,
    Store,
    as_npy,
    as_npz,
    as_typed_hdf5,
    graph_of,
)

LABELS = np.arange(12) % 10


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
PAIRS = [*((as_npy, kind) for kind in KINDS), *((store, "npz") for store in SOURCES)]
"""A file of labels is read beside whatever holds the records: each kind of both once."""


@pytest.mark.parametrize(("store", "kind"), [*PAIRS, (as_typed_hdf5, "h5")])
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


@pytest.mark.parametrize("count", [11, 13])
@pytest.mark.parametrize("store", [as_typed_hdf5, as_npy, as_npz])
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
    with pytest.raises(DataError, match=r"several arrays could be the labels, say which: 'a', 'b'"):
        load_data(as_npy(tmp_path, IMAGES), graph_of((1, 28, 28)), labels=str(tmp_path / "l.npz"))


def test_load_data_refuses_labels_from_a_text_file(tmp_path: Path) -> None:
    (tmp_path / "l.txt").write_text("1\n2\n")
    with pytest.raises(DataError, match=r"l\.txt: labels are read from FILE\.npy, FILE\.npz:ARRAY"):
        load_data(as_npy(tmp_path, IMAGES), graph_of((1, 28, 28)), labels=str(tmp_path / "l.txt"))
