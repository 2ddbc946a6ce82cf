"""QUANTIZE and its relatives between all types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from luciole.ir import Array, Graph, Model, Op, TensorType, Value
from luciole.ir.ops.quantize import Quantize
from luciole.schema.tables import QuantizationParameters

TYPES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
NUMPY: dict[TensorType, Any] = {
    TensorType.INT8: np.int8,
    TensorType.UINT8: np.uint8,
    TensorType.INT16: np.int16,
}


CHANNELS = (0.0371, 0.1, 2.5)


def scales(
    scale: Sequence[float] | None, zero_point: Sequence[int] | None = (0,), axis: int = 0
) -> QuantizationParameters:
    return QuantizationParameters(
        scale=None if scale is None else np.array(scale, np.float32),
        zero_point=None if zero_point is None else np.array(zero_point, np.int64),
        quantized_dimension=axis,
    )


def model(cls: type[Op], x: Array, dtype: TensorType, parameters: QuantizationParameters) -> Model:
    """One operator; the parameters and the type are those of its integer side."""
    graph = Model().add_graph(Graph("main"))
    real = graph.add_value(Value("real", TensorType.FLOAT32, x.shape))
    integer = graph.add_value(Value("integer", dtype, x.shape))
    integer.quantization = parameters
    source, result = (real, integer) if cls is Quantize else (integer, real)
    graph.inputs, graph.outputs = [source], [result]
    graph.append(cls(source), results=[result])
    assert graph.model is not None
    return graph.model
