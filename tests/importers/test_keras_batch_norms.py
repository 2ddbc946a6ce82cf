"""Batch normalizations of a Keras file, found again in what the converter made of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import luciole
from luciole.api import _folded
from luciole.importers.keras.batch_norms import keras_batch_norms
from luciole.lquantizer.search.published.network import Network

X = np.random.default_rng(0).normal(size=(12, 6, 6, 2)).astype(np.float32)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every kind of layer that may be normalized, with and without bias, scale and shift."""
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(1)
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((6, 6, 2)),
            layers.Conv2D(4, 3, padding="same", use_bias=False),
            layers.BatchNormalization(epsilon=1e-2),
            layers.ReLU(),
            layers.DepthwiseConv2D(3, padding="same"),
            layers.BatchNormalization(scale=False),
            layers.ReLU(),
            layers.Flatten(),
            layers.Dense(5),
            layers.BatchNormalization(center=False),
            layers.ReLU(),
            layers.Dense(3),
        ]
    )
    model.set_weights([np.abs(w) + 0.1 if w.ndim == 1 else w for w in model.get_weights()])
    file = tmp_path_factory.mktemp("keras") / "model.keras"
    model.save(file)
    return file


def test_it_reads_what_keras_has(path: Path) -> None:
    found = keras_batch_norms(path)
    assert [n.weights.shape for n in found] == [(4, 18), (4, 9), (5, 144)]
    assert [n.epsilon for n in found] == pytest.approx([1e-2, 1e-3, 1e-3])
    assert not found[0].bias.any()
    np.testing.assert_array_equal(found[1].gamma, 1)
    np.testing.assert_array_equal(found[2].beta, 0)


def test_each_is_found_again_and_folds_to_the_layer(path: Path) -> None:
    model = luciole.load(path)
    name = model.graph.inputs[0].name
    network = Network.of(model, {name: X}, _folded(path))
    assert len(network.norms) == 3
    for op in network.model.graph.ops:
        if op.name in network.norms:
            one = network.norms[op.name]
            _, shift = one.norm.fold(one.weights)
            bias = op.operands[2]
            assert bias is not None
            assert bias.data is not None
            np.testing.assert_allclose(shift, bias.data, rtol=1e-3, atol=1e-4)
    assert not Network.of(model, {name: X}).norms, "the converter folds them"
