"""RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL and MULTINOMIAL: the numbers that LiteRT draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from luciole import Interpreter
from luciole.exporters import to_bytes
from luciole.ir import Array, Graph, LucioleError, Model, Op, ShapeError, TensorType
from luciole.ir.ops.random import Multinomial, RandomStandardNormal, RandomUniform
from luciole.kernels.arrays.philox import Philox
from tests.support import one_op

NUMBERS = pytest.mark.parametrize("cls", [RandomUniform, RandomStandardNormal])
SEEDS = pytest.mark.parametrize("seeds", [(1, 2), (0, 7), (-5, 2**40 + 3), (2**31 + 7, -(2**63))])
LOGITS = np.random.default_rng(5).normal(size=(3, 5)).astype(np.float32) * 2


def runs(interpreter: Any, inputs: Sequence[Array], count: int = 3) -> list[Array]:
    interpreter.allocate_tensors()
    results = []
    for _ in range(count):
        for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        (detail,) = interpreter.get_output_details()
        results.append(interpreter.get_tensor(detail["index"]))
    return results


def both(model: Model, inputs: Sequence[Array] = ()) -> tuple[list[Array], list[Array]]:
    """Three runs here and in LiteRT."""
    from ai_edge_litert.interpreter import Interpreter as LiteRT

    theirs = LiteRT(model_content=to_bytes(model, "tflite"), num_threads=1)
    return runs(Interpreter(model), inputs), runs(theirs, inputs)


def made(cls: type[Op], operands: Sequence[Array], constant: bool, seeds: Any) -> Model:
    places = range(len(operands)) if constant else ()
    return one_op(cls, operands, [*places], seed=seeds[0], seed2=seeds[1])


@NUMBERS
@SEEDS
@pytest.mark.parametrize("shape", [(6,), (5,), (3, 7, 11), (0,), ()])
def test_numbers_are_those_of_litert(cls: type[Op], seeds: Any, shape: tuple[int, ...]) -> None:
    model = made(cls, [np.array(shape, np.int32)], True, seeds)
    for ours, theirs in zip(*both(model), strict=True):
        tolerance = 0 if cls is RandomUniform else 3e-6
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance, strict=True)


@NUMBERS
def test_the_shape_may_be_computed(cls: type[Op]) -> None:
    shape = np.array([3, 5], np.int32)
    for ours, theirs in zip(*both(made(cls, [shape], False, (1, 2)), [shape]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=3e-6, atol=3e-6, strict=True)


@SEEDS
@pytest.mark.parametrize("count", [1, 2, 7, 100])
@pytest.mark.parametrize("constant", [True, False])
def test_classes_are_those_of_litert(seeds: Any, count: int, constant: bool) -> None:
    operands = [LOGITS, np.array(count, np.int32)]
    found = both(made(Multinomial, operands, constant, seeds), () if constant else operands)
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)


@pytest.mark.parametrize("shape", [(9000, 8), (3, 70000)])
def test_rows_that_are_searched_together_are_those_of_litert(shape: tuple[int, int]) -> None:
    logits = np.random.default_rng(6).normal(size=shape).astype(np.float32) * 3
    logits[::7, 1] = -np.inf
    operands = [logits, np.array(3, np.int32)]
    for ours, theirs in zip(*both(made(Multinomial, operands, True, (1, 2))), strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)


def test_classes_may_be_impossible_and_short() -> None:
    logits = np.array([[1, -np.inf, 2, np.nan], [0, 0, -np.inf, 0]], np.float32)
    model = made(Multinomial, [logits, np.array(50, np.int32)], True, (3, 4))
    model.graph.outputs[0].dtype = TensorType.INT32
    for ours, theirs in zip(*both(model), strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)
        assert set(ours[0].tolist()) == {0, 2}
        assert set(ours[1].tolist()) == {0, 1, 3}


def test_without_seeds_chance_decides() -> None:
    model = made(RandomUniform, [np.array([8], np.int32)], True, (0, 0))
    first, second = (runs(Interpreter(model), (), 1)[0] for _ in range(2))
    assert (first != second).all()
    assert ((first >= 0) & (first < 1)).all()


def test_the_generator_gives_the_numbers_of_its_paper() -> None:
    """From the known answers of the authors' library, philox 4 x 32 with 10 rounds."""
    zeros = Philox(0, 0).draw(1)[0].tolist()
    assert zeros == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


def test_random_operators_keep_unknown_dimensions() -> None:
    graph = Graph()
    shape, logits = graph.add_input("shape", (3,)), graph.add_input("logits", (None, 4))
    count = graph.add_input("count", ())
    shape.dtype = count.dtype = TensorType.INT32
    assert RandomUniform(shape).infer_shape() == (None, None, None)
    assert Multinomial(logits, count).infer_shape() == (None, None)


@NUMBERS
def test_random_numbers_refuse_shapes_that_cannot_be(cls: type[Op]) -> None:
    shape = np.array([2, -1], np.int32)
    with pytest.raises(ShapeError, match=r"shape is \[2, -1\], nothing below 0 is possible"):
        made(cls, [shape], True, (1, 2))
    with pytest.raises(ShapeError, match=r"shape is \[2, -1\], nothing below 0 is possible"):
        runs(Interpreter(made(cls, [shape], False, (1, 2))), [shape])


@NUMBERS
def test_random_numbers_refuse_a_computed_shape_that_takes_too_much_memory(cls: type[Op]) -> None:
    shape = np.array([2**30, 2**30], np.int32)
    with pytest.raises(LucioleError, match="are allowed where the shape is computed"):
        runs(Interpreter(made(cls, [shape], False, (1, 2))), [shape])


@pytest.mark.parametrize(
    ("logits", "count", "message"),
    [
        (LOGITS[0], 3, r"logits has shape \[5\], rank 2 is needed"),
        (LOGITS[:, :0], 3, "logits has 0 classes, at least 1 is needed"),
        (LOGITS, -1, r"num_samples is \[-1\], nothing below 0 is possible"),
        (LOGITS, [1, 2], "elements: num_samples has 2, a number has 1"),
    ],
)
def test_multinomial_refuses_operands_that_do_not_fit(
    logits: Array, count: Any, message: str
) -> None:
    with pytest.raises(ShapeError, match=message):
        made(Multinomial, [logits, np.array(count, np.int32)], True, (1, 2))


def test_multinomial_refuses_logits_of_another_type() -> None:
    operands = [LOGITS.astype(np.int32), np.array(3, np.int32)]
    with pytest.raises(LucioleError, match="logits are int32, float32 is needed"):
        runs(Interpreter(made(Multinomial, operands, False, (1, 2))), operands)
