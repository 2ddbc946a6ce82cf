"""ONE's HDF5 layout, read and written; the files are made and looked at with h5py alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from luciole.ir import Array, Graph, LucioleError, TensorType
from luciole.tools.data import DataError, load_data, write_hdf5

RNG = np.random.default_rng(11)
FLOATS: Array = RNG.random((11, 2, 3), np.float32)
IDS: Array = RNG.integers(-5, 99, (11, 4)).astype(np.int64)
FLAGS: Array = RNG.integers(0, 2, (11, 1)).astype(bool)


def graph_of_three() -> Graph:
    graph = Graph("main")
    graph.add_input("floats", (1, 2, 3))
    graph.add_input("ids", (1, 4), TensorType.INT64)
    graph.add_input("flags", (1, 1), TensorType.BOOL)
    return graph


def graph_of_one() -> Graph:
    graph = Graph("main")
    graph.add_input("floats", (1, 2, 3))
    return graph


def store(path: Path, *inputs: Array, raw: bool = False) -> str:
    """What ONE's own scripts write, with a batch axis of one in each record."""
    with h5py.File(path, "w") as file:
        value = file.create_group("value")
        if raw:
            value.attrs["rawData"] = "1"
        for i in range(len(inputs[0])):
            record = value.create_group(str(i))
            record.attrs["desc"] = f"file{i}.bin"
            for j, array in enumerate(inputs):
                one = array[i : i + 1]
                record.create_dataset(str(j), data=bytearray(one.tobytes()) if raw else one)
    return str(path)


