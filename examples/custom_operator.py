"""Compute a CUSTOM operator that only its maker knows by a Python function."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import luciole
from luciole.ir import Graph, Model, Value
from luciole.ir.unknown_op import UnknownOp
from luciole.schema.enums import BuiltinOperator, TensorType

Floats = NDArray[np.float32]


@luciole.custom_operator("Swish")
def swish(x: Floats) -> Floats:
    """Compute x sigmoid(x) of any shape."""
    scaled: Floats = x / (1 + np.exp(-x))
    return scaled


model = Model()
graph = model.add_graph(Graph("main"))
image = graph.add_input("image", (1, 4))
graph.outputs = [graph.add_value(Value("answer", TensorType.FLOAT32, (1, 4)))]
operator = UnknownOp(BuiltinOperator.CUSTOM, [image], custom_code="Swish")
graph.append(operator, results=graph.outputs)
luciole.save(model, "swish.tflite")
print(luciole.run("swish.tflite", np.array([[-1, 0, 1, 2]], np.float32))["answer"])
