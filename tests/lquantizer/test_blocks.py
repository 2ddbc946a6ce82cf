"""Weights of 4 bits with a scale for each block: learned, written for LiteRT, exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.interpreter.records import first_output
from luciole.ir import Array, Model, TensorType
from luciole.ir.analysis.weights import weight_constant
from luciole.ir.blockwise import stored_scales
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.assignment.format_of import word_of
from tests.compiler_support import built, close, needs_compiler, program_of
from tests.exporters.onnx_support import by_onnxruntime, ours, written
from tests.lquantizer.networks import images
from tests.networks import network, random
from tests.support import litert


def uneven(sizes: tuple[int, ...] = (128, 64, 64, 10)) -> Model:
    """Dense layers whose first inputs have far larger weights than others."""
    model = network(sizes)
    for op in model.graph.ops:
        if isinstance(op, FullyConnected):
            weights = op.weights.contents * np.float32(1)
            weights[:, :32] *= 8
            op.set_operand(1, model.graph.add_constant(f"{op.name}/uneven", weights))
    return model


def records(seed: int, count: int = 400) -> Array:
    """Inputs that depend on each other, as those of real networks do."""
    return random(seed, count, 24) @ random(1, 24, 128) / np.float32(5)


def lost(model: Model, whole: Model) -> float:
    """The mean squared error on records that nothing was learned from."""
    data = {"x": records(9, 60)}
    return float(np.square(first_output(model, data) - first_output(whole, data)).mean())


def formats(model: Model, scheme: str, **options: Any) -> list[str]:
    """The words of the layers' formats."""
    report = luciole.quantize(model, scheme=scheme, **options).report
    return [layer.format for layer in report.layers]


@pytest.mark.parametrize("block", [32, 64])
@pytest.mark.parametrize("data", [None, records(5)], ids=["alone", "with data"])
def test_blocks_lose_less_than_a_scale_for_each_output(block: int, data: Array | None) -> None:
    whole = uneven()
    plain = luciole.quantize(whole, data, scheme="weights4").model
    found = luciole.quantize(whole, data, scheme=f"weights:int4/{block}")
    assert [layer.format for layer in found.report.layers] == [f"weights:int4/{block}"] * 3
    assert lost(found.model, whole) < (0.6 if block == 32 else 0.8) * lost(plain, whole)


def test_data_bring_outputs_closer() -> None:
    whole = uneven()
    alone = luciole.quantize(whole, scheme="weights:int4/32").model
    learned = luciole.quantize(whole, records(5), scheme="weights:int4/32").model
    assert lost(learned, whole) < 0.8 * lost(alone, whole)


@pytest.mark.parametrize("block", [32, 64, 128])
def test_litert_multiplies_with_the_same_weights(block: int) -> None:
    """Its default kernels round inputs to 8 bits: these are integers from -128 to 127."""
    x = np.random.default_rng(2).integers(-128, 128, (1, 128)).astype(np.float32)
    x[0, :2] = -128, 127
    model = luciole.quantize(uneven((128, 64)), scheme=f"weights:int4/{block}").model
    (theirs,) = litert(to_bytes(model, "tflite"), [x], "AUTO")
    np.testing.assert_allclose(first_output(model, {"x": x}), theirs, rtol=1e-5, atol=1e-4)


def test_scales_are_what_half_precision_and_bfloat16_hold() -> None:
    model = luciole.quantize(uneven(), records(5, 100), scheme="weights:int4/32").model
    scales = [value for value in model.graph.values if value.name.endswith("/scales")]
    assert [value.dtype for value in scales] == [TensorType.FLOAT16] * 3
    for value in scales:
        numbers = value.contents.astype(np.float32)
        np.testing.assert_array_equal(numbers.astype(ml_dtypes.bfloat16), numbers)
        assert (numbers >= 2.0**-14).all()
    tried = np.array([1e-9, 0.0123456, 3.0, 1e9])
    np.testing.assert_allclose(stored_scales(tried), [2.0**-14, 0.0123456, 3, 2.0**15], rtol=2e-3)


def test_a_file_has_the_blocks_and_their_scales(tmp_path: Path) -> None:
    found = luciole.quantize(uneven(), scheme="weights:int4/32")
    luciole.save(found.model, tmp_path / "blocks.tflite")
    again = luciole.load(tmp_path / "blocks.tflite")
    layers = [op for op in again.graph.ops if isinstance(op, FullyConnected)]
    assert [word_of(op) for op in layers] == ["weights:int4/32"] * 3
    weights = 128 * 64 + 64 * 64 + 64 * 10
    stored = weights // 2 + weights // 32 * 2 + 4 * (64 + 64 + 10)
    assert sum(layer.bytes_after for layer in found.report.layers) == stored
    assert (tmp_path / "blocks.tflite").stat().st_size < stored + 3500


