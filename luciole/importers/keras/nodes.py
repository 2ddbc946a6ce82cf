"""List the layers of a Keras model as the nodes that operators came from."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeGuard

from luciole.ir import Graph
from luciole.ir.analysis.origins import SourceNode
from luciole.ir.names import parts_of


class Layer(Protocol):
    """A layer as Keras has it, with the tensors that it was called with."""

    name: str
    _inbound_nodes: Sequence[_Call]


class KerasModel(Layer, Protocol):
    """A model, which is a layer of others; one of a user's own class has no outputs."""

    layers: Sequence[Layer]
    outputs: Sequence[_Tensor]


class _Call(Protocol):
    input_tensors: Sequence[_Tensor]


class _Tensor(Protocol):
    _keras_history: _History


class _History(Protocol):
    operation: Layer
    tensor_index: int


def layer_nodes(graph: Graph, keras_model: KerasModel) -> list[SourceNode]:
    """List layers in their order, without inputs and models around others. A tensor is a result of
    the last layer that its name has a part of; a layer without a tensor has its own name there.
    """
    layers = {layer.name: layer for layer in _layers(keras_model)}
    results: dict[str, list[str]] = {name: [name] for name in layers}
    places = {name: place for place, name in enumerate(layers)}
    for value in (value for op in graph.ops for value in op.results):
        owners = [part for part in parts_of(value.name) if part in layers]
        if owners:
            results[max(owners, key=places.__getitem__)].append(value.name)
    return [
        SourceNode(_kind(layer), name, tuple(_sources(layer, results)), tuple(results[name]))
        for name, layer in layers.items()
    ]


def _layers(keras_model: KerasModel) -> Iterator[Layer]:
    """Yield layers, of models within the model those that are inside."""
    for layer in keras_model.layers:
        if _is_model(layer):
            yield from _layers(layer)
        elif _kind(layer) != "InputLayer":
            yield layer


def _sources(layer: Layer, results: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the last results of the layers that a layer reads."""
    for call in layer._inbound_nodes:
        for tensor in call.input_tensors:
            name = _maker(tensor).name
            if name in results:
                yield results[name][-1]


def _maker(tensor: _Tensor) -> Layer:
    """Return the layer that computes a tensor, inside of models that say how they compute it."""
    history = tensor._keras_history
    while _is_model(history.operation) and hasattr(history.operation, "outputs"):
        history = history.operation.outputs[history.tensor_index]._keras_history
    return history.operation


def _is_model(layer: Layer) -> TypeGuard[KerasModel]:
    return isinstance(layer, sys.modules["keras"].Model)


def _kind(layer: Layer) -> str:
    return type(layer).__name__
