"""Other quantizers of the same network on the same records: TFLite's converter, and AI Edge
Quantizer where it is installed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from luciole.exporters import save, to_bytes
from luciole.ir import Array, Model
from luciole.ir.graph import Signature

CONVERTER, AI_EDGE, ORT = "TFLite converter", "AI Edge Quantizer", "onnxruntime"
_PACKAGES = {
    CONVERTER: ("tensorflow", "tensorflow-cpu"),
    AI_EDGE: ("ai_edge_quantizer", "ai-edge-quantizer"),
    ORT: ("onnxruntime", "onnxruntime"),
}
_LAYERS = ("CONV_2D", "FULLY_CONNECTED")


def missing(maker: str) -> str:
    """Say why a maker cannot be asked here, nothing where it can."""
    package, name = _PACKAGES[maker]
    return "" if find_spec(package) else f"{maker} is not installed: pip install {name}"


def converter(model: Model, records: Array, *, channels: bool = True) -> bytes:
    """Quantize to INT8 by the converter's own passes, from a float file."""
    calibrator = import_module("tensorflow.lite.python.optimize.calibrator")
    convert = import_module("tensorflow.lite.python.convert")
    types = import_module("tensorflow.compiler.mlir.lite.types_pb2")
    dtypes = import_module("tensorflow.python.framework.dtypes")
    found = calibrator.Calibrator(to_bytes(model, "tflite"))
    calibrated = found.calibrate(lambda: ([x[None]] for x in records))
    made: bytes = convert.mlir_quantize(
        calibrated,
        disable_per_channel=not channels,
        fully_quantize=True,
        inference_type=types.QUANTIZED_INT8,
        input_data_type=dtypes.float32,
        output_data_type=dtypes.float32,
    )
    return made


def ai_edge(model: Model, records: Array, recipe: list[dict[str, Any]]) -> bytes:
    """Quantize by AI Edge Quantizer, which needs a file with a signature."""
    quantizer = import_module("ai_edge_quantizer.quantizer")
    signed = model.clone()
    if not signed.signatures:
        ends = ([("x", signed.graph.inputs[0])], [("y", signed.graph.outputs[0])])
        signed.signatures.append(Signature("serving_default", signed.graph, *ends))
    signature = signed.signatures[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "float.tflite"
        save(signed, path)
        found = quantizer.Quantizer(str(path))
        found.load_quantization_recipe(recipe)
        data = {signature.key: [{signature.inputs[0][0]: x[None]} for x in records]}
        known = (found.calibrate(data),) if found.need_calibration else ()
        return bytes(found.quantize(*known).quantized_model)


def static(bits: int = 8, activations: int = 8, granularity: str = "CHANNELWISE") -> list[Any]:
    """Write AI Edge Quantizer's recipe for integers everywhere; weights of fewer bits by its best
    algorithm for them.
    """
    between = {"num_bits": activations, "symmetric": activations == 16, "dtype": "INT"}
    config = {"activation_tensor_config": {**between, "granularity": "TENSORWISE"}}
    rules = [_rule("*", 8, granularity, config)]
    few = [_rule(op, bits, granularity, config, "OCTAV") for op in _LAYERS if bits < 8]
    return rules + few


def dynamic() -> list[Any]:
    """Write AI Edge Quantizer's recipe for integers in the weights alone."""
    return [_rule("*", 8, "CHANNELWISE", {})]


def _rule(
    operator: str,
    bits: int,
    granularity: str,
    config: Mapping[str, Any],
    algorithm: str = "min_max_uniform_quantize",
) -> dict[str, Any]:
    weights = {"num_bits": bits, "symmetric": True, "granularity": granularity, "dtype": "INT"}
    whole = {
        **config,
        "weight_tensor_config": weights,
        "compute_precision": "INTEGER",
        "explicit_dequantize": False,
        "skip_checks": False,
        "min_weight_elements": 0,
    }
    rule = {"regex": ".*", "operation": operator, "algorithm_key": algorithm}
    return {**rule, "op_config": whole}
