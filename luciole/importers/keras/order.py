"""Inputs and outputs in the order in which Keras has them.

TensorFlow's converter sorts them by a signature's names: ``keras_tensor_100`` comes before
``keras_tensor_99``, ``output_10`` before ``output_2``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from luciole.ir import Model, Value

_Named = list[tuple[str, Value]]


def order_as_keras(model: Model, keras_model: Any) -> None:
    """Sort inputs and outputs, of the graph and its signature, as the Keras model has them. A side
    that has other names stays as it is.
    """
    for signature in model.signatures:
        if signature.graph is not model.graph:
            continue
        inputs = [value.name for value in keras_model.inputs or ()]
        outputs = [f"output_{number}" for number in range(len(signature.outputs))]
        signature.inputs = _sorted(signature.inputs, inputs)
        signature.outputs = _sorted(signature.outputs, outputs)
        model.graph.inputs = _as_named(model.graph.inputs, signature.inputs)
        model.graph.outputs = _as_named(model.graph.outputs, signature.outputs)


def _sorted(named: _Named, names: Sequence[str]) -> _Named:
    """Sort pairs that have just these names; names of a dict of outputs stay as Keras sorts
    them.
    """
    by_name = dict(named)
    if len(named) != len(names) or by_name.keys() != set(names):
        return named
    return [(name, by_name[name]) for name in names]


def _as_named(values: Sequence[Value], named: _Named) -> list[Value]:
    """Sort values as a signature has them, unless it leaves some out or has one twice."""
    ordered = [value for _, value in named]
    return ordered if sorted(map(id, ordered)) == sorted(map(id, values)) else list(values)
