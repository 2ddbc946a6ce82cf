"""What is said of tensors: quantization in words and numbers, contents, arrays for the page."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from luciole.drawing import blobs as blobs_module
from luciole.drawing.blobs import Blobs
from luciole.drawing.palette import BITS, CATEGORIES, PLAIN
from luciole.drawing.tensors import contents_json, tensor_json
from luciole.drawing.text import fitted, rounded, shown_name, width_of
from luciole.ir import Array, Graph, Model, TensorType, Value
from luciole.ir.dtypes import NUMPY, integer_range, tensor_type
from luciole.schema.tables import QuantizationParameters
from tests.tools.view.graphs import HOSTILE


def constant(array: Array, scale: Array | None = None, zero: int = 0) -> Value:
    graph = Model().add_graph(Graph("main"))
    value = graph.add_constant("c", array)
    value.quantization = QuantizationParameters(scale=scale, zero_point=np.array([zero]))
    return value


def test_one_scale_is_said_as_a_formula_with_its_range() -> None:
    data = np.array([-128, 0, 127, 127], np.int8)
    value = constant(data, np.array([0.5], np.float32), -28)
    found = tensor_json(value, "0:0:t0", Blobs())["quantization"]
    assert found["words"] == "8 bit, evenly spaced, one scale for the whole tensor"
    assert found["formula"] == "real = 0.5 \N{MULTIPLICATION SIGN} (q + 28)"
    assert found["range"] == [0.5 * (-128 + 28), 0.5 * (127 + 28)]
    assert (found["codes"], found["clipped"]) == ([-128, 127], 0.75)


def test_channels_have_scales_of_their_own() -> None:
    scales = np.array([0.5, 0.25], np.float32)
    value = constant(np.zeros((2, 3), np.int8), scales)
    found = tensor_json(value, "0:0:t0", Blobs())["quantization"]
    assert found["words"] == "8 bit, evenly spaced, 2 scales along axis 0"
    assert found["scale"] == [0.5, 0.25]
    assert found["zero"] == [0, 0]
    assert found["range"] == [-64, 63.5]


@pytest.mark.parametrize(
    ("dtype", "ends"),
    [
        (TensorType.INT4, (-8, 7)),
        (TensorType.UINT4, (0, 15)),
        (TensorType.INT2, (-2, 1)),
        (TensorType.UINT8, (0, 255)),
        (TensorType.INT16, (-32768, 32767)),
        (TensorType.FLOAT32, None),
    ],
)
def test_code_ranges(dtype: TensorType, ends: tuple[int, int] | None) -> None:
    assert integer_range(dtype) == ends


def test_contents_are_summed_up_and_counted() -> None:
    found = contents_json(np.array([[0, 1, 1], [2, 0, 5], [5, 5, 5]], np.int8))
    assert found is not None
    assert found["zeros"] == pytest.approx(2 / 9, rel=1e-5)
    assert found["histogram"] == {"low": -0.5, "high": 5.5, "counts": [2, 2, 1, 0, 0, 4]}
    odd = contents_json(np.array([np.nan, np.inf, 1.0, 3.0], np.float32))
    assert odd is not None
    assert (odd["min"], odd["max"], odd["mean"], odd["not_finite"]) == (1, 3, 2, 2)


def test_of_very_many_values_some_are_counted() -> None:
    many = np.zeros(3_000_000, np.int8)
    many[::3] = 7
    found = contents_json(many)
    assert found is not None
    assert (found["every"], found["max"], found["zeros"]) == (3, 7, 0)


def test_letters_are_readable_on_all_colours() -> None:
    for colour in (*BITS.values(), PLAIN, *(c for k, c in CATEGORIES.items() if k != "io")):
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        luminance = float(np.dot(linear, [0.2126, 0.7152, 0.0722]))
        assert 1.05 / (luminance + 0.05) >= 4.5, colour


def test_a_buffer_that_does_not_fit_its_shape_is_said_to_be_so() -> None:
    value = constant(np.zeros(4, np.int8))
    value.shape = (5,)
    assert "its buffer has 4" in tensor_json(value, "0:0:t0", Blobs())["why"]


def test_tensors_that_share_their_bytes_are_summed_up_once() -> None:
    blobs, first = Blobs(), constant(np.arange(60, dtype=np.int8), np.array([0.5]))
    other = constant(np.zeros(0, np.int8))
    other.shape, other.buffer = (6, 10), first.buffer
    another_type = constant(np.zeros(0, np.int8))
    another_type.dtype, another_type.shape = TensorType.UINT8, (60,)
    another_type.buffer = first.buffer
    found = [tensor_json(v, "0:0:t0", blobs) for v in (first, other, another_type)]
    assert [f["values"]["shape"] for f in found] == [[60], [6, 10], [60]]
    assert found[0]["contents"] is found[1]["contents"]
    assert found[0]["contents"] is not found[2]["contents"]
    assert found[0]["quantization"]["clipped"] == 0


def test_tensors_that_nobody_can_have_are_said_to_be_so() -> None:
    value = Value("x", TensorType.FLOAT32, (2**31 - 1,) * 100_000)
    facts = tensor_json(value, "0:0:t0", Blobs())
    assert facts["text"] == "100000 axes"


@pytest.mark.parametrize("dtype", NUMPY.values())
def test_arrays_reach_the_page_as_little_endian_bytes(dtype: np.dtype[np.generic]) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype.newbyteorder(">"))
    blobs = Blobs()
    spec = blobs.add(array)
    if tensor_type(dtype).name.startswith("COMPLEX"):
        assert spec is None
        return
    assert spec is not None
    raw = base64.b64decode(blobs.embedded()[str(spec["blob"])])
    found = np.frombuffer(raw, dtype.newbyteorder("<")).reshape(spec["shape"])
    np.testing.assert_array_equal(found, array)
    assert (spec["type"], spec["bytes"]) == (dtype.str[1:], array.nbytes)


def test_a_file_holds_arrays_up_to_its_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blobs_module, "MOST_BYTES", 100)
    monkeypatch.setattr(blobs_module, "MOST_TOTAL", 150)
    blobs = Blobs()
    for size in (100, 101, 60, 50):
        blobs.add(np.zeros(size, np.int8))
    assert set(blobs.embedded()) == {"0", "3"}
    assert set(blobs.embedded(100)) == {"0", "2", "3"}, "who asks for arrays gets all of them"


def test_an_array_that_there_is_not_is_refused() -> None:
    with pytest.raises(IndexError, match="there is no array 0"):
        Blobs().content(0)


def test_names_are_one_line_and_never_empty() -> None:
    for name in HOSTILE:
        shown = shown_name(name)
        assert shown.isprintable()
        assert 0 < len(shown) < 450
        shown.encode()
    assert shown_name("") == "(no name)"
    assert "\\u202e" in shown_name(HOSTILE[4])


def test_texts_are_cut_off_where_they_would_not_fit() -> None:
    assert fitted("abc", 100) == "abc"
    assert fitted("i" * 10**7, 60) == fitted("i" * 50, 60)
    cut = fitted("a long text that goes on", 60)
    assert cut.endswith("…")
    assert width_of(cut) <= 60
    assert width_of("W" * 10) > width_of("i" * 10)
    assert width_of("漢字") > width_of("ab")


def test_numbers_have_six_digits_and_are_finite() -> None:
    assert rounded(1 / 3) == 0.333333
    assert rounded(float("nan")) is None
    assert rounded(float("inf")) is None
