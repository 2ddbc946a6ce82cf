"""Whole float networks against LiteRT, its reference kernels and the ones that users get.

Tolerance: 1e-5 of the range of LiteRT's output.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import luciole
from luciole.ir import Array
from tests.support import data_path, litert

SHAPES = {
    "ad01_fp32": (640,),
    "resnet8_fp32": (32, 32, 3),
    "vww_96_fp32": (96, 96, 3),
    "mnist_lstm_fp32": (28, 28),
}
RESOLVERS = ["BUILTIN_REF", "AUTO"]


def compare(name: str, resolver: str, x: Array) -> None:
    content = data_path(f"models/{name}.tflite").read_bytes()
    interpreter = luciole.Interpreter(model_content=content)
    for record in x:
        interpreter.reset_before_run()
        found = next(iter(interpreter.run(record[None]).values()))
        (wanted,) = litert(content, [record[None]], resolver)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.ptp(wanted))


@cache
def real(name: str) -> Array:
    file, scale = ("mnist.npz", 255) if "mnist" in name else ("cifar10_subset.npz", 1)
    with np.load(data_path(file)) as data:
        pixels: Array = data["x_test"][:4]
    return (pixels / scale).astype(np.float32)


@pytest.mark.parametrize("resolver", RESOLVERS)
@pytest.mark.parametrize("name", SHAPES)
def test_random_inputs_give_what_litert_gives(name: str, resolver: str) -> None:
    x = np.random.default_rng(0).random((2, *SHAPES[name]), np.float32)
    compare(name, resolver, x * 255 if name == "resnet8_fp32" else x)


@pytest.mark.parametrize("resolver", RESOLVERS)
@pytest.mark.parametrize("name", ["resnet8_fp32", "mnist_lstm_fp32"])
def test_real_images_give_what_litert_gives(name: str, resolver: str) -> None:
    compare(name, resolver, real(name))


@pytest.mark.parametrize("name", ["ad01_fp32", "resnet8_fp32"])
def test_a_batch_gives_what_litert_gives_image_by_image(name: str) -> None:
    content = data_path(f"models/{name}.tflite").read_bytes()
    x = np.random.default_rng(1).random((3, *SHAPES[name]), np.float32) * 10
    found = next(iter(luciole.Interpreter(model_content=content).run(x).values()))
    wanted = np.concatenate([litert(content, [record[None]])[0] for record in x])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.ptp(wanted))
