"""Which shapes, types and values fit an input, and how the others are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from luciole.ir import Array, Graph, Shape, TensorType
from luciole.ir.dtypes import NUMPY
from luciole.schema.tables import QuantizationParameters
from luciole.tools.data import Data, DataError, load_data
from luciole.tools.data.fitting import fit_shape


def load(
    folder: Path,
    array: Array,
    shape: Shape,
    dtype: TensorType = TensorType.FLOAT32,
    scale: float | None = None,
    zero_point: int = 0,
    **options: Any,
) -> Data:
    graph = Graph("main")
    value = graph.add_input("in", shape, dtype)
    if scale is not None:
        value.quantization = QuantizationParameters(
            scale=np.array([scale], np.float32), zero_point=np.array([zero_point])
        )
    np.save(folder / "x.npy", array)
    return load_data(str(folder / "x.npy"), graph, **options)


@pytest.mark.parametrize(
    ("found", "wanted", "fitted"),
    [
        ((28, 28), (28, 28), (28, 28)),
        ((1, 28, 28), (28, 28), (28, 28)),
        ((1, 1, 28, 28), (28, 28), (28, 28)),
        ((28, 28), (1, 28, 28), (1, 28, 28)),
        ((28, 28), (28, 28, 1), (28, 28, 1)),
        ((28, 28, 1), (28, 28), (28, 28)),
        ((1, 28, 28), (28, 28, 1), (28, 28, 1)),
        ((28, 28), (784,), (784,)),
        ((784,), (28, 28), (28, 28)),
        ((), (), ()),
        ((1,), (), ()),
        ((), (1, 1), (1, 1)),
        ((30, 20, 3), (None, None, 3), (30, 20, 3)),
        ((1, 30, 20, 3), (None, None, 3), (30, 20, 3)),
        ((30, 20), (None, None, 1), (30, 20, 1)),
        ((1, 5), (None, 5), (1, 5)),
        ((5,), (None, 5), (1, 5)),
        ((28, 28), (27, 28), None),
        ((2, 28, 28), (28, 28), None),
        ((3, 32, 32), (32, 32, 3), None),
        ((28, 56), (56, 28), None),
        ((32, 32, 3), (1024, 3), None),
        ((20,), (None, 10), None),
        ((30, 20, 4), (None, None, 3), None),
        ((785,), (28, 28), None),
    ],
)
def test_fit_shape_drops_and_adds_ones_and_flattens(
    found: tuple[int, ...], wanted: Shape, fitted: tuple[int, ...] | None
) -> None:
    assert fit_shape(found, wanted) == fitted


def test_uint8_and_float64_become_float32_as_they_are(tmp_path: Path) -> None:
    images = np.arange(256, dtype=np.uint8).reshape(2, 128)
    for dtype in (np.uint8, np.float64, ">f4", ">f8"):
        fed = load(tmp_path, images.astype(dtype), (1, 128)).records["in"]
        assert fed.dtype == np.float32
        assert fed.dtype.isnative
        np.testing.assert_array_equal(fed, images)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64, ">f4"])
@pytest.mark.parametrize(
    ("preprocess", "wanted"),
    [(None, [-28, -27, 72, 127]), ("x/2", [-28, -27, 22, 100]), ("none", [-28, -27, 72, 127])],
)
def test_real_numbers_are_quantized_for_a_quantized_input(
    dtype: Any, preprocess: str | None, wanted: list[int], tmp_path: Path
) -> None:
    array = np.array([[0, 1, 100, 255]], dtype)
    data = load(tmp_path, array, (1, 4), TensorType.INT8, 1.0, -28, preprocess=preprocess)
    fed = data.records["in"]
    assert fed.dtype == np.int8
    assert fed.tolist() == [wanted]


def test_a_quantized_input_takes_what_it_stores_as_it_is(tmp_path: Path) -> None:
    for dtype in (TensorType.INT8, TensorType.UINT8, TensorType.INT16):
        array = np.array([[0, 1, 100]], NUMPY[dtype])
        fed = load(tmp_path, array, (1, 3), dtype, 0.5, 3).records["in"]
        assert fed.dtype == array.dtype
        np.testing.assert_array_equal(fed, array)


def test_preprocessing_makes_real_numbers_of_uint8(tmp_path: Path) -> None:
    """Also where the input is uint8 itself: 100 / 2 is 50, stored as 50 / 0.5 + 3."""
    array = np.array([[0, 1, 100]], np.uint8)
    data = load(tmp_path, array, (1, 3), TensorType.UINT8, 0.5, 3, preprocess="x/2")
    assert data.records["in"].tolist() == [[3, 4, 103]]


def test_load_data_refuses_to_preprocess_what_an_input_stores(tmp_path: Path) -> None:
    sentence = r"input 'in': int8 in the array is what it stores, preprocessing is for float32 or"
    with pytest.raises(DataError, match=sentence):
        load(tmp_path, np.zeros((1, 3), np.int8), (1, 3), TensorType.INT8, 0.5, preprocess="x/2")


def test_load_data_refuses_other_integers_for_a_quantized_input(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="takes int8 or float32 or float64 or uint8, found int32"):
        load(tmp_path, np.zeros((1, 3), np.int32), (1, 3), TensorType.INT8, 0.5)


@pytest.mark.parametrize("preprocess", ["none", "x*1"])
def test_fortran_order_is_made_contiguous(preprocess: str, tmp_path: Path) -> None:
    array = np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4))
    fed = load(tmp_path, array, (1, 4), preprocess=preprocess).records["in"]
    assert fed.flags.c_contiguous
    np.testing.assert_array_equal(fed, array)


def test_a_rank_one_input_takes_one_number_per_record(tmp_path: Path) -> None:
    fed = load(tmp_path, np.arange(5, dtype=np.float32), (1,)).records["in"]
    np.testing.assert_array_equal(fed, [0, 1, 2, 3, 4])


def test_none_leaves_values_alone(tmp_path: Path) -> None:
    array = np.arange(4, dtype=np.float32).reshape(2, 2)
    np.testing.assert_array_equal(
        load(tmp_path, array, (1, 2), preprocess="none").records["in"], array
    )


def test_load_data_refuses_another_shape(tmp_path: Path) -> None:
    with pytest.raises(
        DataError,
        match=r"x\.npy: input 'in' takes records of shape \[28,28\], found \[27,28\] in the array$",
    ):
        load(tmp_path, np.zeros((5, 27, 28), np.float32), (1, 28, 28))


def test_load_data_refuses_swapped_channels(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"takes records of shape \[\?,8,3\], found \[3,8,8\]"):
        load(tmp_path, np.zeros((5, 3, 8, 8), np.float32), (1, None, 8, 3))


def test_load_data_refuses_a_single_record_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"found \[28\] in the array \(the first axis counts recor"):
        load(tmp_path, np.zeros((28, 28), np.float32), (1, 28, 28))


def test_load_data_refuses_a_single_number(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the array is a single number; its first axis has to"):
        load(tmp_path, np.float32(3), (1,))  # type: ignore[arg-type]  # np.save takes it


@pytest.mark.parametrize(
    ("stored", "wanted", "allowed"),
    [
        (np.int32, TensorType.FLOAT32, "float32 or float64 or uint8"),
        (np.int8, TensorType.FLOAT32, "float32 or float64 or uint8"),
        (np.bool_, TensorType.FLOAT32, "float32 or float64 or uint8"),
        (np.complex64, TensorType.FLOAT32, "float32 or float64 or uint8"),
        (np.float32, TensorType.UINT8, "uint8"),
        (np.int64, TensorType.INT32, "int32"),
        (np.uint8, TensorType.BOOL, "bool"),
        (np.float32, TensorType.FLOAT16, "float16"),
    ],
)
def test_load_data_refuses_another_type(
    stored: type[Any], wanted: TensorType, allowed: str, tmp_path: Path
) -> None:
    name = np.dtype(stored).name
    with pytest.raises(DataError, match=f"input 'in' takes {allowed}, found {name} in the array$"):
        load(tmp_path, np.zeros((2, 3), stored), (1, 3), wanted)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("preprocess", [None, "1/(x*2)"])
def test_load_data_refuses_nan_and_infinity(
    value: float, dtype: type[Any], preprocess: str | None, tmp_path: Path
) -> None:
    array = np.ones((4, 3, 2), dtype)
    array[2, 1, 0] = value
    message = rf"input 'in': element \[1,0\] of record 2 of the array is {value}: not finite$"
    with pytest.raises(DataError, match=message):
        load(tmp_path, array, (1, 3, 2), preprocess=preprocess)


def test_load_data_refuses_what_float32_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"record 1 of the array is 1e\+300, which becomes inf: not"
    ):
        load(tmp_path, np.array([[0.0], [1e300]]), (1, 1))


def test_load_data_refuses_preprocessing_that_makes_infinity(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"\[0\] of record 1 .* is 0, which becomes inf: not finite"
    ):
        load(tmp_path, np.array([[1], [0]], np.uint8), (1, 1), preprocess="1/x")


def test_load_data_refuses_no_records(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.npy: holds no records$"):
        load(tmp_path, np.zeros((0, 3), np.float32), (1, 3))


def test_load_data_refuses_pickled_objects(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"x\.npy: the array holds Python objects \(pickles\),"):
        load(tmp_path, np.array([{}, []], dtype=object), (1,))


def test_load_data_refuses_types_that_files_do_not_hold(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^input 'in': INT4 cannot be fed from a file$"):
        load(tmp_path, np.zeros((1, 1), np.float32), (1, 1), TensorType.INT4)


def test_load_data_refuses_preprocessing_where_nothing_is_real(tmp_path: Path) -> None:
    sentence = r"for float32 or quantized inputs, there is none: 'in' is uint8$"
    with pytest.raises(DataError, match=sentence):
        load(tmp_path, np.zeros((1, 1), np.uint8), (1, 1), TensorType.UINT8, preprocess="x/255")


def test_load_data_refuses_a_model_without_inputs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^the model has no inputs to feed$"):
        load_data(str(tmp_path), Graph("main"))


def test_load_data_refuses_two_inputs_of_one_name(tmp_path: Path) -> None:
    graph = Graph("main")
    graph.add_input("a", (1, 2))
    graph.add_input("a", (1, 2))
    with pytest.raises(DataError, match=r"^the model has 2 inputs named 'a'$"):
        load_data(str(tmp_path), graph)