@pytest.mark.parametrize("raw", [False, True])
def test_inputs_are_matched_by_their_index(raw: bool, tmp_path: Path) -> None:
    path = store(tmp_path / "x.h5", FLOATS, IDS, FLAGS, raw=raw)
    data = load_data(path, graph_of_three())
    assert list(data.records) == ["floats", "ids", "flags"]
    for (_, found), wanted in zip(data.records.items(), (FLOATS, IDS, FLAGS), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_records_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    data = load_data(store(tmp_path / "x.h5", FLOATS), graph_of_one())
    np.testing.assert_array_equal(data.records["floats"], FLOATS)  # 10 comes after 9, not after 1


def test_compressed_and_big_endian_datasets_are_read(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("value/0/0", data=FLOATS[:1].astype(">f4"), compression="gzip")
    data = load_data(str(tmp_path / "x.h5"), graph_of_one())
    np.testing.assert_array_equal(data.records["floats"], FLOATS[:1])


def test_limit_does_not_read_the_other_records(tmp_path: Path) -> None:
    path = store(tmp_path / "x.h5", FLOATS)
    with h5py.File(path, "a") as file:
        file["value/7/0"][0, 0, 0] = np.nan
    data = load_data(path, graph_of_one(), limit=7)
    np.testing.assert_array_equal(data.records["floats"], FLOATS[:7])
    with pytest.raises(DataError, match=r"element \[0,0\] of record 7 is nan: not finite$"):
        load_data(path, graph_of_one())


def test_a_user_block_before_the_file_is_passed_over(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.bin", "w", userblock_size=1024) as file:
        file["value/0/0"] = FLOATS[0]
    data = load_data(str(tmp_path / "x.bin"), graph_of_one())
    np.testing.assert_array_equal(data.records["floats"], FLOATS[:1])


# refusals


def refuse(folder: Path, contents: dict[str, Any], message: str, **attributes: Any) -> None:
    with h5py.File(folder / "x.h5", "w") as file:
        for name, stored in contents.items():
            if stored is None:
                file.create_group(name)
            else:
                file[name] = stored
        if "value" in file:
            file["value"].attrs.update(attributes)
    with pytest.raises(DataError) as refusal:
        load_data(str(folder / "x.h5"), graph_of_one())
    assert str(refusal.value) == f"{folder / 'x.h5'}: {message}"


ONE = FLOATS[:1]


def test_load_data_refuses_hdf5_without_value(tmp_path: Path) -> None:
    refuse(tmp_path, {"images": ONE}, "no group 'value' in '/', found 'images'")


def test_load_data_refuses_hdf5_with_nothing_in_it(tmp_path: Path) -> None:
    refuse(tmp_path, {}, "no group 'value' in '/', found nothing")


def test_load_data_refuses_hdf5_whose_value_is_a_dataset(tmp_path: Path) -> None:
    refuse(tmp_path, {"value": ONE}, "'/value' is no group")


def test_load_data_refuses_hdf5_whose_record_is_a_dataset(tmp_path: Path) -> None:
    refuse(tmp_path, {"value/0": ONE}, "'/value/0' is no group")


def test_load_data_refuses_hdf5_whose_input_is_a_group(tmp_path: Path) -> None:
    refuse(tmp_path, {"value/0/0": None}, "'/value/0/0' is no dataset")


def test_load_data_refuses_hdf5_without_records(tmp_path: Path) -> None:
    refuse(tmp_path, {"value": None}, "holds no records")


def test_load_data_refuses_hdf5_with_a_missing_record(tmp_path: Path) -> None:
    message = "records in '/value' are named 0 to 1: '1' is missing, '2' is there"
    refuse(tmp_path, {"value/0/0": ONE, "value/2/0": ONE}, message)


def test_load_data_refuses_hdf5_with_padded_record_names(tmp_path: Path) -> None:
    message = "records in '/value' are named 0 to 0: '0' is missing, '000' is there"
    refuse(tmp_path, {"value/000/0": ONE}, message)


def test_load_data_refuses_hdf5_with_inputs_by_name(tmp_path: Path) -> None:
    message = "inputs in '/value/0' are named 0 to 0: '0' is missing, 'floats' is there"
    refuse(tmp_path, {"value/0/floats": ONE}, message)


def test_load_data_refuses_hdf5_with_too_many_inputs(tmp_path: Path) -> None:
    message = "record 0 has 2 inputs, the model 1: 'floats'"
    refuse(tmp_path, {"value/0/0": ONE, "value/0/1": ONE}, message)


def test_load_data_refuses_hdf5_with_too_few_inputs(tmp_path: Path) -> None:
    message = "record 1 has 0 inputs, the model 1: 'floats'"
    refuse(tmp_path, {"value/0/0": ONE, "value/1": None}, message)


def test_load_data_refuses_hdf5_records_of_another_shape(tmp_path: Path) -> None:
    message = "input 'floats' takes records of shape [2,3], found [1,3,2] in record 1"
    refuse(tmp_path, {"value/0/0": ONE, "value/1/0": ONE.swapaxes(1, 2)}, message)


def test_load_data_refuses_hdf5_records_of_another_type(tmp_path: Path) -> None:
    message = "input 'floats' takes float32 or float64 or uint8, found int32 in record 0"
    refuse(tmp_path, {"value/0/0": ONE.astype(np.int32)}, message)


@pytest.mark.parametrize("stored", [np.bytes_(b"abc"), h5py.Empty("f4"), np.array([(1,)], "i4,")])
def test_load_data_refuses_hdf5_datasets_that_hold_no_numbers(stored: Any, tmp_path: Path) -> None:
    refuse(tmp_path, {"value/0/0": stored}, "'/value/0/0' holds no array of numbers")


def test_load_data_refuses_raw_data_of_another_length(tmp_path: Path) -> None:
    message = "record 0: input 'floats' takes 24 bytes per record (float32 [2,3]), found 23"
    refuse(tmp_path, {"value/0/0": np.zeros(23, np.uint8)}, message, rawData="1")


def test_load_data_refuses_raw_data_that_is_not_uint8(tmp_path: Path) -> None:
    message = "raw data is stored as uint8, found float32 in record 0"
    refuse(tmp_path, {"value/0/0": ONE}, message, rawData="1")


def test_load_data_refuses_raw_data_for_unknown_axes(tmp_path: Path) -> None:
    graph = Graph("main")
    graph.add_input("floats", (1, None, 3))
    path = store(tmp_path / "x.h5", FLOATS, raw=True)
    with pytest.raises(
        DataError, match=r"'floats' has shape \[\?,3\] per record: raw bytes cannot"
    ):
        load_data(path, graph)


def test_load_data_refuses_records_that_differ_in_an_unknown_axis(tmp_path: Path) -> None:
    graph = Graph("main")
    graph.add_input("floats", (1, None, 3))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["value/0/0"], file["value/1/0"] = np.zeros((2, 3), "f4"), np.zeros((4, 3), "f4")
    message = r"'floats': all records need one shape, found \[4,3\] in record 1 after \[2,3\]$"
    with pytest.raises(DataError, match=message):
        load_data(str(tmp_path / "x.h5"), graph)


def test_load_data_refuses_a_truncated_hdf5_file(tmp_path: Path) -> None:
    path = Path(store(tmp_path / "x.h5", FLOATS))
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(DataError, match=r"x\.h5: the file is damaged or .*truncated file"):
        load_data(str(path), graph_of_one())


# writing


def test_write_hdf5_writes_the_layout_of_one(tmp_path: Path) -> None:
    path = tmp_path / "out.h5"
    write_hdf5(str(path), {"floats": FLOATS, "ids": IDS, "flags": FLAGS})
    with h5py.File(path) as file:
        assert list(file) == ["value"]
        assert "rawData" not in file["value"].attrs
        assert set(file["value"]) == {str(i) for i in range(11)}
        for i in range(11):
            record = file["value"][str(i)]
            assert set(record) == {"0", "1", "2"}
            for j, array in enumerate((FLOATS, IDS, FLAGS)):
                assert record[str(j)].shape == (1, *array.shape[1:])
                np.testing.assert_array_equal(record[str(j)][()], array[i : i + 1])
        assert file["value/0/0"].dtype == np.float32
        assert file["value/0/1"].dtype == np.int64
        enum = file["value/0/2"].id.get_type()
        assert enum.get_class() == h5py.h5t.ENUM
        assert enum.get_super().equal(h5py.h5t.STD_I8LE)
        assert [enum.enum_valueof(name) for name in (b"FALSE", b"TRUE")] == [0, 1]


@pytest.mark.parametrize("as_list", [False, True])
def test_what_is_written_is_read_back(as_list: bool, tmp_path: Path) -> None:
    arrays = {"floats": FLOATS, "ids": IDS, "flags": FLAGS}
    write_hdf5(str(tmp_path / "x.h5"), list(arrays.values()) if as_list else arrays)
    data = load_data(str(tmp_path / "x.h5"), graph_of_three())
    for name, array in arrays.items():
        np.testing.assert_array_equal(data.records[name], array)


def test_write_hdf5_replaces_a_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    path.write_text("old")
    write_hdf5(str(path), [FLOATS])
    assert [p.name for p in tmp_path.iterdir()] == ["x.h5"]
    assert h5py.is_hdf5(path)


def test_write_hdf5_keeps_the_old_file_when_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.h5"
    path.write_text("old")

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(h5py.Group, "create_dataset", fail)
    with pytest.raises(LucioleError, match=r"cannot write .*/x\.h5: No space left on device$"):
        write_hdf5(str(path), [FLOATS])
    assert [p.name for p in tmp_path.iterdir()] == ["x.h5"]
    assert path.read_text() == "old"


@pytest.mark.parametrize("dtype", [np.float64, np.uint8, np.int8, np.float16])
def test_types_that_one_reads_as_bytes_alone_are_written_so(
    dtype: type[Any], tmp_path: Path
) -> None:
    others = (FLOATS * 10).astype(dtype)
    write_hdf5(str(tmp_path / "x.h5"), [FLOATS, others])
    with h5py.File(tmp_path / "x.h5") as file:
        assert "rawData" in file["value"].attrs
        record = file["value"]["3"]
        assert record["0"].dtype == record["1"].dtype == np.uint8
        assert record["0"][:].tobytes() == FLOATS[3].tobytes()
        assert record["1"][:].tobytes() == others[3].tobytes()


def test_write_hdf5_refuses_what_is_no_real_number(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.h5: input 1 is complex64: real numbers are needed$"):
        write_hdf5(str(tmp_path / "x.h5"), [FLOATS, FLOATS.astype(np.complex64)])
    assert not list(tmp_path.iterdir())


def test_write_hdf5_refuses_different_counts(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"needs the same number of records, found \[11, 10\]$"):
        write_hdf5(str(tmp_path / "x.h5"), [FLOATS, IDS[:10]])


def test_write_hdf5_refuses_no_records(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.h5: holds no records$"):
        write_hdf5(str(tmp_path / "x.h5"), [FLOATS[:0]])


def test_write_hdf5_refuses_no_inputs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"needs at least one array whose first axis counts recor"):
        write_hdf5(str(tmp_path / "x.h5"), {})


def test_write_hdf5_refuses_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LucioleError, match=r"cannot write .*/x\.h5: there is no folder .*none$"):
        write_hdf5(str(tmp_path / "none" / "x.h5"), [FLOATS])
