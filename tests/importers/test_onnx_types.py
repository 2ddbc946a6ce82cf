"""ONNX's element types that circle lacks: their numbers are held in wider ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import luciole
from luciole.importers.onnx.model import from_proto
from luciole.ir import Array, UnsupportedError
from luciole.ir.errors import FormatError

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
helper, Types = onnx.helper, onnx.TensorProto
NUMBERS = np.linspace(-1.5, 1.5, 12, dtype=np.float32).reshape(3, 4)
FLOATS = ("BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ")
INTEGERS = ("INT4", "UINT4", "INT2", "UINT2")


def held(kind: str) -> Any:
    """A constant of a type; integers are 0 and 1, which all of them have."""
    numbers = NUMBERS if kind in FLOATS else (NUMBERS > 0).astype(np.float32)
    return helper.make_tensor("w", getattr(Types, kind), NUMBERS.shape, numbers.reshape(-1))


def network(nodes: list[Any], output: int, *tensors: Any) -> Any:
    """A model of one input, x, and the output y of an element type."""
    x = helper.make_tensor_value_info("x", Types.FLOAT, (3, 4))
    y = helper.make_tensor_value_info("y", output, None)
    graph = helper.make_graph(nodes, "g", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)


def sums(kind: str) -> Any:
    """x + w, of weights that are cast."""
    nodes = [
        helper.make_node("Cast", ["w"], ["f"], to=Types.FLOAT),
        helper.make_node("Add", ["x", "f"], ["y"]),
    ]
    return network(nodes, Types.FLOAT, held(kind))


def answer(model: Any) -> Array:
    """Run a model in onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    (result,) = session.run(None, {"x": NUMBERS})
    return np.asarray(result)


@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS])
def test_constants_of_few_bits_have_the_numbers_of_onnxruntime(kind: str) -> None:
    model = sums(kind)
    result = luciole.Interpreter(from_proto(model)).run({"x": NUMBERS})["y"]
    np.testing.assert_array_equal(result, answer(model))


@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "FLOAT8E5M2"])
def test_weights_of_float8_are_dequantized(kind: str) -> None:
    scale = helper.make_tensor("s", Types.FLOAT, (), [0.25])
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["f"]),
        helper.make_node("Mul", ["x", "f"], ["y"]),
    ]
    model = network(nodes, Types.FLOAT, held(kind), scale)
    result = luciole.Interpreter(from_proto(model)).run({"x": NUMBERS})["y"]
    np.testing.assert_array_equal(result, answer(model))


def test_bfloat16_is_read_from_other_files(tmp_path: Path) -> None:
    tensor, path = held("BFLOAT16"), tmp_path / "m.onnx"
    tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor), "w"))
    model = network(list(sums("BFLOAT16").graph.node), Types.FLOAT, tensor)
    expected = answer(model)
    onnx.save(model, path, save_as_external_data=True, location="m.bin", size_threshold=0)
    result = luciole.Interpreter(luciole.load(path)).run({"x": NUMBERS})["y"]
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("kind", ["BFLOAT16", "FLOAT8E5M2", "FLOAT4E2M1", "INT2"])
def test_constants_of_few_bits_refuse_another_length(kind: str) -> None:
    model = sums(kind)
    tensor = model.graph.initializer[0]
    tensor.ClearField("int32_data")
    tensor.raw_data = bytes(5)
    with pytest.raises(FormatError, match="holds 5, not"):
        from_proto(model)


@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "INT4", "UINT2"])
def test_casts_to_types_of_few_bits_are_refused(kind: str) -> None:
    like = network([helper.make_node("CastLike", ["x", "w"], ["y"])], Types.FLOAT, held(kind))
    cast = helper.make_node("Cast", ["x"], ["y"], to=getattr(Types, kind))
    for model in (like, network([cast], getattr(Types, kind))):
        with pytest.raises(UnsupportedError, match=r"not computed|no element type"):
            from_proto(model)


@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "INT4", "UINT2"])
def test_quantizing_to_types_of_few_bits_is_refused(kind: str) -> None:
    scale = helper.make_tensor("s", Types.FLOAT, (), [0.25])
    node = helper.make_node("QuantizeLinear", ["x", "s"], ["y"], output_dtype=getattr(Types, kind))
    with pytest.raises(UnsupportedError, match=r"no element type|not quantized to"):
        from_proto(network([node], getattr(Types, kind), scale))
