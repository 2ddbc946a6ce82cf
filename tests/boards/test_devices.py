"""Costs of the devices that come with luciole are those that QEMU counts."""

from __future__ import annotations

import pytest

from benchmarks.devices import NAMES, instructions, layer, model_of, quantized
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.lquantizer.search.device import read_device
from tests.boards.firmware import BOARDS


@pytest.mark.parametrize("board", list(NAMES))
def test_a_dense_layer_costs_what_is_counted(board: str) -> None:
    """Of a shape that the costs were not fitted to."""
    if BOARDS[board].tools.missing:
        pytest.skip(BOARDS[board].tools.missing)
    model = model_of(layer(FullyConnected), (1, 96, 48, 1))
    estimate = read_device(NAMES[board]).cost(model.graph.ops[0], "int:w8a8")
    found = instructions(quantized(model, "int:w8a8"), board, True)
    assert estimate == pytest.approx(found, rel=0.2)
