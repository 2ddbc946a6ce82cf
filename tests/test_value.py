"""Tensors: shapes with open axes, contents, and types narrower than a byte."""

from __future__ import annotations

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import (
    Array,
    Buffer,
    Graph,
    GraphError,
    LucioleError,
    Model,
    Shape,
    TensorType,
    Value,
)
from luciole.ir.dtypes import NUMPY, PACKED, byte_count, limits_of, pack, tensor_type, unpack
from luciole.ir.ops.elementwise_unary import Abs
from luciole.ir.value import compatible, element_count, shape_text
from luciole.schema.tables import SparsityParameters
from tests.samples import octets
from tests.support import make_sparse

LIMITS = {TensorType.INT2: (-2, 1), TensorType.INT4: (-8, 7), TensorType.UINT4: (0, 15)}


@pytest.mark.parametrize(
    ("shape", "dims", "signature"),
    [
        ((), (), None),
        ((2, 0), (2, 0), None),
        ((None, 3), (1, 3), (-1, 3)),
        ((None,), (1,), (-1,)),
        ((np.int64(2), None), (2, 1), (2, -1)),
    ],
)
def test_shapes_and_their_two_halves(
    shape: Shape, dims: tuple[int, ...], signature: tuple[int, ...] | None
) -> None:
    value = Value("x", TensorType.FLOAT32, shape)
    assert (value.dims, value.shape_signature) == (dims, signature)
    assert value.shape == shape
    assert all(type(n) is int for n in value.dims)


def test_open_axes_keep_the_extents_of_the_file() -> None:
    value = Value("x", TensorType.FLOAT32)
    for signature, shape in (((-1, 4), (None, 4)), ((5, 4), (5, 4)), (None, (5, 4))):
        value.dims, value.shape_signature = (5, 4), signature
        assert value.shape == shape


@pytest.mark.parametrize(
    ("signature", "shape"),
    [((-1, 7), (None, 4)), ((-9, -1), (None, None)), ((-1,), (5, 4)), ((5, 4, 3), (5, 4))],
)
def test_a_signature_that_contradicts_gives_no_extent(signature: Shape, shape: Shape) -> None:
    value = Value("x", TensorType.FLOAT32, (5, 4))
    value.shape_signature = tuple(n or 0 for n in signature)
    assert value.shape == shape


def test_contents_have_their_extents_whatever_the_signature_says() -> None:
    graph = Graph()
    constant, variable, empty, sparse, x = (
        graph.add_value(Value(name, TensorType.INT8, (2, 3))) for name in "cvesx"
    )
    constant.buffer = x.buffer = Buffer(octets(*range(6)))
    variable.is_variable, empty.dims, sparse.sparsity = True, (0, 3), SparsityParameters()
    graph.inputs.append(x)
    for value in graph.values:
        value.shape_signature = (-1, -1)
    assert [v.shape for v in graph.values] == [(2, 3), (2, 3), (0, 3), (2, 3), (None, None)]
    assert [v.is_constant for v in graph.values] == [True, False, True, True, False]
    assert [v.shape for v in graph.clone()[0].values] == [v.shape for v in graph.values]


def test_a_signature_is_written_as_it_was_read() -> None:
    model = Model()
    graph = model.add_graph(Graph())
    graph.outputs = [graph.add_constant("c", np.arange(4))]
    graph.outputs[0].shape_signature = (-1,)
    again = from_bytes(to_bytes(model)).graph.outputs[0]
    assert (again.dims, again.shape_signature, again.shape) == ((4,), (-1,), (4,))


def test_open_axes_survive_a_file() -> None:
    model = Model()
    graph = model.add_graph(Graph())
    graph.add_input("x", (None, 4))
    graph.outputs = [graph.append(Abs(graph.inputs[0]), "y").output]
    again = from_bytes(to_bytes(model)).graph
    assert [v.shape for v in again.values] == [(None, 4), (None, 4)]


def test_texts_of_shapes() -> None:
    assert shape_text((1, None, 3)) == "[1,?,3]"
    assert shape_text(()) == "[]"
    assert repr(Value("x", TensorType.INT8, (None, 2))) == "<INT8 [?,2] 'x'>"


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ((1, 2), (1, 2), True),
        ((1, None), (1, 2), True),
        ((None, 2), (3, None), True),
        ((), (), True),
        ((1, 2), (1, 3), False),
        ((None,), (None, None), False),
    ],
)
def test_unknown_extents_fit_any(a: Shape, b: Shape, same: bool) -> None:
    assert compatible(a, b) is compatible(b, a) is same


def test_counts_are_exact_however_large() -> None:
    assert element_count(()) == 1
    assert element_count((2**40, 2**40)) == 2**80
    assert element_count((7, 0, 9)) == 0
    assert element_count((2**31 - 1,) * 32) == (2**31 - 1) ** 32
    assert element_count((1,) * 10**5 + (2,)) == 2


