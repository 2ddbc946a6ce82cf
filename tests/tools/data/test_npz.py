"""Which arrays of an .npz file are the inputs and the labels."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, Graph, Signature
from luciole.tools.data import Data, DataError, load_data
from tests.networks import two_inputs

RNG = np.random.default_rng(5)
X: Array = RNG.random((6, 3), np.float32)
Y: Array = np.arange(6)
OTHER: Array = RNG.random((9, 3), np.float32)
OTHER_Y: Array = np.arange(9)


def load(folder: Path, arrays: dict[str, Array], named: str = "", **options: Any) -> Data:
    graph = Graph("main")
    graph.add_input("in", (1, 3))
    np.savez(folder / "d.npz", **arrays)  # type: ignore[arg-type]  # names are not allow_pickle
    return load_data(str(folder / "d.npz") + named, graph, **options)


def load_two(folder: Path, arrays: dict[str, Array], **options: Any) -> Data:
    graph = Graph("main")
    graph.add_input("a/b:0", (1, 3))
    graph.add_input("c", (1, 3))
    np.savez(folder / "d.npz", **arrays)  # type: ignore[arg-type]  # names are not allow_pickle
    return load_data(str(folder / "d.npz"), graph, **options)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ("x", "y"),
        ("x", "labels"),
        ("x_train", "y_train"),
        ("x_test", "y_test"),
        ("images", "labels"),
        ("test_images", "test_labels"),
        ("input", "target"),
        ("input_1", "y"),
        ("in", "label"),
        ("anything", "y_val"),
        ("x_test", "labels"),
    ],
)
def test_one_array_and_its_labels_are_found(x: str, y: str, tmp_path: Path) -> None:
    data = load(tmp_path, {y: Y, x: X})
    np.testing.assert_array_equal(data.records["in"], X)
    assert data.labels is not None
    np.testing.assert_array_equal(data.labels, Y)


def test_the_input_name_comes_before_usual_names(tmp_path: Path) -> None:
    data = load(tmp_path, {"x": OTHER, "in": X})
    np.testing.assert_array_equal(data.records["in"], X)


def test_a_usual_name_comes_before_strange_ones(tmp_path: Path) -> None:
    data = load(tmp_path, {"x": X, "meta": OTHER})
    np.testing.assert_array_equal(data.records["in"], X)


SPLITS = {"x_train": OTHER, "y_train": OTHER_Y, "x_test": X, "y_test": Y}


@pytest.mark.parametrize("how", ["path", "argument", "both"])
def test_one_of_several_arrays_is_named(how: str, tmp_path: Path) -> None:
    named = "" if how == "argument" else ":x_test"
    options = {} if how == "path" else {"array": "x_test"}
    data = load(tmp_path, SPLITS, named, **options)
    np.testing.assert_array_equal(data.records["in"], X)
    assert data.labels is not None
    np.testing.assert_array_equal(data.labels, Y)


def test_the_labels_of_another_split_are_not_taken(tmp_path: Path) -> None:
    data = load(tmp_path, {"x_train": OTHER, "y_train": Y, "x_test": X}, array="x_test")
    assert data.labels is None


def test_the_labels_of_another_name_are_not_guessed(tmp_path: Path) -> None:
    data = load(tmp_path, {"x": X, "y_coarse": Y, "y_fine": Y})
    assert data.labels is None


def test_a_file_whose_name_has_a_colon_is_not_split(tmp_path: Path) -> None:
    graph = Graph("main")
    graph.add_input("in", (1, 3))
    np.savez(tmp_path / "d.npz", x=OTHER)
    with (tmp_path / "d.npz:x").open("wb") as file:
        np.savez(file, x=X)
    data = load_data(str(tmp_path / "d.npz:x"), graph)
    np.testing.assert_array_equal(data.records["in"], X)


def test_several_inputs_are_matched_by_name(tmp_path: Path) -> None:
    data = load_two(tmp_path, {"c": X + 1, "a/b:0": X, "y": Y}, limit=4)
    assert list(data.records) == ["a/b:0", "c"]
    np.testing.assert_array_equal(data.records["a/b:0"], X[:4])
    np.testing.assert_array_equal(data.records["c"], (X + 1)[:4])
    assert data.labels is not None
    np.testing.assert_array_equal(data.labels, Y[:4])


def test_inputs_are_matched_by_a_signature_s_names(tmp_path: Path) -> None:
    model = two_inputs()
    left, right = model.graph.inputs
    pairs, out = [("img", left), ("meta", right)], [("sum", model.graph.outputs[0])]
    model.signatures = [Signature("serve", model.graph, pairs, out)]
    arrays = {"meta": np.ones((4, 9), np.float32), "img": np.zeros((4, 6), np.float32), "y": Y[:4]}
    np.savez(tmp_path / "d.npz", **arrays)  # type: ignore[arg-type]  # see load
    data = load_data(str(tmp_path / "d.npz"), model.graph, preprocess="img=x+3; none")
    assert list(data.records) == ["left", "right"]
    assert (data.records["left"] == 3).all()
    assert (data.records["right"] == 1).all()
    np.savez(tmp_path / "d.npz", meta=arrays["meta"], left=arrays["img"])
    with pytest.raises(DataError, match="no array for input 'left' or 'img', found 'meta', 'left'"):
        load_data(str(tmp_path / "d.npz"), model.graph)


def test_load_data_refuses_to_guess_between_train_and_test(tmp_path: Path) -> None:
    message = (
        r"d\.npz: input 'in' could be any of 'x_train', 'x_test': say which, e\.g\. FILE:x_test$"
    )
    with pytest.raises(DataError, match=message):
        load(tmp_path, SPLITS)


def test_load_data_refuses_to_guess_between_strange_names(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'in' could be any of 'foo', 'bar': say which"):
        load(tmp_path, {"foo": X, "bar": X, "y": Y})


def test_load_data_refuses_labels_alone(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"d\.npz: no array for input 'in', found 'y'$"):
        load(tmp_path, {"y": Y})


def test_load_data_refuses_an_npz_without_arrays(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"d\.npz: no array for input 'in', found nothing$"):
        load(tmp_path, {})


def test_load_data_refuses_an_array_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"d\.npz: no array 'x_tset', found 'x_train', 'y_train'"):
        load(tmp_path, SPLITS, ":x_tset")


def test_load_data_refuses_a_missing_input(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no array for input 'c', found 'a/b:0', 'd'$"):
        load_two(tmp_path, {"a/b:0": X, "d": X})


def test_load_data_refuses_one_array_for_several_inputs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'c' names one array, the model has 2 inputs: 'a/b:0'"):
        load_two(tmp_path, {"a/b:0": X, "c": X}, array="c")


def test_load_data_refuses_inputs_of_different_counts(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"same number of records, found {'a/b:0': 6, 'c': 9}$"):
        load_two(tmp_path, {"a/b:0": X, "c": OTHER})


def test_load_data_refuses_npy_for_several_inputs(tmp_path: Path) -> None:
    graph = Graph("main")
    graph.add_input("a", (1, 3))
    graph.add_input("b", (1, 3))
    np.save(tmp_path / "x.npy", X)
    message = r"a \.npy file holds one input, the model has 2 inputs: 'a', 'b'$"
    with pytest.raises(DataError, match=message):
        load_data(str(tmp_path / "x.npy"), graph)


def test_load_data_refuses_an_npz_array_of_another_shape(tmp_path: Path) -> None:
    message = r"'in' takes records of shape \[3\], found \[1\] in array 'x'$"
    with pytest.raises(DataError, match=message):
        load(tmp_path, {"x": X[:, :1]})


def test_load_data_refuses_an_npz_without_records(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"d\.npz: holds no records$"):
        load(tmp_path, {"x": X[:0]})


def test_load_data_refuses_pickled_objects_in_npz(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"array 'x' holds Python objects \(pickles\), which are"):
        load(tmp_path, {"x": np.array([{}, []], dtype=object)})


def test_load_data_refuses_zip_members_that_are_no_arrays(tmp_path: Path) -> None:
    graph = Graph("main")
    graph.add_input("in", (1, 3))
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
        file.writestr("x", "text")
    with pytest.raises(DataError, match=r"x\.npz: array 'x' does not begin as a \.npy file does$"):
        load_data(str(tmp_path / "x.npz"), graph)


def test_load_data_refuses_a_truncated_npz(tmp_path: Path) -> None:
    load(tmp_path, {"x": X})
    graph = Graph("main")
    graph.add_input("in", (1, 3))
    path = tmp_path / "d.npz"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DataError, match=r"d\.npz: the file is damaged or cannot be read: File is"):
        load_data(str(path), graph)
