"""Degrees: by what power tensors grow, against the numbers of graphs that are fed twice as much."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import luciole
from luciole.ir import Value
from luciole.ir.analysis.degrees import Degrees
from luciole.ir.ops.elementwise_binary import Add, Div, Maximum, Mul, Pow, Sub
from luciole.ir.ops.elementwise_unary import Abs, Exp, Rsqrt, Sqrt, Square
from luciole.ir.ops.reduce import Mean, ReduceMax, Sum
from tests.lquantizer.networks import Builder
from tests.networks import random

Maker = Callable[[Builder, Value], Value]


def constant(b: Builder, number: float) -> Value:
    return b.constant(np.array([number], np.float32))


def last(b: Builder) -> Value:
    return b.constant(np.array([1], np.int32))


def moment(b: Builder, x: Value) -> Value:
    return b.add(Mean(b.add(Square(x)), last(b), keep_dims=True))


def centred(b: Builder, x: Value) -> Value:
    return b.add(Sub(x, b.add(Mean(x, last(b), keep_dims=True))))


def norm(b: Builder, x: Value) -> Value:
    return b.add(Maximum(b.add(Sqrt(b.add(Sum(b.add(Mul(x, x)), last(b))))), constant(b, 1e-9)))


def raised(b: Builder, x: Value) -> Value:
    return b.add(Add(moment(b, x), constant(b, 1e-7)))


POWERS: dict[str, tuple[Maker, float | None]] = {
    "moment": (moment, 2),
    "centred": (centred, 1),
    "norm": (norm, 1),
    "inverse root": (lambda b, x: b.add(Rsqrt(raised(b, x))), -1),
    "normalized": (lambda b, x: b.add(Mul(centred(b, x), b.add(Rsqrt(raised(b, x))))), 0),
    "by the largest": (
        lambda b, x: b.add(Div(x, b.add(ReduceMax(b.add(Abs(x)), last(b), keep_dims=True)))),
        0,
    ),
    "power": (lambda b, x: b.add(Pow(b.add(Abs(x)), constant(b, 1.5))), 1.5),
    "exponential": (lambda b, x: b.add(Exp(x)), None),
    "shifted": (lambda b, x: b.add(Add(x, constant(b, 3))), None),
    "two powers": (lambda b, x: b.add(Add(x, b.add(Square(x)))), None),
    "cut off": (lambda b, x: b.add(Maximum(x, constant(b, 0.3))), None),
}


@pytest.mark.parametrize("name", POWERS)
def test_degrees_say_how_results_grow(name: str) -> None:
    maker, degree = POWERS[name]
    b = Builder()
    x = b.graph.add_input("x", (1, 8))
    b.graph.outputs = [maker(b, x)]
    assert Degrees(x).of(b.graph.outputs[0]) == degree
    numbers = random(1, 1, 8)
    interpreter = luciole.Interpreter(b.model)
    once, twice = (
        next(iter(interpreter.run({"x": factor * numbers}).values())).copy() for factor in (1, 2)
    )
    factors = twice / once
    if degree is None:
        assert np.ptp(factors) > 0.1
    else:
        np.testing.assert_allclose(factors, 2**degree, rtol=1e-5)


def test_another_tensor_grows_by_nothing_known() -> None:
    b = Builder()
    x, y = b.graph.add_input("x", (1, 8)), b.graph.add_input("y", (1, 8))
    assert Degrees(x).of(b.add(Mul(x, y))) is None
    assert Degrees(x).of(b.add(Div(x, y))) is None
