"""Other runtimes run what we write as they run the original: LiteRT .tflite, onert .circle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.ir import Array, TensorType
from tests.onert_support import needs_onert, onert
from tests.support import data_path, litert

MODELS = (
    *("ad01_fp32", "ad01_int8", "kws_fp32", "kws_int8", "mnist_lstm_fp32"),
    *("resnet8_fp32", "resnet8_int8", "vww_96_fp32", "vww_96_int8"),
)


def original(name: str) -> bytes:
    return data_path(f"models/{name}.tflite").read_bytes()


def random_input(content: bytes, seed: int) -> Array:
    (value,) = from_bytes(content).graph.inputs
    generator = np.random.default_rng(seed)
    if value.dtype is TensorType.INT8:
        return generator.integers(-128, 128, value.dims, np.int8)
    return generator.normal(size=value.dims).astype(np.float32)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("through", ["tflite", "circle"])
def test_litert_computes_the_same(name: str, through: str) -> None:
    content = original(name)
    model = from_bytes(to_bytes(from_bytes(content), through))
    ours = to_bytes(model, "tflite")
    for seed in range(2):
        x = random_input(content, seed)
        expected, found = litert(content, [x], "AUTO"), litert(ours, [x], "AUTO")
        assert len(expected) == len(found) == 1
        assert len(np.unique(expected[0])) > 1, "the model says something"
        np.testing.assert_array_equal(found[0], expected[0])


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


@needs_onert
@pytest.mark.parametrize("name", ["ad01_fp32", "resnet8_fp32", "vww_96_fp32"])
def test_onert_computes_the_same(name: str, tmp_path: Path) -> None:
    content = original(name)
    x = random_input(content, 5)
    (expected,) = litert(content, [x])
    ours = write(tmp_path, "ours.circle", to_bytes(from_bytes(content)))
    found, message = onert(ours, x)
    assert message == ""
    assert found is not None
    largest = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * largest)
    from_tflite, _ = onert(write(tmp_path, "theirs.tflite", content), x)
    np.testing.assert_array_equal(found, from_tflite)


INT8 = "Error during nnfw_session::run : FullyConnected: unsupported data type"
REFUSED = {
    "ad01_int8": INT8,
    "resnet8_int8": INT8,
    "kws_fp32": (
        "Error during model prepare : Conv2D hybrid supports only per-channel quantized weight."
    ),
    "mnist_lstm_fp32": "exit code -11",
}
"""What onert 0.1.0 says of other models, of the original files too."""


@needs_onert
@pytest.mark.parametrize("name", REFUSED)
def test_onert_refuses_ours_as_it_refuses_the_original(name: str, tmp_path: Path) -> None:
    content = original(name)
    x = random_input(content, 5)
    for path in (
        write(tmp_path, "ours.circle", to_bytes(from_bytes(content))),
        write(tmp_path, "theirs.tflite", content),
    ):
        assert onert(path, x) == (None, REFUSED[name])
