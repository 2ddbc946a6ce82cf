"""QUANTIZE and DEQUANTIZE: numbers against LiteRT."""

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.interpreter import Interpreter, compile_graph
from luciole.ir import Array, Graph, LucioleError, Model, TensorType, UnsupportedError, dtypes
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.kernels.core import evaluation
from luciole.schema.tables import QuantizationParameters
from tests.ops.quantize_support import CHANNELS, NUMPY, TYPES, model, scales
from tests.support import Affine, litert, one_op, run_litert, run_reference

pytestmark = pytest.mark.filterwarnings("error")


def both(made: Model, x: Array) -> tuple[Array, Array]:
    """The result here and in LiteRT."""
    op = made.graph.ops[0]
    assert op.result_dtypes() == (op.output.dtype,)
    return evaluation.computed(op, [x])[0], litert(to_bytes(made, "tflite"), [x])[0]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("scale", [0.0371, 1.0, 3e-6])
def test_quantized_numbers_are_those_of_litert(dtype: TensorType, scale: float) -> None:
    zero_point = {TensorType.INT8: -7, TensorType.UINT8: 131, TensorType.INT16: 0}[dtype]
    x = (np.random.default_rng(5).normal(0, 60, (5, 7, 31)) * scale).astype(np.float32)
    halves = np.array(
        [0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, 0.49999997, -0.49999997, 1e9, -1e9], np.float32
    )
    for values in (x, halves * np.array(scale, np.float32), x[:0], x[0, 0, 0]):
        ours, theirs = both(model(Quantize, values, dtype, scales([scale], [zero_point])), values)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_channels_are_quantized_like_in_litert(dtype: TensorType, axis: int) -> None:
    x = np.random.default_rng(5).normal(0, 9, (3, 3, 3)).astype(np.float32)
    points = [0, 0, 0] if dtype != TensorType.UINT8 else [128, 128, 128]
    ours, theirs = both(model(Quantize, x, dtype, scales(CHANNELS, points, axis)), x)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", TYPES)
def test_too_large_numbers_saturate_and_nan_is_the_lowest(dtype: TensorType) -> None:
    x = np.array([1e20, -1e20, np.inf, -np.inf, 3e38, np.nan], np.float32)
    op = model(Quantize, x, dtype, scales([1e-3], None)).graph.ops[0]
    low, high = np.iinfo(NUMPY[dtype]).min, np.iinfo(NUMPY[dtype]).max
    result = evaluation.computed(op, [x])[0]
    np.testing.assert_array_equal(result, np.array([high, low, high, low, high, low]))


@pytest.mark.parametrize("dtype", TYPES)
def test_dequantized_numbers_are_those_of_litert(dtype: TensorType) -> None:
    limits = np.iinfo(NUMPY[dtype])
    q = np.arange(limits.min, limits.max + 1, dtype=NUMPY[dtype]).reshape(2, -1)
    for zero_point in (0,) if dtype == TensorType.INT16 else (0, 5):
        ours, theirs = both(model(Dequantize, q, dtype, scales([0.0371], [zero_point])), q)
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", [TensorType.INT8, TensorType.UINT8])
def test_channels_are_dequantized_like_in_litert(dtype: TensorType) -> None:
    q = np.random.default_rng(5).integers(0, 100, (2, 3, 4)).astype(NUMPY[dtype])
    ours, theirs = both(model(Dequantize, q, dtype, scales(CHANNELS, [0, 3, 7], 1)), q)
    np.testing.assert_array_equal(ours, theirs)


def test_half_precision_is_that_of_litert() -> None:
    x = np.array([0, -0.0, 1, 65504, 6e-8, np.inf, -np.inf, np.nan], np.float16)
    np.testing.assert_array_equal(run_reference(Dequantize, [x])[0], run_litert(Dequantize, [x])[0])


def test_the_result_is_int8_until_there_is_one() -> None:
    assert Quantize(Graph().add_input("x", (2,))).result_dtypes() == (TensorType.INT8,)


BAD = (
    (scales(None), "has no scale; one, or one per channel, is needed"),
    (scales([]), "has no scale; one, or one per channel, is needed"),
    (scales([1.0, 0.0, 1.0]), "has scales 0.0 to 1.0; they must be positive and finite"),
    (scales([np.inf]), "they must be positive and finite"),
    (scales([np.nan]), "they must be positive and finite"),
    (scales([1, 2, 3], [1, 2]), "has 2 zero points, 3 scales; one each is needed"),
    (scales([1, 2, 3], [0], 2), "has its scales along axis 2; it has 2 axes"),
    (scales([1, 2, 3], [0], -1), "has its scales along axis -1; it has 2 axes"),
    (scales([1, 2, 3], [0], 1), r"\[3,2\] has 3 scales along axis 1; 1 or 2 fit"),
)


@pytest.mark.parametrize(("parameters", "sentence"), BAD)
def test_quantize_refuses_parameters_that_do_not_fit(
    parameters: QuantizationParameters, sentence: str
) -> None:
    x = np.ones((3, 2), np.float32)
    op = model(Quantize, x, TensorType.INT8, parameters).graph.ops[0]
    with pytest.raises(LucioleError, match=f"Quantize 'integer': the result .*{sentence}"):
        evaluation.computed(op, [x])