def test_absurd_counts_are_large_and_short() -> None:
    """Millions of extents have products of millions of digits."""
    assert 2**992 < element_count((2**31 - 1,) * 10**6) < 2**1100
    assert element_count((2**31 - 1,) * 10**6 + (0,)) == 0
    assert shape_text((1,) * 33) == "[33 axes]"


# --------------------------------------------------------------------------------- contents
def constant(array: Array, dtype: TensorType | None = None) -> Value:
    return Graph().add_constant("c", array, dtype)


@pytest.mark.parametrize(
    "dtype", sorted(NUMPY.keys() - {TensorType.RESOURCE}), ids=lambda t: t.name
)
def test_contents_come_back(dtype: TensorType) -> None:
    array = np.arange(6).astype(NUMPY[dtype]).reshape(2, 3)
    value = constant(array)
    assert (value.dtype, value.shape, value.is_constant) == (dtype, (2, 3), True)
    assert value.data is not None
    assert value.data.dtype == array.dtype
    np.testing.assert_array_equal(value.data, array)


@pytest.mark.parametrize("array", [np.float32(3), np.zeros((0, 4), np.int8), np.arange(6)[::2]])
def test_contents_of_odd_layout_come_back(array: Array) -> None:
    value = constant(np.asarray(array))
    assert value.is_constant
    np.testing.assert_array_equal(value.data, array)


def test_contents_are_read_only_and_a_copy_of_what_was_given() -> None:
    array = np.arange(4, dtype=np.float32)
    value = constant(array)
    array[:] = 9
    assert value.data is not None
    assert value.data.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="read-only"):
        value.data[0] = 1
    assert array.flags.writeable


def test_contents_of_a_file_are_read_only() -> None:
    model = Model()
    graph = model.add_graph(Graph())
    graph.outputs = [graph.add_constant("c", np.arange(4))]
    value = from_bytes(to_bytes(model)).graph.values[0]
    assert value.data is not None
    with pytest.raises(ValueError, match="read-only"):
        value.data[0] = 1


def test_another_constant_brings_its_own_type_and_shape() -> None:
    value = constant(np.zeros((2, 2), np.float32))
    old = value.buffer
    value.make_constant(np.ones(3, np.int8))
    assert (value.dtype, value.shape) == (TensorType.INT8, (3,))
    assert value.buffer is not old
    assert value.data is not None
    assert value.data.tolist() == [1, 1, 1]


@pytest.mark.parametrize("shared", [False, True])
def test_new_contents_take_the_place_of_the_old_ones_in_the_file(shared: bool) -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    value = graph.add_constant("w", np.zeros(1000, np.float32))
    if shared:
        graph.add_value(value.clone())
    graph.outputs = [graph.append(Abs(value), "y").output]
    model = from_bytes(to_bytes(model))
    before = to_bytes(model)
    model.graph.values[0].set_data(np.ones(1000, np.float32))
    after = to_bytes(model)
    grown = len(after) - len(before)
    assert 4000 < grown < 4100 if shared else grown == 0
    found = [v.data for v in from_bytes(after).graph.values if v.is_constant]
    assert [int(data[0]) for data in found if data is not None] == ([1, 0] if shared else [1])


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.zeros((3, 2), np.float32), r"'c' is FLOAT32 \[2,3\] .*, given was float32 \[3,2\]"),
        (np.zeros(6, np.float32), r"given was float32 \[6\]: make_constant takes another type"),
        (np.zeros((2, 3)), r"'c' is FLOAT32 \[2,3\] \(float32 in NumPy\), given was float64"),
    ],
)
def test_a_constant_refuses_contents_of_another_type_or_shape(array: Array, sentence: str) -> None:
    value = constant(np.ones((2, 3), np.float32))
    with pytest.raises(GraphError, match=sentence):
        value.set_data(array)
    assert value.data is not None
    assert value.data.tolist() == [[1] * 3] * 2


def test_codes_of_4_bits_are_given_as_they_are_read() -> None:
    value = constant(np.array([1, -8, 7], np.int8), TensorType.INT4)
    value.set_data(np.array([0, 1, -1], np.int8))
    assert value.data is not None
    assert value.data.tolist() == [0, 1, -1]
    with pytest.raises(ValueError, match="INT4 holds -8 to 7"):
        value.set_data(np.array([0, 1, 8], np.int8))


def test_contents_of_a_sparse_constant_are_dense() -> None:
    value = constant(np.zeros((2, 2), np.float32))
    make_sparse(value)
    value.set_data(np.eye(2, dtype=np.float32))
    assert value.sparsity is None
    assert value.data is not None
    assert value.data.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("method", ["set_data", "make_constant"])
def test_a_computed_tensor_and_an_input_refuse_contents(method: str) -> None:
    graph = Graph()
    x = graph.add_input("x", (1,))
    y = graph.append(Abs(x), "y").output
    with pytest.raises(GraphError, match="'y' is computed by Abs 'y': it takes no contents"):
        getattr(y, method)(np.zeros(1, np.float32))
    with pytest.raises(GraphError, match=r"'x' is an input, .*: it takes no contents"):
        getattr(x, method)(np.zeros(1, np.float32))


