"""Kinds of models for ``benchmarks.kinds`` that TensorFlow converts; none where it is not
installed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from benchmarks.tflite_models import convert
from luciole.importers.keras.convert import tensorflow


def kinds() -> Iterator[tuple[str, bytes]]:
    """Give recurrent layers of Keras, whose steps are a WHILE."""
    if find_spec("tensorflow") is None:
        return
    keras = tensorflow("kinds_keras").keras
    for layer in (keras.layers.LSTM(64), keras.layers.GRU(32)):
        keras.utils.set_random_seed(0)
        given = keras.Input((28, 28), batch_size=1)
        network = keras.Model(given, layer(given))
        with tempfile.TemporaryDirectory() as folder:
            path = convert(network, "float32", Path(folder) / "network.tflite")
            yield f"Keras {type(layer).__name__}, WHILE", path.read_bytes()
