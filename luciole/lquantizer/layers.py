"""Find the layers of a model that can get learned levels, and say why the others cannot."""

from __future__ import annotations

from dataclasses import dataclass

from luciole.ir import Array, Graph, Op, TensorType, Value
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer.recipe import Choice, Recipe
from luciole.schema.enums import ActivationFunctionType, FullyConnectedOptionsWeightsFormat

_ACTIVATIONS = {
    ActivationFunctionType.NONE,
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU_N1_TO_1,
    ActivationFunctionType.RELU6,
    ActivationFunctionType.TANH,
}


@dataclass(frozen=True)
class Layer:
    """A layer that qualifies: its operator and what was chosen for it."""

    op: FullyConnected
    choice: Choice

    @property
    def name(self) -> str:
        """The name of its result."""
        return self.op.name

    @property
    def weights(self) -> Array:
        """Its float weights [o, n]."""
        data = self.op.weights.data
        assert data is not None, "a layer that qualifies has constant weights"
        return data


def find_layers(graph: Graph, recipe: Recipe) -> tuple[list[Layer], dict[str, str]]:
    """The layers to quantize, in execution order, and by name the reason for each that is left
    alone.
    """
    layers: list[Layer] = []
    skipped: dict[str, str] = {}
    for op in graph.ops:
        if op.quant is None:
            continue
        choice = recipe.choose(op.name)
        reason = "skipped by the recipe" if choice.skip else unfit(op)
        if reason is not None or not isinstance(op, FullyConnected):
            skipped[op.name] = reason or f"{op.kind} has no learned form"
        else:
            layers.append(Layer(op, choice))
    return layers, skipped


def unfit(op: Op) -> str | None:
    """Why an operator cannot be quantized, None when it can."""
    if not isinstance(op, FullyConnected):
        return f"{op.kind} has no learned form"
    if op.input.dtype != TensorType.FLOAT32 or op.weights.dtype != TensorType.FLOAT32:
        return f"it is {op.input.dtype.name} x {op.weights.dtype.name}, FLOAT32 is needed"
    if op.weights.data is None:
        return "its weights are computed, not constant"
    if op.bias is not None and (op.bias.data is None or op.bias.dtype != TensorType.FLOAT32):
        return "its bias is not a FLOAT32 constant"
    if op.input.is_constant:
        return "its input is constant"
    if op.weights_format != FullyConnectedOptionsWeightsFormat.DEFAULT:
        return f"its weights are stored as {op.weights_format.name}"
    if op.activation not in _ACTIVATIONS:
        return f"its fused activation {op.activation.name} has no kernel"
    return None


def constant_bytes(op: Op) -> int:
    """Bytes of an operator's constant operands."""
    buffers = {
        id(v.buffer): v.buffer for v in op.operands if isinstance(v, Value) and v.is_constant
    }
    return sum(len(b) for b in buffers.values() if b is not None)
