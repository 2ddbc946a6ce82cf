"""Training of integers of any number of bits, batch normalizations folded in all three forms."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import pytest

import luciole
from luciole.ir import Array
from luciole.ir.ops.fake_quant import FakeQuant
from luciole.lquantizer import QuantizeError
from luciole.lquantizer.network.batch_norms import batch_norms
from luciole.lquantizer.search.published.genes import Widths
from luciole.lquantizer.search.published.network import Network, Start
from luciole.lquantizer.training import finetune
from luciole.lquantizer.training.folded_weights import FoldedWeights
from luciole.lquantizer.training.narrow_trainer import NarrowTrainer
from luciole.lquantizer.training.tensorflow import tensorflow
from luciole.lquantizer.training.uniform_settings import NarrowSettings
from tests.lquantizer.training.models import step_by_step
from tests.norm_support import images, unfolded

X = images(1, 60)
RECORDS = {"x": X}


@pytest.fixture(scope="module")
def start() -> Start:
    return Start.of(Network.of(unfolded(), RECORDS), RECORDS, "channel", 0)


def widths(start: Start, bits: int, results: int = 8) -> Widths:
    names = list(start.network.layers())
    return Widths(dict.fromkeys(names, bits), dict.fromkeys(names[:-1], results))


def trainer(start: Start, **settings: object) -> NarrowTrainer:
    how = NarrowSettings(**settings)  # type: ignore[arg-type]  # the names are fields
    narrowed = start.narrowed(widths(start, 8))
    return NarrowTrainer(narrowed, start.network.model, how, dict(start.latents))


def plain(start: Start, name: str) -> Array:
    """What the unfolded network computes in front of a layer's batch normalization."""
    model = unfolded()
    model.graph.outputs = [v for v in model.graph.values if v.name == name]
    return luciole.Interpreter(model).run({"x": X})[name]


def test_folding_is_equations_2_3_and_2_4(start: Start) -> None:
    model = unfolded()
    found = {op.name: given for op, given in batch_norms(model, RECORDS).items()}
    assert list(found) == ["conv", "depthwise"]
    conv = found["conv"]
    norm = conv.norm
    y = plain(start, "conv") - model.graph.ops[0].operands[2].data  # type: ignore[union-attr]  # it has a bias
    wanted = plain(start, "conv/add")
    normalized = norm.gamma * (y - norm.mean) / np.sqrt(norm.variance + norm.epsilon) + norm.beta
    np.testing.assert_allclose(normalized, wanted, rtol=1e-4, atol=1e-4)
    weights, bias = norm.fold(conv.weights)
    np.testing.assert_allclose(weights, conv.weights * (norm.gamma / norm.deviation)[:, None])
    shift = norm.beta - norm.gamma * norm.mean / norm.deviation
    np.testing.assert_allclose(bias, shift, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(norm.mean, y.mean((0, 1, 2)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(norm.variance, y.var((0, 1, 2)), rtol=1e-4)


Form = Callable[[FoldedWeights, Array, Array], Array]


@pytest.mark.parametrize("folding", ["approximate", "exact"])
def test_without_rounding_both_forms_are_batch_normalization(
    start: Start, folding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside TensorFlow's own, of a batch that is not like the long run."""
    tf = tensorflow()
    monkeypatch.setattr(FoldedWeights, "_rounded", lambda self, w, high: w)
    layer = trainer(start, folding=folding).folded[0]
    x = 2 * images(5, 30) + 1
    conv = tf.nn.conv2d(
        x,
        start.network.norms[layer.weights.op.name]
        .weights.reshape(4, 3, 3, 2)
        .transpose(1, 2, 3, 0),
        1,
        "SAME",
    )
    mean, variance = tf.nn.moments(conv, [0, 1, 2])
    norm = start.network.norms[layer.weights.op.name].norm
    how = (mean, variance, norm.beta, norm.gamma, norm.epsilon)
    wanted = tf.nn.relu(tf.nn.batch_normalization(conv, *how))
    before = layer._mean.numpy().copy()
    layer._phase.training = True
    np.testing.assert_allclose(layer.forward(x), wanted, rtol=1e-3, atol=1e-3)
    layer._phase.training = False
    np.testing.assert_allclose(layer._mean, 0.9 * before + 0.1 * mean, rtol=1e-4, atol=1e-5)


def test_frozen_and_judged_it_is_the_folded_layer(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FoldedWeights, "_rounded", lambda self, w, high: w)
    made = trainer(start, folding="exact", freeze_norms=0.5)
    layer = made.folded[0]
    wanted = np.maximum(plain(start, "conv/add"), 0)
    np.testing.assert_allclose(layer.forward(X), wanted, rtol=1e-3, atol=1e-3)
    layer._phase.training = True
    layer._phase.frozen.assign(True)
    np.testing.assert_allclose(layer.forward(X), wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("folding", "count"), [("approximate", 1), ("exact", 2)])
def test_the_exact_form_convolves_twice(start: Start, folding: str, count: int) -> None:
    """Section 4.3.3: which is why it took 20 % longer."""
    layer = trainer(start, folding=folding).folded[0]
    layer._phase.training = True
    layer.forward(X)
    assert layer.convolutions == count


@pytest.mark.parametrize("bits", [2, 3, 8])
def test_a_trained_file_computes_what_was_trained(start: Start, bits: int) -> None:
    """The integers' file beside the rounded network; its weights keep to their bits."""
    how = NarrowSettings(folding="exact", delay=0.4, freeze_norms=0.8, momentum=0.99, batch=16)
    narrowed = start.narrowed(widths(start, bits))
    teacher, latents = start.network.model, dict(start.latents)
    with nullcontext() if bits == 8 else step_by_step():  # one graph is like another
        found = finetune(narrowed, teacher, RECORDS, epochs=2, settings=how, latents=latents)
    constants = [v for v in found.model.graph.values if v.data is not None]
    weights = [v.data for v in constants if v.data is not None and v.dtype.name == "INT8"]
    assert len(weights) == 3
    assert max(int(np.abs(w).max()) for w in weights) <= 2 ** (bits - 1) - 1
    answers = luciole.Interpreter(found.model).run(RECORDS)[found.model.graph.outputs[0].name]
    wanted = luciole.Interpreter(unfolded()).run(RECORDS)["softmax"]
    assert answers.shape == wanted.shape
    error = {2: 0.5, 3: 0.25, 8: 0.03}[bits]
    assert float(np.abs(answers - wanted).mean()) < error


def test_narrow_results_are_fake_quant(start: Start) -> None:
    made = start.narrowed(widths(start, 8, results=3)).integers()
    found = [op for op in made.graph.ops if isinstance(op, FakeQuant)]
    assert [op.num_bits for op in found] == [3, 3]
    twin = made.clone()
    twin.graph.outputs = [op.output for op in twin.graph.ops if isinstance(op, FakeQuant)]
    for array in luciole.Interpreter(twin).run(RECORDS).values():
        assert len(np.unique(array)) <= 8


def test_settings_refuse_what_there_is_not() -> None:
    for field, value in (("folding", "none"), ("norm_momentum", 1.0), ("freeze_norms", 2.0)):
        with pytest.raises(QuantizeError, match=field):
            NarrowSettings(**{field: value})  # type: ignore[arg-type]  # that is the point
