"""The compiled ways of LQ_FULLY_CONNECTED: row by row and level by level."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from luciole.ir import Array
from luciole.kernels.layers.levels import counting, level_sums
from luciole.schema.enums import ActivationFunctionType as Act
from tests.lq_support import Layer, check_parts, oracle, random_input, random_layer, with_offsets


@pytest.fixture
def by_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """Go level by level whatever the layer's size and its inputs."""
    monkeypatch.setattr(level_sums, "LEAST_LANES", 0)
    monkeypatch.setattr(level_sums, "LEAST_INPUTS", 0)
    monkeypatch.setattr(level_sums, "most_off", lambda bits, rows: bits)


def check(layer: Layer, x: Array) -> None:
    """The compiled kernel gives what the formula gives."""
    wanted = oracle(layer, x)
    scale = np.abs(oracle(replace(layer, activation=Act.NONE), x)).max()
    np.testing.assert_allclose(layer.native(x), wanted, rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize(("n", "rows"), [(50, 70), (700, 70), (3000, 9)])
def test_rows_in_blocks_and_tiles(n: int, rows: int) -> None:
    """Tiles of several rows, the last one not full, in blocks of which the last is not full."""
    check(with_offsets(random_layer(n, 18, 1, 1)), random_input((rows, n)))


@pytest.mark.usefixtures("by_level")
@pytest.mark.parametrize("kw", [1, 2, 3])
@pytest.mark.parametrize("o", [1, 161, 600])
def test_any_number_of_outputs_level_by_level(kw: int, o: int) -> None:
    check(with_offsets(random_layer(77, o, 2, kw)), random_input((3, 77)))


@pytest.mark.usefixtures("by_level")
@pytest.mark.parametrize("kx", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [1, 32, 65, 1999])
def test_any_number_of_inputs_level_by_level(kx: int, n: int) -> None:
    """More inputs on a level than an 8-bit counter holds, and fewer inputs than levels."""
    check(random_layer(n, 9, kx, 2), random_input((8, n)))


@pytest.mark.usefixtures("by_level")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0])
@pytest.mark.parametrize("share", [1.0, 0.8, 0.5])
def test_a_level_that_most_inputs_have(value: float, share: float) -> None:
    x = random_input((20, 500))
    x[np.random.default_rng(0).random(x.shape) < share] = value
    check(random_layer(500, 20, 3, 2), x)


@pytest.mark.usefixtures("by_level")
@pytest.mark.parametrize("activation", [Act.RELU6, Act.TANH])
def test_activations_level_by_level(activation: Act) -> None:
    layer = replace(with_offsets(random_layer(77, 40, 3, 2)), activation=activation)
    check(layer, random_input((2, 77)))


def test_large_layers_take_either_way_by_the_inputs_at_hand() -> None:
    layer = random_layer(400, 200, 2, 2)
    mixed = random_input((40, 400))
    few = np.where(np.random.default_rng(1).random(mixed.shape) < 0.9, np.float32(-9), mixed)
    check(layer, mixed)
    check(layer, few)
    check(layer, mixed[:1])
    check(layer, few[:1])


@pytest.mark.parametrize("rows", [1, 40])
def test_parts_for_threads_do_together_what_one_does(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each record writes its own rows or outputs, and only those."""
    monkeypatch.setattr(counting, "LEAST_WORK", 1)
    monkeypatch.setattr(level_sums, "LEAST_WORK", 1)
    layer = with_offsets(random_layer(400, 200, 2, 2))
    mixed = random_input((rows, 400))
    few = np.where(np.random.default_rng(1).random(mixed.shape) < 0.9, np.float32(-9), mixed)
    for x in (mixed, few):
        check_parts(layer.model(x), x, 3)
