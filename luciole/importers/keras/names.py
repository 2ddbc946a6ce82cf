"""Names of inputs, outputs and layers as the Keras model has them.

TensorFlow's converter calls an input ``serving_default_image:0``, an output
``StatefulPartitionedCall_1:0``, and what the layer ``hidden`` computes
``functional_1/hidden_1/MatMul``: the trace of a model gives each scope a number. A layer whose
activation is a layer of its own it calls ``functional_1/relu_1/Relu;functional_1/hidden_1/MatMul``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Any

from luciole.ir import Graph, Model, Value
from luciole.ir.names import layer_first

_PART = re.compile(r"[^/;]+")
_TRACE = "_1"
"""End of the scope of a model that is traced once; those of its layers have some number."""
_NUMBER = re.compile(r"_\d+$")
_UNNAMED = re.compile(r"output_\d+")
"""Names of outputs in a signature that only counts them."""


def name_as_keras(model: Model, keras_model: Any) -> None:
    """Give layers' tensors, inputs and outputs the names that they have in Keras, as far as no two
    tensors of a graph get the same; signatures get those of outputs that they only count.
    """
    layers = {layer.name for layer in keras_model._flatten_layers(include_self=False)}
    for graph in model.graphs:
        names = {
            v: _in_layers(v.name, layers, f"{keras_model.name}{_TRACE}/") for v in graph.values
        }
        _rename(graph, names)
    _name_outputs(model, keras_model)
    name_by_signature(model)


def _name_outputs(model: Model, keras_model: Any) -> None:
    """Give outputs that a signature counts the model's names of them, or that of the last layer."""
    last = [layer.name for layer in keras_model.layers[-1:]]
    names = list(getattr(keras_model, "output_names", None) or last)
    for signature in model.signatures:
        counted = all(_UNNAMED.fullmatch(name) for name, _ in signature.outputs)
        if counted and len(set(names)) == len(names) == len(signature.outputs):
            values = [value for _, value in signature.outputs]
            signature.outputs = list(zip(names, values, strict=True))


def name_by_signature(model: Model) -> None:
    """Give a graph's inputs and outputs the names that its only signature has; tensors inside of
    these names get other ones.
    """
    for graph in model.graphs:
        signatures = [s for s in model.signatures if s.graph is graph]
        if len(signatures) != 1:
            continue
        ends = (*signatures[0].outputs, *signatures[0].inputs)
        names = {value: name for name, value in ends}
        for value in graph.values:
            if value not in names and value.name in names.values():
                value.name = graph.unique_name(f"{value.name}/inside")
        _rename(graph, names)


def _in_layers(name: str, layers: Set[str], root: str) -> str:
    """Write a tensor's name with the names of layers, one with weights in front, and without the
    scope of the whole model.
    """
    if root not in name:
        return name

    def layer(part: re.Match[str]) -> str:
        stem = _NUMBER.sub("", part[0])
        return stem if stem in layers else part[0]

    inside = re.sub(rf"(^|;){re.escape(root)}", r"\1", name)
    return layer_first(_PART.sub(layer, inside))


def _rename(graph: Graph, names: Mapping[Value, str]) -> None:
    """Rename tensors, but for those whose new name another one has already."""
    taken = {value.name for value in graph.values}
    for value, name in names.items():
        if name not in taken:
            taken.remove(value.name)
            taken.add(name)
            value.name = name
