"""Kinds of models for ``benchmarks.kinds`` that TensorFlow converts; none where it is not
installed.

    python3 -m benchmarks.kinds_keras

prints how far what luciole imports of each is from what Keras computes, on normal numbers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import machine
from benchmarks.tflite_models import convert
from luciole.importers.keras.convert import from_keras, tensorflow
from luciole.interpreter import Interpreter


def kinds() -> Iterator[tuple[str, bytes]]:
    """Give recurrent layers, whose steps are a WHILE, an encoder, and networks for phones without
    trained weights.
    """
    if find_spec("tensorflow") is None:
        return
    keras = tensorflow("kinds_keras").keras
    for name, make in NETWORKS.items():
        keras.utils.set_random_seed(0)
        with tempfile.TemporaryDirectory() as folder:
            path = convert(make(keras), "float32", Path(folder) / "network.tflite")
            yield f"Keras {name}", path.read_bytes()


def _over_time(keras: Any, layer: Any) -> Any:
    given = keras.Input((28, 28), batch_size=1)
    return keras.Model(given, layer(given))


def _attention(keras: Any) -> Any:
    given = keras.Input((64, 128), batch_size=1)
    return keras.Model(given, keras.layers.MultiHeadAttention(4, 32)(given, given))


def _two_ways(keras: Any) -> Any:
    """Make a functional network of an image and a vector, with a class and a number as results."""
    layers = keras.layers
    image, facts = keras.Input((16, 16, 3), batch_size=1), keras.Input((8,), batch_size=1)
    seen = layers.Flatten()(layers.Conv2D(8, 3, 2, activation="relu")(image))
    both = layers.Dense(32, "relu")(layers.Concatenate()([seen, facts]))
    results = [layers.Dense(10, "softmax")(both), layers.Dense(1, "sigmoid")(both)]
    return keras.Model([image, facts], results)


def _encoder(keras: Any) -> Any:
    """Make two blocks of attention and dense layers, each added and normalized."""
    layers = keras.layers
    x = given = keras.Input((64, 128), batch_size=1)
    for _ in range(2):
        seen = layers.MultiHeadAttention(4, 32)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, seen]))
        wide = layers.Dense(256, "gelu")(x)
        x = layers.LayerNormalization()(layers.Add()([x, layers.Dense(128)(wide)]))
    return keras.Model(given, x)


def _application(name: str, **given: Any) -> Callable[[Any], Any]:
    def make(keras: Any) -> Any:
        shape = (1, 96, 96, 3)
        image = keras.Input(shape[1:], batch_size=1)
        return getattr(keras.applications, name)(input_tensor=image, weights=None, **given)

    return make


LITE = ((16, 1, 1, 3, 1), (24, 2, 2, 3, 6), (40, 2, 2, 5, 6), (80, 3, 2, 3, 6), (112, 3, 1, 5, 6))
"""Of each stage of EfficientNet-Lite0, but the last two: outputs, blocks, stride, kernel and by how
many times blocks are wider inside.
"""


def _efficient_lite(keras: Any) -> Any:
    layers = keras.layers

    def convolved(x: Any, layer: Any, clipped: bool = True) -> Any:
        x = layers.BatchNormalization()(layer(x))
        return layers.ReLU(6.0)(x) if clipped else x

    given = keras.Input((96, 96, 3), batch_size=1)
    x = convolved(given, layers.Conv2D(32, 3, 2, "same", use_bias=False))
    for outputs, blocks, stride, kernel, wider in LITE:
        for block in range(blocks):
            before, step = x, 1 if block else stride
            if wider > 1:
                x = convolved(x, layers.Conv2D(wider * x.shape[-1], 1, use_bias=False))
            x = convolved(x, layers.DepthwiseConv2D(kernel, step, "same", use_bias=False))
            x = convolved(x, layers.Conv2D(outputs, 1, use_bias=False), clipped=False)
            x = layers.Add()([before, x]) if block else x
    x = layers.GlobalAveragePooling2D()(convolved(x, layers.Conv2D(1280, 1, use_bias=False)))
    return keras.Model(given, layers.Dense(1000, "softmax")(x))


NETWORKS: dict[str, Callable[[Any], Any]] = {
    "LSTM, WHILE": lambda keras: _over_time(keras, keras.layers.LSTM(64)),
    "GRU, WHILE": lambda keras: _over_time(keras, keras.layers.GRU(32)),
    "Bidirectional LSTM": lambda keras: _over_time(
        keras, keras.layers.Bidirectional(keras.layers.LSTM(32))
    ),
    "two inputs and outputs": _two_ways,
    "MultiHeadAttention": _attention,
    "transformer encoder": _encoder,
    "MobileNetV2": _application("MobileNetV2", alpha=0.35),
    "MobileNetV3Small": _application("MobileNetV3Small"),
    "EfficientNet-Lite": _efficient_lite,
}


def apart(keras: Any, network: Any) -> tuple[float, float]:
    """The largest difference of an output, and the largest number in one."""
    rng = np.random.default_rng(3)
    given = [rng.normal(size=value.shape).astype(np.float32) for value in network.inputs]
    computed = network(given if len(given) > 1 else given[0], training=False)
    wanted = [np.asarray(y) for y in keras.tree.flatten(computed)]
    interpreter = Interpreter(from_keras(network))
    names = [value.name for value in interpreter.graph.inputs]
    found = interpreter.run(dict(zip(names, given, strict=True))).values()
    differences = [np.abs(y - w).max() for y, w in zip(found, wanted, strict=True)]
    return float(max(differences)), float(max(np.abs(w).max() for w in wanted))


def main() -> None:
    """Print the table."""
    keras = tensorflow("kinds_keras").keras
    print("network | largest difference | largest number |\n---|---|---|")
    for name, make in NETWORKS.items():
        keras.utils.set_random_seed(0)
        difference, largest = apart(keras, make(keras))
        print(f"{name} | {difference:.1e} | {largest:.2g} |", flush=True)
    print(f"\n{machine(('luciole', 'keras', 'tensorflow-cpu', 'numpy'))}")


if __name__ == "__main__":
    main()