@pytest.mark.parametrize(("parameters", "sentence"), [*BAD[:2], *BAD[3:]])
def test_dequantize_refuses_parameters_that_do_not_fit(
    parameters: QuantizationParameters, sentence: str
) -> None:
    q = np.ones((3, 2), np.int8)
    op = model(Dequantize, q, TensorType.INT8, parameters).graph.ops[0]
    with pytest.raises(LucioleError, match=f"Dequantize 'real': the input .*{sentence}"):
        evaluation.computed(op, [q])


@pytest.mark.parametrize("given", [[0.0], [1.0, 0.0, 1.0]])
def test_what_has_a_scale_of_0_is_0_as_in_litert(given: list[float]) -> None:
    q = np.array([[1, 2], [3, 4], [-5, 6]], np.int8)
    made = model(Dequantize, q, TensorType.INT8, scales(given, [0] * len(given)))
    (theirs,) = litert(to_bytes(made, "tflite"), [q])
    (ours,) = Interpreter(made).run(q).values()
    np.testing.assert_array_equal(ours, theirs, strict=True)
    np.testing.assert_array_equal(ours, q * np.array(given, np.float32)[:, None])


def test_quantize_refuses_channels_that_do_not_fit_what_arrives() -> None:
    x = np.ones((3, 2), np.float32)
    op = model(Quantize, x, TensorType.INT8, scales(CHANNELS)).graph.ops[0]
    op.output.shape = (None, 2)
    with pytest.raises(LucioleError, match=r"3 scales do not fit the axes \[1, 2\]"):
        evaluation.computed(op, [x[:1]])


def test_quantize_refuses_types_that_have_no_kernel() -> None:
    x = np.ones((3, 2), np.float32)
    op = model(Quantize, x, TensorType.INT32, scales([1])).graph.ops[0]
    with pytest.raises(
        UnsupportedError, match="no quantization to INT32; there is INT8, UINT8, INT16"
    ):
        evaluation.computed(op, [x])
    with pytest.raises(UnsupportedError, match="no kernel for FLOAT64; there is FLOAT32"):
        run_reference(Quantize, [x.astype(np.float64)])
    op = requantizing(x.astype(np.int8), 0, Affine(0.1, 0, 0, TensorType.INT64)).graph.ops[0]
    with pytest.raises(UnsupportedError, match="no quantization of integers to INT64; there is"):
        evaluation.computed(op, [x.astype(np.int8)])


def requantizing(x: Array, zero_point: int, result: Affine) -> Model:
    return one_op(Quantize, [x], affine=[Affine(0.05, zero_point)], results=[result])


SMALL = (TensorType.INT8, TensorType.UINT8)
WIDER = (TensorType.INT16, TensorType.INT32)
PAIRS = [
    *((a, b) for a in SMALL for b in SMALL),
    *((TensorType.INT16, b) for b in (TensorType.INT8, *WIDER)),
    *((TensorType.INT32, b) for b in (TensorType.INT8, TensorType.INT16)),
]


@pytest.mark.parametrize("scale", [0.05, 0.021, 0.3])
@pytest.mark.parametrize(("given", "to"), PAIRS)
def test_integers_on_another_grid_are_those_of_litert(
    given: TensorType, to: TensorType, scale: float
) -> None:
    wide = 2**15 if given in WIDER else 2**8
    first = -(wide // 2) * (3 if given == TensorType.INT32 else given != TensorType.UINT8)
    x = np.arange(first, first + wide * (3 if given == TensorType.INT32 else 1), dtype=np.int64)
    x = x.astype(dtypes.NUMPY[given])
    points = {TensorType.INT8: -20, TensorType.UINT8: 117}
    made = requantizing(x, points.get(given, 0), Affine(scale, points.get(to, 0), 0, to))
    op = made.graph.ops[0]
    ours = evaluation.computed(op, [x])[0]
    np.testing.assert_array_equal(ours, litert(to_bytes(made, "tflite"), [x])[0], strict=True)


@pytest.mark.parametrize("dtype", [TensorType.INT4, TensorType.UINT4, TensorType.INT2])
@pytest.mark.parametrize("channels", [False, True])
def test_packed_integers_are_dequantized(dtype: TensorType, channels: bool) -> None:
    low, high = dtypes.integer_range(dtype) or (0, 0)
    q = np.random.default_rng(1).integers(low, high + 1, (3, 5)).astype(dtypes.PACKED[dtype][1])
    point = 0 if channels else 1
    grid = Affine([0.1, 0.2, 0.7] if channels else 0.3, point, 0, dtype)
    made = one_op(Dequantize, [q], (0,), affine=[grid])
    scale = np.array(grid.scale, np.float32).reshape(-1, 1)
    plan = compile_graph(made.graph, {})
    found = plan.array(made.graph.outputs[0])
    np.testing.assert_array_equal(found, (q.astype(np.float32) - np.float32(point)) * scale)