def test_layers_without_blocks_have_scales_of_outputs() -> None:
    """Rows that do not divide, convolutions, and weights too small for half precision."""
    tiny = network((128, 64, 48, 10))
    first = tiny.graph.ops[0]
    small = weight_constant(first)
    assert small is not None
    scaled = small.contents * np.float32(1e-3)
    first.set_operand(1, tiny.graph.add_constant("small", scaled))
    assert formats(tiny, "weights:int4/32") == ["weights:int4", "weights:int4/32", "weights:int4"]
    assert formats(images(), "weights:int4/32")[0] == "weights:int4"


@pytest.mark.parametrize("data", [None, records(5)], ids=["alone", "with data"])
def test_a_warning_names_the_layers_without_blocks(data: Array | None) -> None:
    model = network((128, 64, 48, 10))
    (warning,) = luciole.quantize(model, data, scheme="weights:int4/32").report.warnings
    assert warning.startswith("no blocks in fc3, but a scale for each output: a dense layer has")
    model = network((128, 64, 32, 10))
    assert luciole.quantize(model, data, scheme="weights:int4/32").report.warnings == []


def test_onnxruntime_computes_the_same() -> None:
    model, x = luciole.quantize(uneven(), scheme="weights:int4/32").model, random(4, 1, 128)
    (theirs,) = by_onnxruntime(written(model), [x])
    np.testing.assert_allclose(theirs, ours(model, [x])[0], rtol=0, atol=1e-5)


@needs_compiler
def test_c_computes_the_same(tmp_path: Path) -> None:
    model = luciole.quantize(uneven(), scheme="weights:int4/32").model
    given = {"x": random(4, 1, 128)}
    program = program_of(model)
    layers = [call.function for call in program.calls if "connected" in call.function]
    assert layers == ["luc_fully_connected_blocks_packed"] * 3
    weights = 128 * 64 + 64 * 64 + 64 * 10
    scales, rest = 4 * weights // 32, 4 * (64 + 64 + 10)
    assert program.table_bytes < weights // 2 + scales + rest + 400
    (found,) = built(program, tmp_path).run(given)
    close(found, first_output(model, given))


def blocks_recipe(**weights: Any) -> list[Any]:
    """A recipe of AI Edge Quantizer for dense layers."""
    tensor = {"num_bits": 4, "symmetric": True, "dtype": "INT", **weights}
    config = {"weight_tensor_config": tensor, "compute_precision": "INTEGER"}
    names = {"operation": "FULLY_CONNECTED", "algorithm_key": "min_max_uniform_quantize"}
    return [{"regex": ".*", **names, "op_config": config}]


@pytest.mark.parametrize("weights", [{"granularity": "BLOCKWISE_32"}, {"block_size": 32}])
def test_recipes_of_ai_edge_quantizer_give_its_codes(weights: dict[str, Any]) -> None:
    """Codes reach 7, scales are rounded to bfloat16 (``uniform_quantize_tensor.py``)."""
    whole = uneven((128, 64))
    real = whole.graph.ops[0].required(1).contents.reshape(64, 4, 32)
    model = luciole.quantize(whole, config=blocks_recipe(**weights)).model
    found = model.graph.ops[0].required(1)
    scales = (np.abs(real).max(-1) / np.float32(7)).astype(ml_dtypes.bfloat16).astype(np.float32)
    codes = np.clip(np.rint(real / scales[..., None]), -7, 7).reshape(64, 128)
    np.testing.assert_array_equal(found.contents, codes)
    assert found.block_tensors[0] is not None
    np.testing.assert_array_equal(found.block_tensors[0].contents, scales)


@pytest.mark.parametrize(
    "changes", [{"num_bits": 2}, {"num_bits": 8}, {"granularity": "BLOCKWISE_48"}]
)
def test_recipes_of_other_blocks_are_refused(changes: dict[str, Any]) -> None:
    weights = {"granularity": "BLOCKWISE_32", **changes}
    with pytest.raises(QuantizeError, match="there is no"):
        luciole.quantize(uneven(), config=blocks_recipe(**weights))
