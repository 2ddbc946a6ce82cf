"""Damaged files are refused in one line, or still run: never a crash, a hang or an error of another
kind.

Every mutation runs in this process: a segmentation fault would end the test run itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import luciole
from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import LucioleError
from tests.support import data_path

MODELS = ("ad01_int8", "kws_fp32", "kws_int8", "mnist_lstm_fp32", "resnet8_fp32")
PER_MODEL = 12
MEMORY = 64 << 20


def mutations(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Truncated, bit-flipped, overwritten and shuffled copies, most of them damaged among the
    tables.
    """
    generator = np.random.default_rng(seed)
    for i in range(count):
        data = bytearray(content)
        if i % 4 == 0:
            yield bytes(data[: generator.integers(0, len(data))])
            continue
        for _ in range(generator.integers(1, 6)):
            at = int(generator.integers(0, len(data)))
            if i % 4 == 1:
                data[at] ^= 1 << int(generator.integers(0, 8))
            elif i % 4 == 2:
                number = int(generator.choice([0, 1, 2**31 - 1, 2**32 - 1, 2**16, 255, len(data)]))
                place = at // 4 * 4
                data[place : place + 4] = number.to_bytes(4, "little")
            else:
                length = int(generator.integers(1, 64))
                other = int(generator.integers(0, len(data)))
                data[at : at + length] = content[other : other + length]
        yield bytes(data)


def without_weights(content: bytes) -> bytes:
    """The same model with small constants only, so that mutations hit tables more often than
    weights.
    """
    model = from_bytes(content)
    for graph in model.graphs:
        for value in graph.values:
            if value.is_constant and value.buffer is not None and len(value.buffer) > 4096:
                value.buffer = None
                value.is_variable = True
    return to_bytes(model)


def try_it(content: bytes) -> str:
    """Read, run and write a file; what stopped it, or "ran"."""
    try:
        model = from_bytes(content)
        interpreter = Interpreter(model, memory_limit=MEMORY)
        interpreter.allocate_tensors()
        interpreter.invoke()
        to_bytes(model)
    except LucioleError as error:
        return type(error).__name__ if "\n" not in str(error).strip() else "several lines"
    return "ran"


@pytest.mark.parametrize("name", MODELS)
def test_mutated_files_are_refused_or_run(name: str) -> None:
    content = data_path(f"models/{name}.tflite").read_bytes()
    ends = [try_it(mutated) for mutated in mutations(content, PER_MODEL, seed=1)]
    assert len(ends) == PER_MODEL
    assert "several lines" not in ends
    assert {"FormatError"} < set(ends), "mutations of both kinds happen: harmless and refused"


@pytest.mark.parametrize("name", MODELS)
def test_mutated_tables_are_refused_or_run(name: str) -> None:
    content = without_weights(data_path(f"models/{name}.tflite").read_bytes())
    ends = [try_it(mutated) for mutated in mutations(content, PER_MODEL, seed=2)]
    assert len(ends) == PER_MODEL
    assert "several lines" not in ends
    assert "FormatError" in ends


def test_quantized_model_survives_mutation() -> None:
    model = luciole.load(luciole.__path__[0] + "/demo_data/digits.circle")
    x = np.random.default_rng(0).normal(size=(40, 64)).astype(np.float32)
    content = to_bytes(luciole.quantize(model, x, encode_bits=2).model)
    ends = [try_it(mutated) for mutated in mutations(content, 2 * PER_MODEL, seed=3)]
    assert {"FormatError", "ran"} <= set(ends)
