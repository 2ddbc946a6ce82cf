"""Blocks of 32 numbers that share a power of two: MXFP4 and MXINT8."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from luciole import Interpreter, load
from luciole.drawing.tensors import quantization_json
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import Array, Graph, LucioleError, Model, TensorType, Value
from luciole.ir.microscaling import in_blocks
from luciole.ir.ops.quantize import Dequantize, Quantize
from luciole.schema.tables import MXQuantization, QuantizationParameters
from tests.support import data_path

FP4, INT8 = TensorType.MXFP4, TensorType.MXINT8


def rows(*shape: int) -> Array:
    rng = np.random.default_rng(sum(shape))
    return (rng.normal(size=shape) * 2.0 ** rng.integers(-9, 9, (*shape[:-1], 1))).astype(
        np.float32
    )


def by_ml_dtypes(x: Array) -> Array:
    """The same of whole rows of 32 by another library's element type."""
    scale = 2.0 ** (np.floor(np.log2(np.abs(x).max(-1, keepdims=True))) - 2)
    small: Array = (x / scale).astype(ml_dtypes.float4_e2m1fn).astype(np.float32)
    return np.asarray(small * scale)


def test_small_floats_are_those_of_another_library() -> None:
    x = rows(50, 32)
    x[0, :8] = [6, 5, 4.5, 2.5, 1.75, 0.75, 0.25, -5]  # halves
    x[0, 8:] = 0
    np.testing.assert_array_equal(in_blocks(x, FP4, -1), by_ml_dtypes(x))


def test_integers_are_steps_of_the_shared_scale() -> None:
    x = rows(20, 32)
    step = 2.0 ** (np.floor(np.log2(np.abs(x).max(-1, keepdims=True))) - 6)
    np.testing.assert_array_equal(
        in_blocks(x, INT8, 1), np.clip(np.rint(x / step), -127, 127) * step
    )


@pytest.mark.parametrize("dtype", [FP4, INT8])
def test_blocks_lie_along_the_axis_and_the_last_may_be_short(dtype: TensorType) -> None:
    x = rows(3, 70, 2)
    found = in_blocks(x, dtype, 1)
    for first in (0, 32, 64):
        part = x[:, first : first + 32]
        np.testing.assert_array_equal(found[:, first : first + 32], in_blocks(part, dtype, -2))
    np.testing.assert_array_equal(in_blocks(found, dtype, 1), found)


def test_zeros_stay_and_what_is_not_finite_spoils_its_block_only() -> None:
    x = np.ones((2, 64), np.float32)
    x[0, 3], x[1] = np.inf, 0
    found = in_blocks(x, FP4, 1)
    assert np.isnan(found[0, :32]).all()
    np.testing.assert_array_equal(found[0, 32:], 1)
    np.testing.assert_array_equal(found[1], 0)


def test_in_blocks_refuses_an_axis_that_is_not_there() -> None:
    with pytest.raises(LucioleError, match="blocks are along axis 2, there are 2 axes"):
        in_blocks(rows(2, 32), FP4, 2)


def run(model: Model, *arrays: Array) -> Array:
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def test_a_model_from_one_runs_on_rounded_numbers() -> None:
    model = load(data_path("foreign/mxfp4.recipe"))
    x, y = rows(1, 1, 32, 32), rows(1, 1, 32, 33)[..., :32]
    product = in_blocks(x, FP4, -1) @ in_blocks(y, FP4, -2)
    np.testing.assert_allclose(run(model, x, y), in_blocks(product, FP4, -1), rtol=1e-5)


@pytest.mark.parametrize("dtype", [FP4, INT8])
def test_models_are_written_as_they_were(dtype: TensorType) -> None:
    model = Model()
    graph = model.add_graph(Graph("main"))
    middle = graph.add_value(Value("middle", dtype, (4, 64)))
    middle.quantization = QuantizationParameters(details=MXQuantization(axis=-1))
    graph.append(Quantize(graph.add_input("x", (4, 64))), results=[middle])
    graph.append(Dequantize(middle), "y")
    graph.outputs = [graph.ops[1].output]
    again = from_bytes(to_bytes(model))
    x = rows(4, 64)
    np.testing.assert_array_equal(run(again, x), in_blocks(x, dtype, -1))
    assert to_bytes(again) == to_bytes(model)
    facts = quantization_json(again.graph.values[0], None)
    assert facts is not None
    assert facts["words"].endswith("32 numbers along axis -1 share a power of two")
