"""STABLEHLO_RNG_BIT_GENERATOR: bits and states against LiteRT, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from luciole.exporters import to_bytes
from luciole.importers import from_bytes
from luciole.interpreter import Interpreter
from luciole.ir import Graph, Model, ShapeError, TensorType, UnsupportedError, Value
from luciole.ir.dtypes import tensor_type
from luciole.ir.ops.stablehlo_rng_bit_generator import StablehloRngBitGenerator
from luciole.schema.enums import RngAlgorithm
from tests.support import litert

NUMBERS = [
    *((RngAlgorithm.THREEFRY, 2), (RngAlgorithm.PHILOX, 2)),
    *((RngAlgorithm.PHILOX, 3), (RngAlgorithm.DEFAULT, 3)),
]


def drawing(
    algorithm: RngAlgorithm, length: int, dtype: Any = np.int32, shape: tuple[int, ...] = (3, 5)
) -> Model:
    model = Model()
    graph = model.add_graph(Graph("main"))
    state = graph.add_input("state", (length,), TensorType.UINT64)
    op = StablehloRngBitGenerator(state, algorithm=algorithm)
    values = [
        graph.add_value(Value("next", TensorType.UINT64, (length,))),
        graph.add_value(Value("drawn", tensor_type(np.dtype(dtype)), shape)),
    ]
    graph.outputs = list(graph.append(op, results=values).results)
    return from_bytes(to_bytes(model))


@pytest.mark.parametrize(("algorithm", "length"), NUMBERS)
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("begin", [0, 2**32 - 2, 2**64 - 1])
def test_bits_are_those_of_litert(
    algorithm: RngAlgorithm, length: int, dtype: Any, begin: int
) -> None:
    model = drawing(algorithm, length, dtype)
    state = np.array([0x123456789ABCDEF0, begin, 0xFEDCBA9876543210][:length], np.uint64)
    found = Interpreter(model).run(state)
    wanted = litert(to_bytes(model, "tflite"), [state])
    for ours, theirs in zip(found.values(), wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)


def test_states_continue_where_bits_ended() -> None:
    long, short = (Interpreter(drawing(RngAlgorithm.THREEFRY, 2, shape=(n,))) for n in (8, 4))
    state = np.array([7, 1], np.uint64)
    first = short.run(state)
    second = short.run(first["next"])
    together = np.concatenate([first["drawn"], second["drawn"]])
    np.testing.assert_array_equal(together, long.run(state)["drawn"])


def test_rng_bit_generator_refuses_states_of_other_lengths() -> None:
    state = Graph().add_input("state", (3,), TensorType.UINT64)
    with pytest.raises(ShapeError, match=r"initial_state has shape \[3\], THREEFRY takes \[2\]"):
        StablehloRngBitGenerator(state, algorithm=RngAlgorithm.THREEFRY).result_shapes()


def test_rng_bit_generator_refuses_other_numbers() -> None:
    model = drawing(RngAlgorithm.PHILOX, 2, np.float32)
    with pytest.raises(UnsupportedError, match="no random FLOAT32"):
        Interpreter(model).run(np.zeros(2, np.uint64))
