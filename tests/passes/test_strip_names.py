"""Names are taken off what lies between a model's ends; nothing else changes."""

from __future__ import annotations

import numpy as np

import luciole
from luciole.exporters import to_bytes
from luciole.interpreter.compare import compare
from luciole.ir import Model
from luciole.ir.graph import Signature
from luciole.ir.names import is_stripped
from luciole.ir.passes.strip_names import strip_names
from tests.networks import network, random

X = random(50, 60, 20)


def stripped(model: Model) -> Model:
    copy = model.clone()
    strip_names(copy)
    return copy


def test_ends_keep_their_names_and_all_others_are_short_and_different() -> None:
    model = network()
    graph = model.graph
    found = stripped(model).graph
    assert [v.name for v in found.inputs] == [v.name for v in graph.inputs]
    assert [v.name for v in found.outputs] == [v.name for v in graph.outputs]
    inner = [v.name for v in found.values if v not in (*found.inputs, *found.outputs)]
    assert len(inner) == len(set(inner)) > 0
    assert all(is_stripped(name) and len(name) <= 3 for name in inner)
    assert not any(is_stripped(v.name) for v in graph.values)


def test_what_a_signature_speaks_of_keeps_its_name() -> None:
    model = network()
    inner = model.graph.ops[0].output
    model.signatures.append(Signature("peek", model.graph, [], [("hidden", inner)]))
    names = {v.name for v in stripped(model).graph.values}
    assert inner.name in names


def test_the_file_is_smaller_and_computes_the_same() -> None:
    model = network()
    small = stripped(model)
    sizes = [len(to_bytes(m)) for m in (small, model)]
    assert sizes[0] < sizes[1]
    wanted, found = (luciole.Interpreter(m).run(X) for m in (model, small))
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


def test_two_stripped_models_are_compared_by_their_outputs_alone() -> None:
    model = network()
    x = {model.graph.inputs[0].name: X}
    found = compare(stripped(model), stripped(model), x)
    assert [e.name for e in found.layers] == [v.name for v in model.graph.outputs]
    assert all(is_stripped(name) for names in found.unmatched for name in names)
