"""A file that holds its simulation as it is, is told from one that does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import Model
from luciole.lquantizer.proving.sameness import are_same_networks
from luciole.lquantizer.proving.simulation import simulation_of
from tests.networks import network, random


@pytest.mark.parametrize(
    ("scheme", "same"), [("dynamic", True), ("weights", True), ("int8", False)]
)
def test_files_of_weights_alone_are_their_own_simulation(scheme: str, same: bool) -> None:
    result = luciole.quantize(network(), random(3, 40, 20), scheme=scheme, proof=False)
    written = from_bytes(to_bytes(result.model))
    assert are_same_networks(simulation_of(result), written) == same


def _other_weights(model: Model) -> None:
    constant = next(v for v in model.graph.values if v.is_constant)
    constant.set_data(constant.contents + 1)


def _other_shape(model: Model) -> None:
    model.graph.outputs[0].shape = (3, *model.graph.outputs[0].shape[1:])


def _one_operator_less(model: Model) -> None:
    last = model.graph.ops[-1]
    last.output.replace_with(last.operands[0] or last.output)
    model.graph.remove(last)


@pytest.mark.parametrize("change", [_other_weights, _other_shape, _one_operator_less])
def test_a_network_that_was_changed_is_another(change: Callable[[Model], None]) -> None:
    one = network()
    other = one.clone()
    assert are_same_networks(one, other)
    change(other)
    assert not are_same_networks(one, other)
