"""Folders and lists of record files, with several inputs in each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from luciole.ir import Graph, TensorType
from luciole.tools.data import DataError, load_data

A = np.random.default_rng(2).random((12, 2, 2), np.float32)
B = np.arange(12, dtype=np.int32).reshape(12, 1)


def graph_of_two() -> Graph:
    graph = Graph("main")
    graph.add_input("a", (1, 2, 2))
    graph.add_input("b", (None, 1), TensorType.INT32)
    return graph


def graph_of_one() -> Graph:
    graph = Graph("main")
    graph.add_input("a", (1, 2, 2))
    return graph


def write_records(folder: Path) -> Path:
    folder.mkdir()
    for i in range(12):
        (folder / f"r{i}.raw").write_bytes(A[i].tobytes() + B[i].tobytes())
    return folder


def test_a_folder_is_read_in_natural_order(tmp_path: Path) -> None:
    data = load_data(str(write_records(tmp_path / "d")), graph_of_two())
    np.testing.assert_array_equal(data.records["a"], A)
    np.testing.assert_array_equal(data.records["b"], B)


def test_hidden_files_and_sub_folders_are_passed_over(tmp_path: Path) -> None:
    folder = write_records(tmp_path / "d")
    (folder / ".hidden").write_text("text")
    (folder / "sub").mkdir()
    assert load_data(str(folder), graph_of_two()).count == 12


def test_npy_and_raw_files_may_be_mixed(tmp_path: Path) -> None:
    np.save(tmp_path / "0.npy", A[:1])
    np.save(tmp_path / "1.bin.npy", A[1].astype(np.float64))
    A[2].tofile(tmp_path / "2.bin")
    data = load_data(str(tmp_path), graph_of_one())
    assert data.records["a"].dtype == np.float32
    np.testing.assert_array_equal(data.records["a"], A[:3])


def test_a_list_gives_its_own_order_and_may_repeat(tmp_path: Path) -> None:
    folder = write_records(tmp_path / "with space")
    lines = ["with space/r3.raw", "", str(folder / "r11.raw"), " with space/r3.raw "]
    (tmp_path / "files.lst").write_bytes("\r\n".join(lines).encode("utf-8-sig"))
    data = load_data(str(tmp_path / "files.lst"), graph_of_two())
    np.testing.assert_array_equal(data.records["b"], [[3], [11], [3]])
    np.testing.assert_array_equal(data.records["a"], A[[3, 11, 3]])


def test_limit_does_not_read_the_other_files(tmp_path: Path) -> None:
    folder = write_records(tmp_path / "d")
    (folder / "r5.raw").write_bytes(b"short")
    np.testing.assert_array_equal(
        load_data(str(folder), graph_of_two(), limit=5).records["b"], B[:5]
    )


def test_load_data_refuses_an_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    with pytest.raises(DataError) as refusal:
        load_data(str(tmp_path), graph_of_one())
    assert str(refusal.value) == f"{tmp_path}: the folder has no files"


def test_load_data_refuses_an_empty_list(tmp_path: Path) -> None:
    (tmp_path / "files.txt").write_text("\n \n")
    with pytest.raises(DataError, match=r"files\.txt: holds no records$"):
        load_data(str(tmp_path / "files.txt"), graph_of_one())


def test_load_data_refuses_a_list_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "files.txt").write_bytes(b"a\xff\xfe\n")
    with pytest.raises(DataError, match=r"txt: is neither HDF5, \.npz, \.npy nor a list of files$"):
        load_data(str(tmp_path / "files.txt"), graph_of_one())


def test_load_data_refuses_a_list_with_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "files.txt").write_text("none.raw\n")
    with pytest.raises(DataError, match=r"files\.txt: .*none\.raw: no such file or folder$"):
        load_data(str(tmp_path / "files.txt"), graph_of_one())


def test_load_data_refuses_a_list_with_a_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "files.txt").write_text("sub\n")
    with pytest.raises(DataError, match=r"files\.txt: .*sub: Is a directory$"):
        load_data(str(tmp_path / "files.txt"), graph_of_one())


def test_load_data_refuses_raw_files_of_another_length(tmp_path: Path) -> None:
    folder = write_records(tmp_path / "d")
    (folder / "r2.raw").write_bytes(bytes(21))
    with pytest.raises(
        DataError, match=r"r2\.raw: a raw record has 16 for 'a' \+ 4 for 'b' bytes, found 21$"
    ):
        load_data(str(folder), graph_of_two())


def test_load_data_refuses_npy_files_for_several_inputs(tmp_path: Path) -> None:
    np.save(tmp_path / "0.npy", A[0])
    with pytest.raises(DataError, match=r"0\.npy: a \.npy file holds one input, the model has 2$"):
        load_data(str(tmp_path), graph_of_two())


def test_load_data_refuses_npy_files_of_another_shape(tmp_path: Path) -> None:
    np.save(tmp_path / "0.npy", A[0])
    np.save(tmp_path / "1.npy", A[0, :1])
    message = r"'a' takes records of shape \[2,2\], found \[1,2\] in record 1 \(1\.npy\)$"
    with pytest.raises(DataError, match=message):
        load_data(str(tmp_path), graph_of_one())


def test_load_data_refuses_raw_files_with_nan(tmp_path: Path) -> None:
    bad = A[0].copy()
    bad[1, 0] = np.nan
    bad.tofile(tmp_path / "0.raw")
    with pytest.raises(DataError, match=r"element \[1,0\] of record 0 \(0\.raw\) is nan: not fini"):
        load_data(str(tmp_path), graph_of_one())


def test_load_data_refuses_files_with_odd_names_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a\nb\u202e.raw").write_bytes(bytes(3))
    with pytest.raises(DataError, match=r"/a\\nb\\u202e\.raw: a raw record has 16 for 'a' bytes"):
        load_data(str(tmp_path), graph_of_one())
    (tmp_path / "a\nb\u202e.raw").unlink()
    np.full(4, np.nan, np.float32).tofile(tmp_path / "a\nb")
    with pytest.raises(DataError, match=r"of record 0 \(a\\nb\) is nan: not finite$"):
        load_data(str(tmp_path), graph_of_one())


def test_load_data_refuses_raw_files_for_unknown_axes(tmp_path: Path) -> None:
    graph = Graph("main")
    graph.add_input("a", (1, None, 2))
    A[0].tofile(tmp_path / "0.raw")
    with pytest.raises(
        DataError, match=r"'a' has shape \[\?,2\] per record: raw bytes cannot tell"
    ):
        load_data(str(tmp_path), graph)


def test_a_file_holds_the_bytes_of_record_after_record(tmp_path: Path) -> None:
    path = tmp_path / "records.raw"
    path.write_bytes(b"".join(a.tobytes() + b.tobytes() for a, b in zip(A, B, strict=True)))
    data = load_data(str(path), graph_of_two(), limit=5)
    np.testing.assert_array_equal(data.records["a"], A[:5])
    np.testing.assert_array_equal(data.records["b"], B[:5])


def test_a_file_of_bytes_refuses_half_a_record(tmp_path: Path) -> None:
    path = tmp_path / "records.bin"
    path.write_bytes(A.tobytes()[:-1])
    with pytest.raises(DataError, match=r"holds 191 bytes, no whole number of records of 16 bytes"):
        load_data(str(path), graph_of_one())
