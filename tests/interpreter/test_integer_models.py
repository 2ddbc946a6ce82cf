"""Whole models of quantized tensors: bit for bit LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

import luciole
from luciole.ir import Array
from tests.support import data_path, litert

INPUTS = 3


def random_inputs(shape: tuple[int, ...], count: int) -> list[Array]:
    """Noise, and one smooth input: whole layers saturate less."""
    rng = np.random.default_rng(7)
    smooth = np.linspace(-128, 127, int(np.prod(shape))).reshape(shape).astype(np.int8)
    return [smooth, *(rng.integers(-128, 128, shape).astype(np.int8) for _ in range(count - 1))]


@pytest.mark.parametrize("name", ["ad01_int8", "kws_int8", "resnet8_int8", "vww_96_int8"])
def test_integer_models_give_the_bits_of_litert(name: str) -> None:
    path = data_path(f"models/{name}.tflite")
    content = path.read_bytes()
    interpreter = luciole.Interpreter(model_content=content)
    shape = tuple(int(n) for n in interpreter.get_input_details()[0]["shape"])
    for x in random_inputs(shape, INPUTS):
        (want,) = litert(content, [x])
        (got,) = interpreter.run(x).values()
        np.testing.assert_array_equal(got, want, strict=True)