def test_a_tensor_refuses_contents_of_a_type_circle_does_not_have() -> None:
    with pytest.raises(TypeError, match="circle has no element type for"):
        tensor_type(np.dtype(np.clongdouble))
    with pytest.raises(GraphError, match="texts are bytes or str, found int"):
        constant(np.zeros(1, np.uint8), TensorType.STRING)


def test_a_tensor_refuses_to_show_a_buffer_that_does_not_fit() -> None:
    value = constant(np.zeros(4, np.float32))
    value.shape = (3,)
    with pytest.raises(GraphError, match=r"\[3\] of FLOAT32 takes 12 bytes, its buffer has 16"):
        _ = value.data


def test_what_is_no_constant_has_no_data() -> None:
    graph = Graph()
    x = graph.add_input("x", (1,))
    y = graph.append(Abs(x), "y").output
    variable, sparse, text = (graph.add_constant(n, np.zeros(1, np.float32)) for n in "vst")
    variable.is_variable = True
    sparse.sparsity = SparsityParameters()
    text.dtype = TensorType.STRING
    x.buffer = variable.buffer
    assert [v.data for v in (x, y, variable, sparse, text)] == [None] * 5
    assert [v.is_constant for v in (x, y, variable, sparse, text)] == [False] * 3 + [True] * 2


def test_an_axis_of_extent_0_makes_a_constant_without_a_buffer() -> None:
    graph = Graph()
    value = graph.add_value(Value("none", TensorType.INT32, (0,)))
    assert value.is_constant
    assert value.data is not None
    assert value.data.shape == (0,)
    assert not graph.add_value(Value("one", TensorType.INT32, (1,))).is_constant


def test_an_empty_buffer_is_a_buffer() -> None:
    assert (len(Buffer()), bool(Buffer())) == (0, True)
    assert len(Buffer(octets(1, 2))) == 2


# ------------------------------------------------------------------------- packed types
@pytest.mark.parametrize("dtype", PACKED, ids=lambda t: t.name)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 7, 8, 33])
def test_packed_contents_come_back(dtype: TensorType, count: int) -> None:
    low, high = LIMITS[dtype]
    array = np.random.default_rng(count).integers(low, high + 1, count).astype(PACKED[dtype][1])
    array[: min(count, 2)] = (low, high)[:count]
    value = constant(array, dtype)
    assert (value.dtype, value.shape) == (dtype, (count,))
    assert value.buffer is not None
    assert len(value.buffer) == byte_count(dtype, count) == -(-count * PACKED[dtype][0] // 8)
    assert value.data is not None
    assert value.data.dtype == PACKED[dtype][1]
    np.testing.assert_array_equal(value.data, array)


def test_the_first_value_is_in_the_low_bits() -> None:
    assert pack(np.array([1, -2, 7]), TensorType.INT4).tolist() == [0xE1, 0x07]
    assert pack(np.array([15, 3]), TensorType.UINT4).tolist() == [0x3F]
    assert pack(np.array([0, 1, -2, -1, 1]), TensorType.INT2).tolist() == [0b11100100, 1]
    four = unpack(octets(0xE1, 0x07), TensorType.INT4, (3, 1))
    assert four is not None
    assert four.tolist() == [[1], [-2], [7]]


@pytest.mark.parametrize("dtype", PACKED, ids=lambda t: t.name)
def test_packed_contents_survive_a_file(dtype: TensorType) -> None:
    low, high = LIMITS[dtype]
    array = np.arange(low, high + 1).astype(PACKED[dtype][1])[: 2 * (high - low + 1) // 3]
    model = Model()
    graph = model.add_graph(Graph())
    graph.outputs = [graph.add_constant("c", array, dtype)]
    for format in ("circle", "tflite"):
        value = from_bytes(to_bytes(model, format)).graph.values[0]
        assert value.dtype is dtype
        np.testing.assert_array_equal(value.data, array)


def test_byte_counts() -> None:
    assert byte_count(TensorType.FLOAT32, 3) == 12
    assert byte_count(TensorType.BOOL, 3) == 3
    assert byte_count(TensorType.COMPLEX128, 1) == 16
    assert byte_count(TensorType.STRING, 3) is None
    assert byte_count(TensorType.GGML_Q4_0, 32) is None


def test_contents_refuses_what_is_no_constant() -> None:
    constant = Graph("main").add_constant("c", octets(3))
    assert constant.contents.tolist() == octets(3).tolist()
    with pytest.raises(GraphError, match=r"^tensor 'x' is no constant with contents$"):
        _ = Value("x", TensorType.FLOAT32, (3,)).contents


def test_limits_of_refuses_what_are_no_integers() -> None:
    assert {dtype: limits_of(dtype) for dtype in LIMITS} == LIMITS
    with pytest.raises(LucioleError, match=r"^FLOAT32 is no type of integers$"):
        limits_of(TensorType.FLOAT32)
