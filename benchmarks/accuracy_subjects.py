"""The networks whose accuracy is measured, and their data.

Two MNIST networks 784-690(tanh)-10 trained here on pixels of 0 to 1 and converted to take
standardised ones, which the published method needs (it has no offset); an LSTM for MNIST; a
ResNet-8 for CIFAR-10; and MLPerf Tiny's autoencoder ``ad01`` for the sounds of
benchmarks/machine_sound.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine_sound import Floats, Machine, records
from luciole.importers import load
from luciole.importers.keras.convert import from_keras, tensorflow
from luciole.interpreter import Interpreter
from luciole.interpreter.evaluation import answers_of, share_right
from luciole.interpreter.records import outputs_of
from luciole.ir import Array, LucioleError, Model
from luciole.tools.demo_mnist import MEAN, STD

SEED, BATCH = 0, 128
EPOCHS = {"mnist97": 5, "mnist98": 25}
_DENSE = "1,2,3,4,w1a2,w1a4,w1a8,w2a4,w2a8,w2,w3"
DEFAULT_WIDTHS = {
    "mnist97": _DENSE,
    "mnist98": _DENSE,
    "lstm": "2,3,4",
    "cifar": "1,2,3,4,w1a2,w2a4,w4a8,2+dense,3+dense,4+dense",
    "ad01": "1,2,3,4",
}
_SOUNDS = 4000
"""Rows of machine sound to draw calibration rows from, and as many to judge by."""
_MACHINES = 4


@dataclass(frozen=True)
class Subject:
    """A float network, unlabelled records [n, ...] to learn from and others to judge by.

    With labels it is judged by its top-1 accuracy, without by how well it reconstructs its input.
    """

    name: str
    model: Model
    images: Array
    test: Array
    labels: Array | None
    has_lstm: bool = False

    def calibration(self, count: int, seed: int) -> Array:
        """So many of the training images, drawn by a seed."""
        chosen = np.random.default_rng(1000 + seed).permutation(len(self.images))[:count]
        return self.images[np.sort(chosen)]

    @property
    def metric(self) -> str:
        """What a score says."""
        return "top-1 in %" if self.labels is not None else "error in % of the float network's"

    def score(self, model: Model) -> float:
        """Top-1 accuracy in percent; without labels the mean squared error of the reconstruction in
        percent of the float network's.
        """
        if self.labels is None:
            return 100 * self._error(model) / self._float_error
        records = {model.graph.inputs[0].name: self.test}
        return 100 * share_right(answers_of(model, records), self.labels)

    def _error(self, model: Model) -> float:
        wide = _answer(model, self.test).astype(np.float64)
        return float(np.mean(np.square(wide - self.test)))

    @cached_property
    def _float_error(self) -> float:
        return self._error(self.model)


def _answer(model: Model, inputs: Array) -> Array:
    found = outputs_of(Interpreter(model), {model.graph.inputs[0].name: inputs})
    return found[model.graph.outputs[0].name]


def mnist(name: str, data: Path, folder: Path) -> Subject:
    """ "mnist97" or "mnist98"; a network trained before is taken from the folder."""
    arrays = _arrays(data)
    images = {part: arrays[part].reshape(-1, 784) / np.float32(255) for part in _PARTS}
    path = folder / f"{name}.keras"
    if not path.exists():
        _trained(name, images["x_train"], arrays["y_train"]).save(path)
    keras = tensorflow(name).keras
    model = from_keras(_standardised(keras, keras.models.load_model(path, compile=False)))
    train, test = ((images[part] - MEAN) / STD for part in _PARTS)
    return Subject(name, model, train.astype(np.float32), test.astype(np.float32), arrays["y_test"])


def cifar(data: Path, network: Path) -> Subject:
    """ResNet-8, which takes raw pixels of 0 to 255."""
    arrays = _arrays(data)
    train, test = (arrays[part].astype(np.float32) for part in _PARTS)
    return Subject("cifar", load(network), train, test, arrays["y_test"].reshape(-1))


def lstm(data: Path, network: Path) -> Subject:
    """An LSTM that reads MNIST images, pixels of 0 to 1, row by row."""
    arrays = _arrays(data)
    train, test = (arrays[part] / np.float32(255) for part in _PARTS)
    return Subject("lstm", load(network), train, test, arrays["y_test"], has_lstm=True)


def ad01(network: Path) -> Subject:
    """The autoencoder, on sounds of machines that are made familiar to it."""
    model = load(network)

    def rows(x: Floats) -> Floats:
        return _answer(model, x.astype(np.float32)).astype(np.float64)

    machines = [Machine.number(number).familiar(rows) for number in range(_MACHINES)]
    train, test = (records(machines, _SOUNDS, seed) for seed in (1, 2))
    return Subject("ad01", model, train, test, None)


_PARTS = ("x_train", "x_test")


def _arrays(path: Path) -> dict[str, Array]:
    try:
        with np.load(path, allow_pickle=False) as data:
            return {key: data[key] for key in ("x_train", "y_train", "x_test", "y_test")}
    except (OSError, ValueError, KeyError) as error:
        raise LucioleError(
            f"{path}: x_train, y_train, x_test, y_test are needed: {error}"
        ) from None


def _network(keras: Any) -> Any:
    layers = keras.layers
    return keras.Sequential(
        [keras.Input((784,)), layers.Dense(690, "tanh"), layers.Dense(10, "softmax")]
    )


def _trained(name: str, images: Array, labels: Array) -> Any:
    """A ``keras.Model`` for pixels of 0 to 1."""
    keras = tensorflow(name).keras
    keras.utils.set_random_seed(SEED)
    model, epochs = _network(keras), EPOCHS[name]
    optimizer: Any = keras.optimizers.Adam(1e-3)
    if name == "mnist98":
        steps = epochs * -(-len(images) // BATCH)
        rate = keras.optimizers.schedules.CosineDecay(1e-3, steps)
        optimizer = keras.optimizers.AdamW(rate, weight_decay=0.01)
    model.compile(optimizer, "sparse_categorical_crossentropy")
    model.fit(images, labels, batch_size=BATCH, epochs=epochs, verbose=0)
    return model


def _standardised(keras: Any, model: Any) -> Any:
    """The same function of (x - MEAN) / STD, as luciole.tools.demo_mnist makes it."""
    w1, b1, w2, b2 = model.get_weights()
    changed = _network(keras)
    changed.set_weights([w1 * STD, b1 + MEAN * w1.sum(0), w2, b2])
    return changed
