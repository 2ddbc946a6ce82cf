"""Peers' models: networks of random weights as .tflite files, converted by TensorFlow."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from luciole.importers.keras.convert import tensorflow

FORMS = ("int8", "dynamic", "float32")
"""Full integer with int8 in and out; int8 weights with float in and out; float."""


def dense_network(sizes: Sequence[int], rows: int) -> Any:
    """A ``keras.Model`` of dense layers; TANH follows each but the last, SOFTMAX the last of
    several.
    """
    keras = tensorflow("tflite_models").keras
    keras.utils.set_random_seed(0)
    given = value = keras.Input((sizes[0],), batch_size=rows)
    for place, size in enumerate(sizes[1:], 2):
        last = "softmax" if len(sizes) > 2 else None
        value = keras.layers.Dense(size, last if place == len(sizes) else "tanh")(value)
    return keras.Model(given, value)


def convert(network: Any, form: str, path: Path) -> Path:
    """Write a network in one of FORMS; int8 is calibrated on normal numbers."""
    tf = tensorflow("tflite_models")
    converter = tf.lite.TFLiteConverter.from_keras_model(network)
    if form != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if form == "int8":
        converter.representative_dataset = _samples(network.input_shape)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    with redirect_stdout(StringIO()), _silent():  # it describes what it saved
        path.write_bytes(converter.convert())
    return path


@contextmanager
def _silent() -> Iterator[None]:
    """Drop what native code prints on standard error while it starts."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _samples(shape: tuple[int, ...]) -> Callable[[], list[list[Any]]]:
    rng = np.random.default_rng(0)
    return lambda: [[rng.normal(size=shape).astype(np.float32)] for _ in range(20)]
