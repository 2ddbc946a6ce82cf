"""Networks that are trained here, for the accuracy of learned levels on kinds of networks: a CNN
with batch normalization, a small CNN, an LSTM, a transformer encoder and an autoencoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from luciole.exporters import save
from luciole.importers import load
from luciole.importers.keras.convert import from_keras, tensorflow
from luciole.ir import Array, Model

SEED = 0
NOISE = 0.4
"""Deviation of the noise that the autoencoder is to take away, of pixels from 0 to 1."""
_MOST_SHIFT = 3


@dataclass(frozen=True)
class Records:
    """Inputs and what belongs to them, class numbers or what an autoencoder should give back, to
    train on and to judge by.
    """

    train: Array
    wanted: Array
    test: Array
    judge: Array


@dataclass(frozen=True)
class Kind:
    """How a network is built from Keras, trained, and fed."""

    build: Callable[[Any], Any]
    records: Callable[[Path], Records]
    epochs: int
    rate: float
    warm_up: float = 0.0
    """Share of the steps in which the rate rises from 0."""
    images: bool = False
    """Whether images are moved and mirrored while it is trained."""


def network(name: str, data: Path, folder: Path) -> tuple[Model, Records]:
    """Train one of ``KINDS``, or take it from the folder, where it was kept; with its records."""
    kind, path = KINDS[name], folder / f"{name}.circle"
    records = kind.records(data)
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        save(from_keras(_trained(kind, records)), path)
    return load(path), records


def cifar(data: Path) -> Records:
    """Read CIFAR-10, pixels of -1 to 1."""
    x, y, test, labels = _arrays(data / "cifar10_subset.npz")
    return Records(x / np.float32(127.5) - 1, y, test / np.float32(127.5) - 1, labels)


def mnist(data: Path) -> Records:
    """Read MNIST, pixels of 0 to 1."""
    x, y, test, labels = _arrays(data / "mnist.npz")
    return Records(x / np.float32(255), y, test / np.float32(255), labels)


def images(data: Path) -> Records:
    """Read MNIST, pixels of 0 to 1, as images of one channel."""
    found = mnist(data)
    return Records(found.train[..., None], found.wanted, found.test[..., None], found.judge)


def noisy(data: Path) -> Records:
    """Read MNIST images with noise, in rows, and the images as they were."""
    clean = mnist(data)
    x, test = clean.train.reshape(-1, 784), clean.test.reshape(-1, 784)
    return Records(_with_noise(x, 1), x, _with_noise(test, 2), test)


def _with_noise(x: Array, seed: int) -> Array:
    noise = np.random.default_rng(seed).normal(0, NOISE, x.shape)
    return np.clip(x + noise, 0, 1).astype(np.float32)


def _arrays(path: Path) -> Iterator[Array]:
    with np.load(path, allow_pickle=False) as data:
        for name in ("x_train", "y_train", "x_test", "y_test"):
            yield data[name] if name.startswith("x") else data[name].reshape(-1)


def _batchnorm(keras: Any) -> Any:
    """Five convolutions with batch normalization and RELU, the mean of the image, a dense layer."""
    layers = keras.layers
    start = x = keras.Input((32, 32, 3))
    for channels, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1)):
        x = layers.Conv2D(channels, 3, stride, "same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization(momentum=0.9)(x))
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(start, layers.Dense(10, "softmax")(x))


def _cnn(keras: Any) -> Any:
    """Two convolutions with pools, and a dense layer that holds most of the weights."""
    layers = keras.layers
    start = x = keras.Input((28, 28, 1))
    for channels in (16, 32):
        x = layers.MaxPooling2D()(layers.Conv2D(channels, 3, padding="same", activation="relu")(x))
    return keras.Model(start, layers.Dense(10, "softmax")(layers.Flatten()(x)))


def _lstm(keras: Any) -> Any:
    """An LSTM that reads an image row by row, unrolled."""
    rows = keras.Input((28, 28))
    x = keras.layers.LSTM(64, unroll=True)(rows)
    return keras.Model(rows, keras.layers.Dense(10, "softmax")(x))


def _transformer(keras: Any) -> Any:
    """Two blocks of attention (4 heads of 12) and GELU layers over the rows of an image."""
    layers = keras.layers
    rows = keras.Input((28, 28))
    x = layers.EinsumDense("nrp,pc->nrc", (28, 48), bias_axes="rc")(rows)  # a bias for each row
    for _ in range(2):
        y = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(4, 12)(y, y)
        y = layers.Dense(96, "gelu")(layers.LayerNormalization()(x))
        x = x + layers.Dense(48)(y)
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    return keras.Model(rows, layers.Dense(10, "softmax")(x))


def _autoencoder(keras: Any) -> Any:
    """Dense layers 784-256-64-256-784 that take noise away."""
    start = x = keras.Input((784,))
    for width in (256, 64, 256):
        x = keras.layers.Dense(width, "relu")(x)
    return keras.Model(start, keras.layers.Dense(784, "sigmoid")(x))


KINDS = {
    "batchnorm": Kind(_batchnorm, cifar, epochs=18, rate=3e-3, images=True),
    "cnn": Kind(_cnn, images, epochs=3, rate=1e-3),
    "lstm": Kind(_lstm, mnist, epochs=4, rate=2e-3),
    "transformer": Kind(_transformer, mnist, epochs=10, rate=1e-3, warm_up=0.1),
    "autoencoder": Kind(_autoencoder, noisy, epochs=6, rate=2e-3),
}
"""Every network, by name."""


def _trained(kind: Kind, records: Records) -> Any:
    """Train a ``keras.Model``, its rate falling to 0 along half a cosine."""
    keras = tensorflow("networks of this benchmark").keras
    keras.utils.set_random_seed(SEED)
    model = kind.build(keras)
    batch = 64 if kind.images else 128
    steps = kind.epochs * -(-len(records.train) // batch)
    rate = _schedule(keras, kind, steps)
    classes = records.wanted.ndim == 1
    model.compile(
        keras.optimizers.Adam(rate), "sparse_categorical_crossentropy" if classes else "mse"
    )
    if kind.images:
        _train_on_moved(model, records, kind.epochs, batch)
    else:
        model.fit(records.train, records.wanted, batch_size=batch, epochs=kind.epochs, verbose=0)
    return model


def _schedule(keras: Any, kind: Kind, steps: int) -> Any:
    """Make a rate that falls along half a cosine, after it rose where it shall."""
    cosine, rising = keras.optimizers.schedules.CosineDecay, round(kind.warm_up * steps)
    if not rising:
        return cosine(kind.rate, steps)
    return cosine(0.0, steps - rising, warmup_target=kind.rate, warmup_steps=rising)


def _train_on_moved(model: Any, records: Records, epochs: int, batch: int) -> None:
    """Train on images that are moved by a few pixels and mirrored at random."""
    rng = np.random.default_rng(SEED)
    edge, size = _MOST_SHIFT, records.train.shape[1]
    wide = np.pad(records.train, ((0, 0), (edge, edge), (edge, edge), (0, 0)), mode="reflect")
    for _ in range(epochs):
        order = rng.permutation(len(wide))
        for begin in range(0, len(order) - batch + 1, batch):
            chosen = order[begin : begin + batch]
            top, left = rng.integers(0, 2 * edge + 1, 2)
            images = wide[chosen, top : top + size, left : left + size]
            turned = rng.random(batch) < 0.5
            images = np.where(turned[:, None, None, None], images[:, :, ::-1], images)
            model.train_on_batch(images, records.wanted[chosen])
